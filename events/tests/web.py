"""A web worker that takes events, and what they are told with."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from agents.models import Agent
from compliance.api.answers import Answer, Headers
from compliance.tests.web import Worker
from tenancy import keys
from tenancy.models import ApiKey

PATH = "/v1/events"


class Web(Worker):
    """A worker that is sent events."""

    async def send(self, key: str, body: Any, *more: tuple[str, str], path: str = PATH) -> Answer:
        """What the server answers; a `more` header without a value takes the usual one away."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.exchange("POST", path, headers_of(key, raw, *more), raw)

    def post(self, key: str, body: Any, *more: tuple[str, str], path: str = PATH) -> Answer:
        return self.run(self.send(key, body, *more, path=path))  # type: ignore[no-any-return]

    def post_all(self, key: str, bodies: Iterable[Any]) -> list[Answer]:
        """All at once."""

        async def play() -> list[Answer]:
            return await asyncio.gather(*(self.send(key, body) for body in bodies))

        return self.run(play())  # type: ignore[no-any-return]


async def seconds_let_in(ask: Callable[[], Awaitable[Answer]]) -> float:
    """Ask until a request is refused; return when the last one was sent that was not, in seconds from now.

    How late it was answered does not count. Raises: TimeoutError after 30 s.
    """
    began = latest = asked = time.monotonic()
    async with asyncio.timeout(30):
        while (await ask()).status < 400:
            latest = asked
            await asyncio.sleep(0.02)
            asked = time.monotonic()
    return latest - began


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


def report(agent: Agent, **more: Any) -> dict[str, Any]:
    return {"agent_id": str(agent.id), "action_type": "api_call", **more}


def assert_unavailable(answer: Answer) -> None:
    headers = {name.lower(): value for name, value in answer.headers}
    assert (answer.status, list(body_of(answer))) == (503, ["error"])
    assert int(headers["retry-after"]) >= 1
    assert "x-ratelimit-limit" in headers


def warm(web: Web, key: str, agents: list[Agent]) -> None:
    """Have the agents' first events behind them."""
    for agent in agents:
        assert web.post(key, report(agent)).status == 201
    web.seen_by_view = 0
