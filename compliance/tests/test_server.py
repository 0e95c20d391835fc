"""The web server's entry point: bodies are collected before a thread is taken, in bounded time and size."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from granian._granian import RSGIProtocolError

from compliance.api.answers import Answer
from compliance.server import Server, run

Sent = list[tuple[str, str]]


class Headers:
    """Granian's view of the headers."""

    def __init__(self, items: Sent) -> None:
        self._items = items

    def items(self) -> Sent:
        return self._items


class Scope:
    """One request's line and headers, as granian gives them."""

    http_version, scheme = "1.1", "http"
    server, client = "127.0.0.1:8000", "[2001:db8::1]:40000"

    def __init__(self, method: str, path: str, headers: Sent) -> None:
        self.method, self.path, self.query_string = method, path, "a=é"
        self.headers = Headers(headers)


class Protocol:
    """One connection: its sender may stall before the body's end."""

    def __init__(self, pieces: list[bytes], *, stalls: bool = False, hangs_up: bool = False) -> None:
        self.pieces, self.stalls, self.hangs_up, self.taken = pieces, stalls, hangs_up, 0
        self.answer: Answer | None = None

    async def __call__(self) -> bytes:
        return b"".join([piece async for piece in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.taken += 1
            yield piece
        if self.stalls:
            await asyncio.sleep(3600)
        if self.hangs_up:
            raise RSGIProtocolError

    def response_bytes(self, status: int, headers: Sent, body: bytes) -> None:
        self.answer = Answer(status, headers, body)


def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers what it was given."""
    start_response("201 Created", [("x-length", environ["CONTENT_LENGTH"])])
    yield environ["wsgi.input"].read()


def told(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Answers its environment."""
    start_response("200 OK", [])
    return [repr({name: value for name, value in environ.items() if isinstance(value, str)}).encode()]


def fails(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    raise RuntimeError("a defect")


def answered(protocol: Protocol, *, headers: Sent, application: Any = echo, path: str = "/") -> Answer:
    server = Server(application, threads=1, body_seconds=0.2)
    asyncio.run(server.__rsgi__(Scope("POST", path, headers), protocol))
    assert protocol.answer is not None
    return protocol.answer


def test_body_reaches_the_application_whole() -> None:
    answer = answered(Protocol([b"ab", b"cd"]), headers=[("content-length", "4")])

    assert (answer.status, answer.body) == (201, b"abcd")


def test_answered_body_is_let_go() -> None:
    body = io.BytesIO(b"abcd")

    answer = run(echo, {"CONTENT_LENGTH": "4", "wsgi.input": body})

    assert (answer.body, body.closed) == (b"abcd", True)


def test_chunked_body_reaches_the_application_with_its_length() -> None:
    answer = answered(Protocol([b"ab", b"cd"]), headers=[("transfer-encoding", "chunked")])

    assert (answer.body, answer.headers) == (b"abcd", [("x-length", "4")])


@pytest.mark.parametrize("header", [("content-length", "500"), ("transfer-encoding", "chunked")])
def test_sender_who_stalls_is_answered_408(header: tuple[str, str]) -> None:
    answer = answered(Protocol([b"{"], stalls=True), headers=[header])

    assert (answer.status, answer.body) == (408, b'{"error":"The request body did not arrive in time"}')


def test_stalled_senders_take_no_thread_from_others() -> None:
    server = Server(echo, threads=1, body_seconds=60)
    slow = [Protocol([b"{"], stalls=True) for _ in range(50)]
    quick = Protocol([b"ok"])

    async def play() -> None:
        waiting = [
            asyncio.create_task(server.__rsgi__(Scope("POST", "/", [("content-length", "9")]), protocol))
            for protocol in slow
        ]
        await asyncio.sleep(0)
        await asyncio.wait_for(server.__rsgi__(Scope("POST", "/", [("content-length", "2")]), quick), 5)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(play())

    assert quick.answer is not None
    assert quick.answer.body == b"ok"


def test_body_cut_short_never_reaches_the_application() -> None:
    answer = answered(Protocol([b"{}"]), headers=[("content-length", "500")])

    assert answer.status == 400


@pytest.mark.parametrize("header", [("content-length", "500"), ("transfer-encoding", "chunked")])
def test_sender_who_hangs_up_is_a_400_and_never_reaches_the_application(header: tuple[str, str]) -> None:
    answer = answered(Protocol([b"{}"], hangs_up=True), headers=[header])

    assert answer.status == 400


def test_body_over_the_limit_is_read_no_further_and_ends_the_connection() -> None:
    protocol = Protocol([b"a" * 1024 * 1024] * 20)

    answer = answered(protocol, headers=[("content-length", str(20 * 1024 * 1024))])

    assert answer.headers == [("x-length", str(1024 * 1024 + 1)), ("connection", "close")]
    assert protocol.taken == 2


def test_worker_with_many_requests_ends_one_of_their_connections() -> None:
    server = Server(echo, threads=1)
    protocols = [Protocol([b"ok"]) for _ in range(5)]

    async def play() -> None:
        await asyncio.gather(
            *(server.__rsgi__(Scope("POST", "/", [("content-length", "2")]), one) for one in protocols)
        )

    asyncio.run(play())

    answers = [protocol.answer for protocol in protocols]
    assert [("connection", "close") in answer.headers for answer in answers if answer is not None] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_header_with_an_underscore_passes_for_no_other() -> None:
    headers = [("x_forwarded_for", "6.6.6.6"), ("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2")]

    environ = answered(Protocol([]), headers=headers, application=told).body.decode()

    assert "'HTTP_X_FORWARDED_FOR': '1.1.1.1,2.2.2.2'" in environ
    assert "6.6.6.6" not in environ


def test_environment_is_as_pep_3333_has_it() -> None:
    headers = [("host", "h"), ("cookie", "a=1"), ("cookie", "b=2"), ("content-type", "application/json")]

    environ = answered(Protocol([]), headers=headers, application=told, path="/é").body.decode()

    for part in ("'PATH_INFO': '/Ã©'", "'QUERY_STRING': 'a=Ã©'", "'REMOTE_ADDR': '2001:db8::1'"):
        assert part in environ
    assert "'HTTP_COOKIE': 'a=1; b=2'" in environ
    assert "'CONTENT_TYPE': 'application/json'" in environ


def test_defect_of_the_application_is_a_500_in_the_envelope() -> None:
    answer = answered(Protocol([]), headers=[], application=fails)

    assert (answer.status, answer.body) == (500, b'{"error":"Internal server error"}')
