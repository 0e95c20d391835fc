"""Key hosts of a test's own: `manage.py key_host` in a process, and backends that talk to it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from compliance.environments import Environment
from compliance.keys.hosts import wire
from compliance.keys.hosts.backend import HostedBackend
from compliance.keys.hosts.line import Line, lines_to
from compliance.tests.waiting import eventually, kill

START_SECONDS = 60.0


@dataclass(frozen=True)
class RunningHosts:
    """A keeper with its hosts, for as long as `running_hosts()` lasts."""

    folder: Path
    count: int
    keeper: subprocess.Popen[str]

    made: list[Line] = field(default_factory=list)

    def lines(self) -> list[Line]:
        """Fresh ones, as another process has them."""
        self.made.extend(Line(self.folder, number) for number in range(self.count))
        return self.made[-self.count :]

    def backend(self, main: str, *, shards: int = 2) -> HostedBackend:
        return HostedBackend(lines_to(str(self.folder), self.count), Environment.TEST, main, shards=shards)

    def pid(self, number: int = 0) -> int:
        """The process of one host, as it says itself."""
        answer = self.lines()[number].call(wire.TakeStock(Environment.TEST), timeout=30)[0]
        assert isinstance(answer, wire.Stock)
        return answer.pid

    def absent(self) -> list[int]:
        """The hosts that do not answer now."""
        return [line.number for line in self.lines() if not line.is_there()]

    def kill(self, number: int = 0) -> None:
        """`kill -9`, once the host is there (again); returns when it is gone."""
        assert eventually(lambda: number not in self.absent(), seconds=START_SECONDS)
        kill(self.pid(number))


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
    keeper = subprocess.Popen(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "key_host"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    hosts = RunningHosts(folder, count, keeper)
    try:
        sockets = [folder / f"host-{number}.sock" for number in range(count)]
        assert eventually(
            lambda: keeper.poll() is not None or all(socket.exists() for socket in sockets),
            seconds=START_SECONDS,
        )
        assert keeper.poll() is None, keeper.communicate()[1]
        yield hosts
    finally:
        keeper.terminate()
        keeper.communicate(timeout=30)
        for line in (*hosts.made, *lines_to(str(folder), count)):
            line.close()
