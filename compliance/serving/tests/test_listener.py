"""The connections of a worker together: how many there are, who makes room, and how they end."""

import asyncio
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from compliance.serving.http.listener import Listener
from compliance.serving.tests.served import Served, parsed, read_all, serving
from compliance.tests.waiting import eventually

LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
OUT_OF_FILES = """
import logging, resource, sys
from compliance.serving.tests.served import serving
logging.basicConfig()
with serving() as served:
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    print(served.port, flush=True)
    sys.stdin.read()
"""


def test_newcomer_takes_the_place_of_the_longest_idle() -> None:
    with serving(most_connections=2) as full, full.connect() as first, full.connect() as second:
        first.sendall(LAST.replace(b"close", b"keep-alive"))
        second.sendall(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        eventually(lambda: len(full.seen) == 2)

        third = full.tell(LAST)

        assert parsed(third)[0] == 200
        assert read_all(first).endswith(b"}")
        full.release.set()
        assert second.recv(1000).startswith(b"HTTP/1.1 200")


def test_newcomers_that_send_nothing_soon_make_room() -> None:
    with serving(most_connections=2) as full, full.connect() as silent, full.connect():
        assert eventually(lambda: parsed(full.tell(LAST))[0] == 200)

        assert silent.recv(1) == b""


def test_newcomer_is_turned_away_while_all_are_busy() -> None:
    with serving(most_connections=1) as full, full.connect() as first:
        first.sendall(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        eventually(lambda: bool(full.seen))

        status, headers, _ = parsed(full.tell(LAST))

        assert (status, headers["retry-after"]) == (503, "1")
        full.release.set()
        assert first.recv(1000).startswith(b"HTTP/1.1 200")


def test_listener_that_stops_answers_what_is_under_way() -> None:
    with serving() as served:
        client = served.connect()
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        eventually(lambda: bool(served.seen))
        served.release.set()

    with client:
        answer = read_all(client)

    assert answer.startswith(b"HTTP/1.1 200")


def test_requests_come_by_a_unix_socket_too(tmp_path: Path) -> None:
    path = str(tmp_path / "web")
    with (
        socket.create_server(path, family=socket.AF_UNIX) as listening,
        serving(listening) as served,
        socket.socket(socket.AF_UNIX) as client,
    ):
        client.connect(path)
        client.sendall(LAST)

        assert parsed(read_all(client))[0] == 200
        assert served.seen[0].address == ""


def test_worker_without_files_left_says_so_once_and_serves_again() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OUT_OF_FILES],
        cwd=settings.BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    starved = Served(int(process.stdout.readline()))
    with ExitStack() as opened:
        for _ in range(100):
            opened.enter_context(starved.connect())
        client = opened.enter_context(starved.connect())
        client.settimeout(1)
        with pytest.raises(TimeoutError):
            client.recv(1)

    assert parsed(starved.tell(LAST))[0] == 200
    _, errors = process.communicate()
    assert errors.count(b"connections cannot be accepted") == 1


@pytest.mark.parametrize("bursts", [[1] * 8, [1, 1, 8]])
def test_workers_share_connections(bursts: list[int]) -> None:
    async def scene() -> list[int]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            servers = [Served(), Served()]
            ends = [listening.dup() for _ in servers]
            listeners = [
                Listener([end], each.handle, largest_body=100, has_peers=True)
                for end, each in zip(ends, servers, strict=True)
            ]
            for one in listeners:
                one.start()
            clients = []
            for count in bursts:
                # The loop stands still meanwhile: they wait together.
                opened = [socket.create_connection(listening.getsockname()) for _ in range(count)]
                new = [await asyncio.open_connection(sock=one) for one in opened]
                for _, writer in new:
                    writer.write(LAST.replace(b"close", b"keep-alive"))
                for reader, _ in new:
                    await reader.readuntil(b"}")
                clients.extend(new)
            for one in listeners:
                await one.stop(within=1)
            for _, writer in clients:
                writer.close()
            for end in ends:
                end.close()
            return [len(each.seen) for each in servers]

    first, second = asyncio.run(scene())

    assert first + second == sum(bursts)
    assert min(first, second) >= 2
