"""Key hosts: who may talk to them, what they make of nonsense, who has which token, and their end."""

import os
import shutil
import socket
import stat
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from compliance.environments import Environment
from compliance.keys import registry
from compliance.keys.base import KeyNotFound, KeyServiceUnavailable, SignatureAlgorithm
from compliance.keys.hosts import address, wire
from compliance.keys.hosts.backend import HostedBackend
from compliance.keys.hosts.keeper import HostsRunAlready, Keeper
from compliance.keys.hosts.line import QUICK_CALLS, Line
from compliance.keys.tests.hosted import START_SECONDS, RunningHosts, running_hosts
from compliance.keys.tests.softhsm import PIN, SO_PIN, PrivateSoftHsm
from compliance.tests.waiting import eventually, kill

RSA = SignatureAlgorithm.RSA_SHA256
TOKENS = {
    "PKCS11_TEST_TOKEN": "alpha",
    "PKCS11_TEST_PIN": PIN,
    "PKCS11_LIVE_TOKEN": "beta",
    "PKCS11_LIVE_PIN": PIN,
}


@pytest.fixture
def backend(key_hosts: RunningHosts) -> HostedBackend:
    return key_hosts.backend(os.environ["PKCS11_TEST_TOKEN"])


@pytest.fixture
def private_hosts(private_hsm: PrivateSoftHsm, tmp_path: Path) -> Iterator[RunningHosts]:
    """Two hosts of this test alone: the first has all tokens, the second has a place for some."""
    second = PrivateSoftHsm(tmp_path / "second")
    second.tokens.mkdir(parents=True)
    second.configure()
    confs = (private_hsm.configuration, second.configuration)
    with running_hosts(tmp_path / "hosts", count=2, confs=confs, **TOKENS) as hosts:
        yield hosts


def connect(hosts: RunningHosts) -> socket.socket:
    return address.connect(hosts.folder, 0, timeout=5)


def head(length: int, number: int = 1) -> bytes:
    return struct.pack("!II", length, number)


def test_sockets_are_for_their_user_alone(key_hosts: RunningHosts) -> None:
    found = (key_hosts.folder / "host-0.sock").stat()

    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(key_hosts.folder.stat().st_mode) == 0o700


def test_folder_that_others_may_enter_is_not_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    with pytest.raises(address.NotOurs):
        address.listen(tmp_path, 0, backlog=1)
    with pytest.raises(KeyServiceUnavailable):
        Line(tmp_path, 0).call(wire.Check(Environment.TEST), timeout=1)


def test_folder_with_a_long_path_serves(tmp_path: Path) -> None:
    folder = tmp_path / ("long-" * 30)

    with address.listen(folder, 3, backlog=1), address.connect(folder, 3, timeout=1) as connection:
        assert connection.fileno() > 0


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        head(2**31),
        head(wire.MAX_REQUEST + 1),
        head(4) + b"\xc1\xc1\xc1\xc1",
        head(1) + b"\x90",
        head(3) + wire.encode(wire.Check(Environment.TEST))[:3],
        head(1_000) + b"\x91" * 1_000,
    ],
    ids=["http", "huge", "too long", "not msgpack", "empty", "torn", "nested"],
)
def test_nonsense_costs_only_its_connection(
    key_hosts: RunningHosts, backend: HostedBackend, sent: bytes
) -> None:
    with connect(key_hosts) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)

        assert connection.recv(100) == b""
    backend.check()


def test_caller_who_goes_away_in_the_middle_harms_nobody(
    key_hosts: RunningHosts, backend: HostedBackend
) -> None:
    request = wire.encode(wire.GenerateEc(Environment.TEST, "left"))
    for _ in range(5):
        with connect(key_hosts) as connection:
            connection.sendall(head(len(request)) + request)

    backend.check()


def test_many_threads_share_few_connections_and_each_gets_its_own_answer(
    key_hosts: RunningHosts, backend: HostedBackend
) -> None:
    keys = [backend.generate_rsa(label="mine", spread=True) for _ in range(3)]
    expected = {key.uri: backend.sign(key.uri, b"payload", RSA) for key in keys}
    uris = [key.uri for key in keys] * 30

    with ThreadPoolExecutor(24) as pool:
        signed = list(pool.map(lambda uri: (uri, backend.sign(uri, b"payload", RSA)), uris))

    assert all(signature == expected[uri] for uri, signature in signed)
    assert all(len(line._open) <= QUICK_CALLS + 2 for line in backend._lines)


def test_host_that_is_not_there_is_unavailable_at_once(tmp_path: Path) -> None:
    backend = HostedBackend([Line(tmp_path / "none", 0)], Environment.TEST, "alpha")
    started = time.monotonic()

    for _ in range(3):
        with pytest.raises(KeyServiceUnavailable):
            backend.sign("pkcs11:token=alpha;id=%01", b"payload", RSA)
        with pytest.raises(KeyServiceUnavailable):
            backend.check()

    assert time.monotonic() - started < 1


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
        assert registry.absent_hosts() == []
        settings.PKCS11_HOSTS = 2
        assert registry.absent_hosts() == [1]
    finally:
        registry.reset()


def test_second_keeper_over_the_same_folder_is_refused(key_hosts: RunningHosts) -> None:
    with pytest.raises(HostsRunAlready):
        Keeper(key_hosts.folder, 1).run()


def test_shards_are_made_on_all_hosts_and_each_key_is_found_on_its_own(
    private_hosts: RunningHosts, private_hsm: PrivateSoftHsm
) -> None:
    backend = private_hosts.backend("alpha", shards=6)

    made = backend.make_shards(so_pin=SO_PIN, divided=True)
    again = backend.make_shards(so_pin=SO_PIN, divided=True)

    assert (made, again) == (4, 0)
    assert list(backend.shards().values()) == [True] * 6
    assert [line.number for label in ("alpha-02", "alpha-03") for line in backend._places[label]] == [0, 1]
    keys = [backend._generate(label, _in(label)) for label in ("alpha-01", "alpha-03", "alpha-05")]
    fresh = HostedBackend(private_hosts.lines(), Environment.TEST, "alpha", shards=6)
    for key in keys:
        assert fresh.public_key(key.uri) == key.public_key
        assert fresh.sign(key.uri, b"payload", RSA)
    assert {key.uri for key in keys} == {entry.uri for entry in fresh.list_keys("divided")}


def _in(token: str) -> wire.GenerateRsa:
    return wire.GenerateRsa(Environment.TEST, token, 2048, "divided", True)


def test_dead_host_is_replaced_and_keys_sign_again(private_hosts: RunningHosts) -> None:
    backend = private_hosts.backend("alpha")
    key = backend.generate_rsa(label="agent", spread=True)
    before, signature = private_hosts.pid(), backend.sign(key.uri, b"payload", RSA)

    private_hosts.kill()
    assert eventually(lambda: signs(backend, key.uri), seconds=START_SECONDS)

    assert private_hosts.pid() != before
    assert backend.sign(key.uri, b"payload", RSA) == signature


def test_token_lost_and_back_behind_a_host(private_hosts: RunningHosts, private_hsm: PrivateSoftHsm) -> None:
    backend = private_hosts.backend("alpha")
    key, pid = backend.generate_rsa(label="moved"), private_hosts.pid()
    away = private_hsm.tokens.with_name("away")
    shutil.move(private_hsm.tokens, away)

    assert not signs(backend, key.uri)
    with pytest.raises(KeyServiceUnavailable):
        backend.check()
    kill(pid)
    assert eventually(lambda: 0 not in private_hosts.absent(), seconds=START_SECONDS)
    assert not signs(backend, key.uri)
    shutil.move(away, private_hsm.tokens)

    assert eventually(lambda: signs(backend, key.uri), seconds=START_SECONDS)


def test_hosts_end_with_their_keeper(private_hosts: RunningHosts) -> None:
    pid = private_hosts.pid()

    private_hosts.keeper.kill()

    assert eventually(lambda: not Path(f"/proc/{pid}/stat").exists(), seconds=START_SECONDS)


def signs(backend: HostedBackend, uri: str) -> bool:
    try:
        backend.sign(uri, b"payload", RSA)
    except KeyServiceUnavailable:
        return False
    return True
