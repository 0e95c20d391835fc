"""Key hosts killed and stopped under load: no wrong signature, no half-made key, served again after it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from compliance.keys.base import KeyRef, KeyServiceUnavailable, SignatureAlgorithm
from compliance.keys.hosts.backend import KeyHostBackend
from compliance.keys.tests.hosted import START_SECONDS, RunningHosts, two_running_hosts
from compliance.keys.tests.softhsm import PrivateSoftHsm
from compliance.tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.drill]

RSA = SignatureAlgorithm.RSA_SHA256
KILLS = 8
# A caller is let go after 12 s; a busy machine may need longer.
LONGEST_CALL = 60.0


@pytest.fixture
def hosts(private_hsm: PrivateSoftHsm, tmp_path: Path) -> Iterator[RunningHosts]:
    with two_running_hosts(private_hsm, tmp_path) as running:
        running.backend("alpha", shards=4).provision()
        yield running


class Load:
    """Threads that sign without end, and what came of it."""

    def __init__(self, backend: KeyHostBackend, keys: list[KeyRef]) -> None:
        self._backend = backend
        self._stop = threading.Event()
        self.good = self.wrong = self.refused = 0
        self.slowest = 0.0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._sign, args=(key,)) for key in keys]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _sign(self, key: KeyRef) -> None:
        turn = 0
        while not self._stop.is_set():
            turn += 1
            data, began = str(turn).encode(), time.monotonic()
            try:
                outcome = "good" if is_right(key, self._backend.sign(key.uri, data, RSA), data) else "wrong"
            except KeyServiceUnavailable:
                outcome = "refused"
                time.sleep(0.005)
            with self._lock:
                setattr(self, outcome, getattr(self, outcome) + 1)
                self.slowest = max(self.slowest, time.monotonic() - began)


def is_right(key: KeyRef, signature: bytes, data: bytes) -> bool:
    assert isinstance(key.public_key, rsa.RSAPublicKey)
    try:
        key.public_key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def wait_until_all_sign(
    backend: KeyHostBackend, keys: list[KeyRef], *, before: Callable[[], None] = lambda: None
) -> None:
    def is_signed(key: KeyRef) -> bool:
        before()
        try:
            return is_right(key, backend.sign(key.uri, b"healed", RSA), b"healed")
        except KeyServiceUnavailable:
            return False

    for key in keys:
        assert eventually(partial(is_signed, key), seconds=START_SECONDS)


def start_if_ended(hosts: RunningHosts) -> None:
    """A watchdog may find that its host hung, and end it."""
    if hosts.processes[0].poll() is not None:
        hosts.start(0)


def spread_keys(backend: KeyHostBackend, count: int) -> list[KeyRef]:
    return [backend.generate_rsa(label="agent", spread=True) for _ in range(count)]


def test_hosts_killed_under_signing_threads(hosts: RunningHosts) -> None:
    backend = hosts.backend("alpha", shards=4)
    keys = spread_keys(backend, 6)

    with Load(backend, keys) as load:
        for turn in range(KILLS):
            time.sleep(0.3)
            hosts.kill(turn % 2)
            hosts.start(turn % 2)
            wait_until_all_sign(backend, keys)

    assert load.wrong == 0
    assert load.good > 100
    hosts.wait()
    assert load.slowest < LONGEST_CALL


def has(made: list[KeyRef], count: int) -> bool:
    return len(made) >= count


def test_hosts_killed_while_keys_are_generated(hosts: RunningHosts) -> None:
    backend = hosts.backend("alpha", shards=4)
    made: list[KeyRef] = []
    stop = threading.Event()

    def generate() -> None:
        while not stop.is_set():
            try:
                made.append(backend.generate_rsa(label="killed", spread=True))
            except KeyServiceUnavailable:
                time.sleep(0.01)

    threads = [threading.Thread(target=generate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(4):
        wanted = len(made) + 1
        assert eventually(partial(has, made, wanted), seconds=START_SECONDS)
        time.sleep(0.3)
        hosts.kill(turn % 2)
        hosts.start(turn % 2)
        wait_until_all_sign(backend, made[:1])
    stop.set()
    for thread in threads:
        thread.join()

    hosts.wait()
    listed = {entry.uri for entry in backend.list_keys("killed") if entry.has_private}
    assert len(made) >= 4
    assert {key.uri for key in made} <= listed
    assert all(is_right(key, backend.sign(key.uri, b"x", RSA), b"x") for key in made)
    assert len({key.spki for key in made}) == len(made)


def test_callers_of_a_stopped_host_are_let_go_and_served_when_it_goes_on(hosts: RunningHosts) -> None:
    backend = hosts.backend("alpha", shards=4)
    keys = spread_keys(backend, 4)

    with Load(backend, keys) as load:
        time.sleep(0.2)
        hosts.processes[0].send_signal(signal.SIGSTOP)
        assert eventually(lambda: load.refused > 0, seconds=START_SECONDS)
        hosts.processes[0].send_signal(signal.SIGCONT)
        wait_until_all_sign(backend, keys, before=partial(start_if_ended, hosts))

    assert load.wrong == 0
    assert load.slowest < LONGEST_CALL
