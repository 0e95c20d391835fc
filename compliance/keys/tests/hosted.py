"""Key hosts of a test's own: `manage.py key_host` processes, and backends that talk to them."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from compliance.core.environments import Environment
from compliance.keys.hosts.backend import KeyHostBackend, KeyHostClient
from compliance.keys.tests.softhsm import PIN, SO_PIN, PrivateSoftHsm
from compliance.tests.waiting import eventually

START_SECONDS = 60.0


@dataclass(frozen=True)
class RunningHosts:
    """`count` key hosts, for as long as `running_hosts()` lasts."""

    folder: Path
    count: int
    environment: Mapping[str, str]
    has_divided_tokens: bool = False
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def clients(self) -> list[KeyHostClient]:
        return [KeyHostClient(self.folder, number, Environment.TEST) for number in range(self.count)]

    def backend(self, main: str, *, shards: int = 2) -> KeyHostBackend:
        return KeyHostBackend(
            self.clients(), main, shards=shards, so_pin=SO_PIN, has_divided_tokens=self.has_divided_tokens
        )

    def absent(self) -> list[int]:
        """The hosts that do not respond now."""
        return [client.number for client in self.clients() if not client.is_there()]

    def start(self, number: int = 0) -> None:
        """Start a host, as a process supervisor does; returns at once."""
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "key_host", "--number", str(number)]
        self.processes[number] = subprocess.Popen(command, env=self.environment)

    def kill(self, number: int = 0) -> None:
        """`kill -9`, and wait until the process is gone."""
        self.processes[number].kill()
        self.processes[number].wait()

    def wait(self) -> None:
        """Wait until every host responds."""
        assert eventually(lambda: self._has_ended() or not self.absent(), seconds=START_SECONDS)
        assert not self._has_ended()

    def end(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(timeout=30)

    def _has_ended(self) -> bool:
        return any(process.poll() is not None for process in self.processes.values())


@contextmanager
def running_hosts(
    folder: Path, *, count: int = 1, confs: Sequence[Path] = (), **environ: str
) -> Iterator[RunningHosts]:
    """Hosts over the tokens of the test run, or over those that `confs` and `environ` name."""
    environment = {
        **os.environ,
        "PKCS11_HOSTS": str(count),
        "PKCS11_HOST_FOLDER": str(folder),
        "PKCS11_HOST_CONFS": ",".join(map(str, confs)),
        **environ,
    }
    hosts = RunningHosts(folder, count, environment, has_divided_tokens=bool(confs))
    try:
        for number in range(count):
            hosts.start(number)
        hosts.wait()
        yield hosts
    finally:
        hosts.end()


@contextmanager
def two_running_hosts(first: PrivateSoftHsm, folder: Path) -> Iterator[RunningHosts]:
    """Two hosts: one over the tokens of `first`, one with a place for some."""
    second = PrivateSoftHsm(folder / "second")
    second.tokens.mkdir(parents=True)
    second.configure()
    tokens = {"PKCS11_TEST_TOKEN": "alpha", "PKCS11_LIVE_TOKEN": "beta"}
    pins = {"PKCS11_TEST_PIN": PIN, "PKCS11_LIVE_PIN": PIN}
    confs = (first.configuration, second.configuration)
    with running_hosts(folder / "hosts", count=2, confs=confs, **tokens, **pins) as hosts:
        yield hosts
