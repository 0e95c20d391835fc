"""Whole requests: the WSGI environment, threads that share the work, defects."""

import asyncio
import io
from collections.abc import Callable, Iterable
from typing import Any

from compliance.api.answers import Answer, Headers
from compliance.serving.django_process import MOST_WAITING
from compliance.serving.http.messages import Received
from compliance.serving.server import BATCHES, Server
from compliance.serving.wsgi import WsgiApplication, begin
from compliance.tests.web import ThreadedDjango


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


def received(*, headers: Headers | None = None, body: bytes = b"", path: str = "/") -> Received:
    address, server = "2001:db8::1", ("127.0.0.1", 8000)
    return Received("POST", path, "a=Ã©", headers or [], body, address, server)


def answered(request: Received, *, application: WsgiApplication = echo) -> Answer:
    server = Server(ThreadedDjango(application, threads=1), fast_path=None)
    return asyncio.run(server.answer(request))


def test_body_reaches_the_application_with_its_length() -> None:
    answer = answered(received(body=b"abcd"))

    assert (answer.status, answer.headers, answer.body) == (201, [("x-length", "4")], b"abcd")


def test_answered_body_is_let_go() -> None:
    body = io.BytesIO(b"abcd")

    answer = begin(echo, {"CONTENT_LENGTH": "4", "wsgi.input": body})

    assert (answer, body.closed) == (Answer(201, [("x-length", "4")], b"abcd"), True)


def test_batches_past_a_tenants_queue_are_told_what_they_wait_for() -> None:
    async def play() -> list[Answer]:
        server = Server(ThreadedDjango(echo, threads=1), fast_path=None)
        return await asyncio.gather(
            *(server.answer(received(path=min(BATCHES))) for _ in range(MOST_WAITING + 2))
        )

    *others, last = asyncio.run(play())

    assert {answer.status for answer in others} == {201}
    assert (last.status, last.body) == (
        503,
        b'{"error":"Other batches are still running; retry with backoff"}',
    )
    assert ("retry-after", "1") in [(name.lower(), value) for name, value in last.headers]


def test_header_with_an_underscore_passes_for_no_other() -> None:
    headers = [("x_forwarded_for", "6.6.6.6"), ("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2")]

    environ = answered(received(headers=headers), application=told).body.decode()

    assert "'HTTP_X_FORWARDED_FOR': '1.1.1.1,2.2.2.2'" in environ
    assert "6.6.6.6" not in environ


def test_environment_is_as_pep_3333_has_it() -> None:
    headers = [("host", "h"), ("cookie", "a=1"), ("cookie", "b=2"), ("content-type", "application/json")]

    environ = answered(received(headers=headers, path="/Ã©"), application=told).body.decode()

    for part in ("'PATH_INFO': '/Ã©'", "'QUERY_STRING': 'a=Ã©'", "'REMOTE_ADDR': '2001:db8::1'"):
        assert part in environ
    assert "'HTTP_COOKIE': 'a=1; b=2'" in environ
    assert "'CONTENT_TYPE': 'application/json'" in environ


def test_defect_of_the_application_is_a_500_in_the_envelope() -> None:
    answer = answered(received(), application=fails)

    assert (answer.status, answer.body) == (500, b'{"error":"Internal server error"}')
