"""A web worker that takes events, and what they are told with."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from django.conf import settings

from agents.models import Agent
from compliance.api import rate_limits
from compliance.api.answers import Answer, Headers
from compliance.api.lanes import Request
from compliance.tenancy import keys
from compliance.tenancy.models import ApiKey
from compliance.tests.web import Worker
from events.lane import EventLane

PATH = "/v1/events"


class Web(Worker):
    """A worker with the lane of events, or without."""

    def __init__(self, *, with_lane: bool = True) -> None:
        self.lane = EventLane()
        super().__init__([self.lane] if with_lane else [])

    async def send(self, key: str, body: Any, *more: tuple[str, str], path: str = PATH) -> Answer:
        """What the server answers; a `more` header without a value takes the usual one away."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.exchange("POST", path, headers_of(key, raw, *more), raw)

    def post_twice(self, key: str, body: Any, *twice: tuple[str, str]) -> Answer:
        """With headers that stand there more than once."""
        raw = json.dumps(body).encode()
        answer: Answer = self.run(self.exchange("POST", PATH, [*headers_of(key, raw), *twice], raw))
        return answer

    def post(self, key: str, body: Any, *more: tuple[str, str], path: str = PATH) -> Answer:
        return self.run(self.send(key, body, *more, path=path))  # type: ignore[no-any-return]

    def post_all(self, key: str, bodies: Iterable[Any]) -> list[Answer]:
        """All at once."""

        async def play() -> list[Answer]:
            return await asyncio.gather(*(self.send(key, body) for body in bodies))

        return self.run(play())  # type: ignore[no-any-return]

    def ask_lane(self, key: str, body: Any, *more: tuple[str, str]) -> Answer | None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(PATH, "", "127.0.0.1", "http", dict(headers_of(key, raw, *more)), raw)
        return self.run(self.lane.answer(request))  # type: ignore[no-any-return]


def headers_of(key: str, body: bytes, *more: tuple[str, str]) -> Headers:
    usual = {
        "host": "testserver",
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    return [(name, value) for name, value in {**usual, **dict(more)}.items() if value]


def body_of(answer: Answer | None) -> Any:
    assert answer is not None
    return json.loads(answer.body)


def key_id(key: str) -> str:
    return str(ApiKey.objects.get(digest=keys.digest(key)).id)


def reserve(key: str, count: int) -> None:
    """Have this process let the key's next events through without counting each."""
    limit, identity = settings.RATE_LIMITS["events"], key_id(key)
    rate_limits.hit("events", identity, limit=limit, ahead=True)
    while (taken := _take_all(identity)) < count:
        rate_limits.renew("events", identity, limit=limit)
        assert taken <= count
    rate_limits.renew("events", identity, limit=limit)


def _take_all(identity: str) -> int:
    taken = 0
    while rate_limits.take("events", identity) is not None:
        taken += 1
    return taken


def report(agent: Agent, **more: Any) -> dict[str, Any]:
    return {"agent_id": str(agent.id), "action_type": "api_call", **more}


def assert_unavailable(answer: Answer) -> None:
    headers = {name.lower(): value for name, value in answer.headers}
    assert (answer.status, list(body_of(answer))) == (503, ["error"])
    assert int(headers["retry-after"]) >= 1
    assert "x-ratelimit-limit" in headers


def warm(web: Web, key: str, agents: list[Agent]) -> None:
    """An agent's first event rebuilds the scorer's memory, which is the view's work."""
    for agent in agents:
        assert web.post(key, report(agent)).status == 201
    web.seen_by_view = 0
    reserve(key, 500)
