"""Answers streamed piece by piece: made when asked for, and sent as fast as the client takes them."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any
from unittest.mock import Mock

import pytest
import requests
from django.http import StreamingHttpResponse

from compliance.api.answers import Answer
from compliance.serving.django_process import DjangoProcess, serve_socket
from compliance.serving.http.connection import AnswerWriter
from compliance.serving.http.messages import Received, StreamBroken, StreamedAnswer
from compliance.serving.tests.served import Pieces, Served, read_all, serving
from compliance.serving.wsgi import OpenAnswer, begin, environ_of
from compliance.tests.waiting import eventually

GET = b"GET /streamed HTTP/1.1\r\nHost: h\r\n\r\n"
BODY = b"a" * 5_000_000


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


def test_streamed_body_arrives_whole_and_the_connection_goes_on(served: Served) -> None:
    with requests.Session() as client:
        client.trust_env = False
        answer = client.get(f"http://127.0.0.1:{served.port}/streamed", timeout=60)
        after = client.get(f"http://127.0.0.1:{served.port}/after", timeout=60)

    assert (answer.headers["transfer-encoding"], answer.content) == ("chunked", BODY)
    assert after.json()["path"] == "/after"
    assert served.pieces["/streamed"].is_stopped


def test_http_1_0_gets_the_body_until_the_connection_ends(served: Served) -> None:
    head, _, body = served.tell(b"GET /streamed HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")

    assert b"connection: close" in head
    assert b"transfer-encoding" not in head
    assert body == BODY


def test_head_has_no_body(served: Served) -> None:
    answer = served.tell(GET.replace(b"GET", b"HEAD").replace(b"h\r\n", b"h\r\nConnection: close\r\n"))

    assert answer.endswith(b"\r\n\r\n")
    assert served.pieces["/streamed"].is_stopped


def test_body_that_breaks_ends_without_its_last_chunk(served: Served) -> None:
    with served.connect() as client:
        client.sendall(GET.replace(b"/streamed", b"/streamed/broken"))
        found = b""
        with suppress(ConnectionResetError):
            found = read_all(client)

    assert b"0\r\n\r\n" not in found
    assert eventually(lambda: served.pieces["/streamed/broken"].is_stopped)


def test_body_is_stopped_when_its_head_cannot_be_written() -> None:
    pieces, transport = Pieces([BODY]), Mock()
    answer = StreamedAnswer(200, [("x-name", "\u20ac")], b"", pieces)
    request = Received("GET", "/", "", [], b"", "127.0.0.1", ("127.0.0.1", 80))

    with pytest.raises(UnicodeEncodeError):
        asyncio.run(AnswerWriter(transport).write(answer, request, closes=False))

    assert pieces.is_stopped
    transport.write.assert_not_called()


def test_body_is_stopped_when_its_client_leaves(served: Served) -> None:
    served.pieces["/streamed"] = Pieces([b"a" * 1_000_000] * 1000)
    with served.connect() as client:
        client.sendall(GET)
        client.recv(10)

    assert eventually(lambda: served.pieces["/streamed"].is_stopped)
    assert served.pieces["/streamed"].left


class Views:
    """A WSGI application whose body counts to `count`; `fails_at` is where it meets a defect."""

    def __init__(self, count: int, fails_at: int = -1) -> None:
        self.made, self.is_closed = 0, False
        self._count, self._fails_at = count, fails_at

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> StreamingHttpResponse:
        if environ["PATH_INFO"] != "/streamed":
            start_response("200 OK", [("content-length", "4")])
            return [b"done"]  # type: ignore[return-value]
        start_response("200 OK", [("x", "y")])
        answer = StreamingHttpResponse(self._pieces())
        answer.close = self._close  # type: ignore[method-assign]
        return answer

    def _pieces(self) -> Iterator[bytes]:
        for number in range(self._count):
            if number == self._fails_at:
                raise RuntimeError("a defect")
            self.made += 1
            yield b"%d " % number

    def _close(self) -> None:
        self.is_closed = True


def asked(views: Views, take: int) -> tuple[list[bytes], Answer]:
    """Return up to `take` pieces of an answer from the views' process, and the answer to the next request."""
    ours, theirs = socket.socketpair()
    thread = Thread(target=serve_socket, args=[views, theirs])
    thread.start()

    async def play() -> tuple[list[bytes], Answer]:
        django = DjangoProcess([ours], pid=0)
        answer = await django.answer(Received("GET", "/streamed", "", [], b"", "::1", ("::1", 1)), "")
        assert isinstance(answer, StreamedAnswer)
        found: list[bytes] = []
        try:
            while len(found) < take and (piece := await answer.pieces.next()):
                found.append(piece)
        except StreamBroken:
            found.append(b"broken")
        await answer.pieces.stop()
        return found, await django.answer(Received("GET", "/", "", [], b"", "::1", ("::1", 1)), "")

    try:
        return asyncio.run(play())
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize(
    ("views", "take", "expected", "made"),
    [
        (Views(3), 9, [b"0 ", b"1 ", b"2 "], 3),
        (Views(0), 9, [], 0),
        (Views(1000), 2, [b"0 ", b"1 "], 2),
        (Views(3, fails_at=1), 9, [b"0 ", b"broken"], 1),
    ],
)
def test_views_make_each_piece_when_it_is_asked_for(
    views: Views, take: int, expected: list[bytes], made: int
) -> None:
    found, after = asked(views, take)

    assert (found, views.made, views.is_closed) == (expected, made, True)
    assert after.body == b"done"


def test_an_empty_piece_does_not_end_the_body() -> None:
    def views(environ: dict[str, Any], start_response: Callable[..., Any]) -> StreamingHttpResponse:
        start_response("200 OK", [])
        return StreamingHttpResponse([b"", b"a", b"", b"b", b""])

    found = begin(views, environ_of(Received("GET", "/streamed", "", [], b"", "h", ("h", 80))))

    assert isinstance(found, OpenAnswer)
    assert list(found.pieces) == [b"a", b"b"]


def test_an_answer_without_a_body_is_not_streamed() -> None:
    def unchanged(environ: dict[str, Any], start_response: Callable[..., Any]) -> StreamingHttpResponse:
        start_response("304 Not Modified", [("ETag", '"1"')])
        return StreamingHttpResponse([])

    found = begin(unchanged, environ_of(Received("GET", "/static/a.css", "", [], b"", "h", ("h", 80))))

    assert found == Answer(304, [("ETag", '"1"')], b"")
