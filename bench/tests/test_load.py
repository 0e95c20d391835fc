"""The load generator against a server of the test's own, which answers as it is told."""

import gc
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bench.harness.load import Load

ID = b"01a1fad5-2662-7348-86ea-8ffb2ba48a5c"
REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"


def answer(status: bytes = b"201 Created", body: bytes = b'{"data":{"id":"%b"}}' % ID) -> bytes:
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


@contextmanager
def serving(reply: Callable[[int], list[bytes]]) -> Iterator[int]:
    """A server that sends the pieces of `reply(number)` for each request; an empty list closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    numbers = iter(range(1_000_000))

    def talk(connection: socket.socket) -> None:
        with connection:
            while connection.recv(65_536):
                pieces = reply(next(numbers))
                if not pieces:
                    return
                for piece in pieces:
                    connection.sendall(piece)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture(autouse=True)
def garbage_of_other_tests_is_gone() -> None:
    """The generator collects garbage before it measures: what others left open is not its fault."""
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


def test_closed_loop_collects_the_id_of_every_good_answer() -> None:
    with serving(lambda number: [answer()]) as port:
        outcome = Load(port, lambda: REQUEST, connections=2).closed(10, until=50)

    assert outcome.good >= 50
    assert outcome.ids == [ID] * outcome.good
    assert len(outcome.latencies) == outcome.good
    assert outcome.errors == 0


def test_answer_in_pieces_is_one_answer() -> None:
    whole = answer()

    with serving(lambda number: [whole[:20], whole[20:60], whole[60:]]) as port:
        outcome = Load(port, lambda: REQUEST, connections=1).closed(10, until=5)

    assert outcome.good >= 5
    assert outcome.ids == [ID] * outcome.good
    assert outcome.errors == 0


def test_connection_that_the_server_ends_is_made_anew_without_a_failure() -> None:
    last = answer().replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    with serving(lambda number: [last, b""] if number % 2 else [answer()]) as port:
        outcome = Load(port, lambda: REQUEST, connections=2).closed(10, until=20)

    assert outcome.good >= 20
    assert outcome.errors == 0


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ([answer(b"429 Too Many Requests")], "429"),
        ([], "connection closed"),
        ([b"HTTP/1.1 200 OK\r\nserver: none\r\n\r\n"], "unreadable answer"),
    ],
)
def test_failure_is_counted_and_the_loop_goes_on(reply: list[bytes], failure: str) -> None:
    with serving(lambda number: reply if number == 0 else [answer()]) as port:
        outcome = Load(port, lambda: REQUEST, connections=1).closed(10, until=4)

    assert outcome.failures == {failure: 1}
    assert outcome.good >= 3


def test_open_loop_sends_every_scheduled_request() -> None:
    with serving(lambda number: [answer()]) as port:
        outcome = Load(port, lambda: REQUEST, connections=4).offered(500, 0.2)

    assert outcome.good == 100
    assert outcome.seconds >= 0.2


def test_open_loop_counts_latency_from_the_scheduled_time() -> None:
    release = threading.Event()

    def stalling(number: int) -> list[bytes]:
        if number == 0:
            release.wait(0.2)
        return [answer()]

    with serving(stalling) as port:
        outcome = Load(port, lambda: REQUEST, connections=1).offered(100, 0.1)

    # One connection, blocked by its first answer: the others waited though they were sent late.
    assert outcome.good == 10
    assert min(outcome.latencies[:5]) > 0.1
