"""Clients go on after their server died and another took its address."""

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings
from redis.exceptions import ConnectionError as Unreachable, RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.localdev.servers.redis import RedisServer
from compliance.stores import redis, wakeups
from compliance.tests.looped import opened
from compliance.tests.redis_servers import redis_at
from compliance.tests.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

ECHO = redis.Script("return ARGV[1]")
CHANNEL = ("tests", "due")


@pytest.fixture
def server(tmp_path: Path, settings: Settings) -> Iterator[RedisServer]:
    """The server behind REDIS_URL."""
    made = RedisServer(tmp_path / "redis", tmp_path / "ports.json", "of-the-test", snapshots=False)
    made.start()
    try:
        with redis_at(made.url(), settings):
            yield made
    finally:
        made.stop()


def works() -> bool:
    try:
        return bool(ECHO(keys=["some"], args=["x"]) == b"x")
    except RedisError:
        return False


def test_clients_and_listeners_go_on_with_a_new_server(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "LISTEN_SECONDS", 0.05)
    heard: list[str] = []
    stopping = threading.Event()
    listener = threading.Thread(
        target=wakeups.listen, args=([CHANNEL], Environment.LIVE, lambda: heard.append("woken"), stopping)
    )
    listener.start()
    try:
        assert works()
        assert eventually(lambda: bool(heard))

        async def scene() -> None:
            async with opened() as client:
                assert await client.run(ECHO, (1, "some", "x")) == [b"x"]
                await asyncio.to_thread(server.stop)
                with pytest.raises(RedisError):
                    await client.run(ECHO, (1, "some", "x"))
                await asyncio.to_thread(server.start)
                assert await client.run(ECHO, (1, "some", "x")) == [b"x"]

        asyncio.run(scene())

        assert eventually(works)
        assert eventually(lambda: is_heard(heard))
    finally:
        stopping.set()
        listener.join(20)


def is_heard(heard: list[str]) -> bool:
    before = len(heard)
    with environments.use(Environment.LIVE):
        wakeups.wake(CHANNEL)
    return eventually(lambda: len(heard) > before, seconds=0.5)


def test_server_with_a_certificate_of_nobody_is_not_spoken_to(settings: Settings, tmp_path: Path) -> None:
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout key -out cert"
    subprocess.run(["openssl", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def scene() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        with redis_at(f"rediss://127.0.0.1:{port}/0", settings):
            async with opened() as client:
                with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                    await client.run(ECHO, (0, "a"))
        server.close()

    asyncio.run(scene())
