"""A web worker inside the test's process: granian's part is played, everything behind it is real."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from threading import Lock
from typing import Any

from django.conf import settings
from django.db import connections

from agents.models import Agent
from compliance.api import rate_limits
from compliance.api.answers import Answer, Headers
from compliance.server import Environ, Server
from compliance.tenancy import keys
from compliance.tenancy.models import ApiKey
from compliance.wsgi import application
from events.lane import EventLane

PATH = "/v1/events"


class Sent:
    """Granian's view of a request's headers."""

    def __init__(self, items: Headers) -> None:
        self._items = items

    def items(self) -> Headers:
        return self._items


class Scope:
    """One request's line and headers."""

    http_version, scheme, server, client = "1.1", "http", "127.0.0.1:8000", "127.0.0.1:40000"

    def __init__(self, path: str, headers: Headers) -> None:
        self.method, (self.path, _, self.query_string) = "POST", path.partition("?")
        self.headers = Sent(headers)


class Protocol:
    """One request's body on its way in, and its answer on the way out."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.answer: Answer | None = None

    async def __call__(self) -> bytes:
        return self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.answer = Answer(status, headers, body)


class Web:
    """A server with its lane, or without; it counts what reaches the view."""

    def __init__(self, *, with_lane: bool = True) -> None:
        self.lane = EventLane()
        self.seen_by_view = 0
        self._lock = Lock()
        self._runner = asyncio.Runner()
        self._server = Server(self._application, threads=4, lanes=[self.lane] if with_lane else [])

    def close(self) -> None:
        self._server.__rsgi_del__(self._runner.get_loop())
        self._runner.close()

    def run(self, play: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(play)

    async def send(self, key: str, body: Any, *more: tuple[str, str], path: str = PATH) -> Answer:
        """What the server answers; a `more` header without a value takes the usual one away."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        protocol = Protocol(raw)
        await self._server.__rsgi__(Scope(path, headers_of(key, raw, *more)), protocol)
        assert protocol.answer is not None
        return protocol.answer

    def post_twice(self, key: str, body: Any, *twice: tuple[str, str]) -> Answer:
        """With headers that stand there more than once."""

        async def play() -> Answer:
            raw = json.dumps(body).encode()
            protocol = Protocol(raw)
            await self._server.__rsgi__(Scope(PATH, [*headers_of(key, raw), *twice]), protocol)
            assert protocol.answer is not None
            return protocol.answer

        return self.run(play())  # type: ignore[no-any-return]

    def post(self, key: str, body: Any, *more: tuple[str, str], path: str = PATH) -> Answer:
        return self.run(self.send(key, body, *more, path=path))  # type: ignore[no-any-return]

    def post_all(self, key: str, bodies: Iterable[Any]) -> list[Answer]:
        """All at once."""

        async def play() -> list[Answer]:
            return await asyncio.gather(*(self.send(key, body) for body in bodies))

        return self.run(play())  # type: ignore[no-any-return]

    def ask_lane(self, key: str, body: Any, *more: tuple[str, str]) -> Answer | None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.run(self.lane.answer(dict(headers_of(key, raw, *more)), raw))  # type: ignore[no-any-return]

    def _application(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            self.seen_by_view += 1
        try:
            return application(environ, start_response)
        finally:
            # The test's database can't be dropped while a thread holds on to it.
            connections.close_all()


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
