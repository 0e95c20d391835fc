"""Key hosts: who may talk to them, what they make of nonsense, who has which token, and their end."""

import errno
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import msgspec
import pytest
from django.conf import settings
from pytest_django.fixtures import Settings

from compliance.core.environments import Environment
from compliance.keys import registry
from compliance.keys.base import KeyNotFound, KeyServiceUnavailable, SignatureAlgorithm
from compliance.keys.hosts import protocol, server
from compliance.keys.hosts.backend import KeyHostBackend, KeyHostClient
from compliance.keys.hosts.protocol import KeyHostRequest, encode
from compliance.keys.pkcs11.backend import Pkcs11Backend
from compliance.keys.pkcs11.operations import generate
from compliance.keys.tests.hosted import START_SECONDS, RunningHosts, two_running_hosts
from compliance.keys.tests.softhsm import PrivateSoftHsm
from compliance.observing import metrics
from compliance.tests.waiting import eventually

RSA = SignatureAlgorithm.RSA_SHA256


@pytest.fixture
def backend(key_hosts: RunningHosts) -> KeyHostBackend:
    return key_hosts.backend(os.environ["PKCS11_TEST_TOKEN"])


class TwoHosts(NamedTuple):
    """Two hosts of these tests alone: the first has all tokens, the second has a place for some."""

    hosts: RunningHosts
    tokens: Path


@pytest.fixture(scope="module")
def two_hosts(pristine_hsm: PrivateSoftHsm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHosts]:
    folder = tmp_path_factory.mktemp("two-hosts")
    with two_running_hosts(pristine_hsm.copy_to(folder), folder) as hosts:
        yield TwoHosts(hosts, folder / "tokens")


@pytest.fixture
def private_hosts(two_hosts: TwoHosts) -> RunningHosts:
    two_hosts.hosts.wait()
    return two_hosts.hosts


def connect(hosts: RunningHosts) -> socket.socket:
    return protocol.connect(hosts.folder, 0, timeout=60)


def asking(operation: str, *arguments: object, token: str = "") -> bytes:
    return encode(KeyHostRequest(Environment.TEST, token, operation, msgspec.Raw(encode(arguments))))


def test_sockets_are_for_their_user_alone(key_hosts: RunningHosts) -> None:
    found = (key_hosts.folder / "host-0.sock").stat()

    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(key_hosts.folder.stat().st_mode) == 0o700


def test_folder_that_others_may_enter_is_not_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    with pytest.raises(protocol.ForeignOwner):
        protocol.listen(tmp_path, 0, backlog=1)
    with pytest.raises(KeyServiceUnavailable):
        KeyHostClient(tmp_path, 0, Environment.TEST).call(Pkcs11Backend.check)


def test_folder_with_a_long_path_serves(tmp_path: Path) -> None:
    folder = tmp_path / ("long-" * 30)

    with protocol.listen(folder, 3, backlog=1), protocol.connect(folder, 3, timeout=60) as connection:
        assert connection.fileno() > 0


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        asking("sign", "pkcs11:token=a;id=%01", bytes(protocol.MAX_REQUEST), None, token="a"),
        b"\xc1\xc1\xc1\xc1",
        b"",
        asking("check")[:-1],
        b"\x91" * 1_000,
        asking("provision"),
        asking("destroy", 1, token="a"),
        asking("check", "more"),
    ],
    ids=["http", "too long", "not msgpack", "empty", "torn", "nested", "not offered", "mistyped", "surplus"],
)
def test_nonsense_costs_only_its_connection(
    key_hosts: RunningHosts, backend: KeyHostBackend, sent: bytes
) -> None:
    with connect(key_hosts) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(60)

        assert connection.recv(100) == b""
    backend.check()


def test_caller_who_goes_away_in_the_middle_harms_nobody(
    key_hosts: RunningHosts, backend: KeyHostBackend
) -> None:
    request = asking("generate", 2048, "left", True, token=os.environ["PKCS11_TEST_TOKEN"])
    for _ in range(5):
        with connect(key_hosts) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)

    backend.check()


def test_host_outlives_a_lack_of_files_and_refuses_connections_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(server, "faulthandler", Mock())
    host = server.KeyHostServer(tmp_path, 0)
    (first, served), (second, refused) = socket.socketpair(), socket.socketpair()
    waiting: Iterator[OSError | socket.socket] = iter(
        [OSError(errno.EMFILE, "Too many open files"), first, second]
    )

    def accept() -> tuple[socket.socket, str]:
        found = next(waiting, TimeoutError())
        if isinstance(found, socket.socket):
            return found, ""
        if isinstance(found, TimeoutError):
            host._stopping.set()
        raise found

    host._accept(Mock(accept=accept))

    with served, refused:
        assert refused.recv(1) == b""
        assert not host._connections.acquire(blocking=False)
    assert eventually(lambda: host._connections.acquire(blocking=False), seconds=60)


def test_response_may_not_be_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(protocol.LONGEST, protocol.KeyHostResponse, 10)
    here, there = socket.socketpair()
    with here, there:
        there.sendall(bytes(11))

        with pytest.raises(protocol.ConnectionLost, match="too long"):
            protocol.receive(here, protocol.KeyHostResponse, seconds=60)


def test_response_may_not_trickle_beyond_the_time_of_a_call() -> None:
    here, there = socket.socketpair()
    is_over = threading.Event()

    def trickle() -> None:
        while not is_over.wait(0.05):
            there.sendall(b"\x91")

    with here, there, ThreadPoolExecutor(1) as pool:
        trickling = pool.submit(trickle)
        try:
            with pytest.raises(TimeoutError):
                protocol.receive(here, protocol.KeyHostResponse, seconds=0.5)
        finally:
            is_over.set()
        trickling.result()


def test_each_of_many_threads_gets_its_own_answer(key_hosts: RunningHosts, backend: KeyHostBackend) -> None:
    keys = [backend.generate_rsa(label="mine", spread=True) for _ in range(3)]
    expected = {key.uri: backend.sign(key.uri, b"payload", RSA) for key in keys}
    uris = [key.uri for key in keys] * 30

    with ThreadPoolExecutor(24) as pool:
        signed = list(pool.map(lambda uri: (uri, backend.sign(uri, b"payload", RSA)), uris))

    assert all(signature == expected[uri] for uri, signature in signed)


def test_host_that_is_not_there_is_unavailable_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compliance.keys.hosts.backend.CONNECT_SECONDS", 600.0)
    backend = KeyHostBackend([KeyHostClient(tmp_path / "none", 0, Environment.TEST)], "alpha")
    started = time.monotonic()

    for _ in range(3):
        with pytest.raises(KeyServiceUnavailable):
            backend.sign("pkcs11:token=alpha;id=%01", b"payload", RSA)
        with pytest.raises(KeyServiceUnavailable):
            backend.check()

    # Six requests that waited for their time-outs would take twice as long.
    assert time.monotonic() - started < 25


def test_token_that_no_host_has_is_unavailable(key_hosts: RunningHosts) -> None:
    backend = key_hosts.backend("never-made")

    with pytest.raises(KeyServiceUnavailable):
        backend.check()
    with pytest.raises(KeyNotFound):
        backend.sign("pkcs11:token=elsewhere;id=%01", b"payload", RSA)


def test_settings_choose_hosts_and_need_no_pin(key_hosts: RunningHosts, settings: Settings) -> None:
    label = os.environ["PKCS11_TEST_TOKEN"]
    settings.PKCS11_MODULE, settings.PKCS11_HOSTS = "", 1
    settings.PKCS11_HOST_FOLDER = str(key_hosts.folder)
    settings.PKCS11_TOKENS = {"test": {"label": label, "pin": ""}}
    registry.reset()
    try:
        registry.backend_for(Environment.TEST).check()
        assert registry.backend_for(Environment.TEST).problems() == []
        settings.PKCS11_HOSTS = 2
        registry.reset()
        assert registry.backend_for(Environment.TEST).problems() == ["key host 1 does not respond"]
    finally:
        registry.reset()


def test_second_process_of_one_host_is_refused(key_hosts: RunningHosts, backend: KeyHostBackend) -> None:
    second = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "key_host", "--number", "0"],
        env=key_hosts.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode != 0
    assert "runs already" in second.stderr
    backend.check()


def test_shards_are_made_on_all_hosts_and_each_key_is_found_on_its_own(private_hosts: RunningHosts) -> None:
    backend = private_hosts.backend("alpha", shards=6)

    assert backend.provision() == backend.provision() == 6

    assert backend.problems() == []
    assert [holder.number for label in ("alpha-02", "alpha-03") for holder in backend._holders[label]] == [
        0,
        1,
    ]
    keys = [
        backend.perform(label, generate, 2048, "divided", False)
        for label in ("alpha-01", "alpha-03", "alpha-05")
    ]
    fresh = private_hosts.backend("alpha", shards=6)
    for key in keys:
        assert fresh.public_key(key.uri) == key.public_key
        assert fresh.sign(key.uri, b"payload", RSA)
    assert {key.uri for key in keys} == {entry.uri for entry in fresh.list_keys("divided")}


def test_keys_sign_again_once_their_host_is_restarted(private_hosts: RunningHosts) -> None:
    backend = private_hosts.backend("alpha")
    key = backend.generate_rsa(label="agent", spread=True)
    signature = backend.sign(key.uri, b"payload", RSA)

    private_hosts.kill()
    assert not signs(backend, key.uri)
    private_hosts.start()

    assert eventually(lambda: signs(backend, key.uri), seconds=START_SECONDS)
    assert backend.sign(key.uri, b"payload", RSA) == signature


def test_token_lost_and_back_behind_a_host(private_hosts: RunningHosts, two_hosts: TwoHosts) -> None:
    backend = private_hosts.backend("alpha")
    key = backend.generate_rsa(label="moved")
    away = two_hosts.tokens.with_name("away")
    shutil.move(two_hosts.tokens, away)

    failed = failures("host_sign")
    assert not signs(backend, key.uri)
    assert failures("host_sign") == failed + 1
    with pytest.raises(KeyServiceUnavailable):
        backend.check()
    private_hosts.kill()
    private_hosts.start()
    private_hosts.wait()
    fresh = private_hosts.backend("alpha")
    assert not signs(fresh, key.uri)
    shutil.move(away, two_hosts.tokens)

    assert eventually(lambda: signs(backend, key.uri) and signs(fresh, key.uri), seconds=START_SECONDS)


def test_host_that_hangs_ends_itself_with_a_traceback(tmp_path: Path) -> None:
    script = f"""
import django
django.setup()
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple
from compliance.keys.hosts import server
server.WATCHDOG_SECONDS = 0.5
calls_hang = chain([False], repeat(True))
server.KeyHostServer.is_blocked = property(lambda self: next(calls_hang))
server.KeyHostServer(Path({str(tmp_path / "hosts")!r}), 0).run()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "compliance.settings"},
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )

    assert done.returncode == 1
    assert "Timeout" in done.stderr


def failures(operation: str) -> float:
    samples = [sample for metric in metrics.HSM_CALLS.collect() for sample in metric.samples]
    labels = {"operation": operation, "outcome": "error"}
    return sum(one.value for one in samples if one.name.endswith("_total") and one.labels == labels)


def signs(backend: KeyHostBackend, uri: str) -> bool:
    try:
        backend.sign(uri, b"payload", RSA)
    except KeyServiceUnavailable:
        return False
    return True
