"""Scripts called from the event loop on a server behind TLS."""

import asyncio
import ipaddress
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django.fixtures import Settings
from redis.exceptions import ConnectionError as Unreachable

from compliance.stores import redis
from compliance.tests.looped import opened
from compliance.tests.redis_servers import redis_at

ECHO = redis.Script("return ARGV[1]")
LONG = redis.Script("return string.rep('x', tonumber(ARGV[1]))")
HOST = "127.0.0.1"
WHOLE = 65_536
SCRAP = 700
"""Less than a TLS record: the reader is woken for what it can't decrypt yet."""

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 and its key, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Valkey")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    pem = serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, form, plain))
    return path


class Proxies:
    """Servers of the test's own, each handing on what it gets, in a thread with an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def to(self, host: str, port: int, *, piece: int, context: ssl.SSLContext | None = None) -> int:
        """Another one, whose answers come in pieces of so many bytes; its port."""

        async def serve() -> int:
            server = await asyncio.start_server(_handing_on(host, port, piece), HOST, 0, ssl=context)
            self._servers.append(server)
            found: int = server.sockets[0].getsockname()[1]
            return found

        return int(self._run(serve()))

    def close(self) -> None:
        async def end() -> None:
            for server in self._servers:
                server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(timeout=60)


def _handing_on(host: str, port: int, piece: int) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target_reader, target_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_pump(reader, target_writer, WHOLE), _pump(target_reader, writer, piece))

    return handle


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: int) -> None:
    try:
        while data := await reader.read(WHOLE):
            for start in range(0, len(data), piece):
                writer.write(data[start : start + piece])
                await writer.drain()
                await asyncio.sleep(0)
    except OSError:
        pass
    finally:
        writer.close()


@contextmanager
def behind_tls(settings: Settings, certificate: Path, *, piece: int, scrap: int) -> Iterator[None]:
    """The test's Valkey behind TLS: `piece` bytes in a record, `scrap` bytes sent at a time, at most."""
    # One server, whatever the other tests have.
    plain = urlsplit(settings.CELERY_BROKER_URL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ExitStack() as stack:
        proxies = Proxies()
        stack.callback(proxies.close)
        ended = proxies.to(plain.hostname or HOST, plain.port or 6379, piece=piece, context=context)
        port = proxies.to(HOST, ended, piece=scrap)
        user = plain.netloc.rpartition("@")[0]
        url = f"rediss://{user}@{HOST}:{port}{plain.path}?ssl_ca_certs={certificate}"
        stack.enter_context(redis_at(url, settings))
        yield


@pytest.mark.parametrize(("piece", "scrap"), [(WHOLE, WHOLE), (WHOLE, SCRAP), (3, WHOLE)])
def test_answers_are_whole_however_records_come(
    settings: Settings, certificate: Path, piece: int, scrap: int
) -> None:
    size = 100 if piece == 3 else 500_000

    async def scene() -> None:
        async with opened(LONG) as script:
            for _ in range(3):
                assert await script.run((0, size), (0, 5)) == [b"x" * size, b"xxxxx"]

    with behind_tls(settings, certificate, piece=piece, scrap=scrap):
        asyncio.run(scene())


def test_connection_that_was_ended_meanwhile_is_opened_anew(settings: Settings, certificate: Path) -> None:
    async def scene() -> None:
        async with opened(ECHO) as script:
            for pause in (0.0, 0.1):
                await script.run((0, "a"))
                redis.client().client_kill_filter(_type="normal", skipme=True)
                await asyncio.sleep(pause)

                assert await script.run((0, "b")) == [b"b"]

    with behind_tls(settings, certificate, piece=WHOLE, scrap=WHOLE):
        asyncio.run(scene())


def test_server_with_a_certificate_of_nobody_is_not_spoken_to(settings: Settings, certificate: Path) -> None:
    async def scene() -> None:
        async with opened(ECHO) as script:
            with pytest.raises(Unreachable):
                await script.run((0, "a"))

    with (
        behind_tls(settings, certificate, piece=WHOLE, scrap=WHOLE),
        redis_at(settings.REDIS_URL.partition("?")[0], settings),
    ):
        asyncio.run(scene())
