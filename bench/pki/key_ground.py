"""So many keys in a SoftHSM of their own, made once and kept: what growth and signing are measured on.

Every key is an object that the token made, under an id of its own. Generating ten thousand RSA keys would
take most of an hour, so each shard generates one and has it copied (C_CopyObject): the token has as many
objects of the same size to hold, read and search, while the numbers in them repeat.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.harness import machine
from bench.harness.place import Place
from compliance.localdev.console import StepFailed, step
from compliance.localdev.servers.processes import wait_until
from compliance.localdev.servers.softhsm import SoftHsm
from compliance.localdev.state import read_json, write_json

Figures = dict[str, float]

LABEL = "bench"
PIN = "bench-pin"
SHARDS = 64
START_SECONDS = 120.0


@dataclass(frozen=True)
class Serving:
    """Key hosts that run: their processes, and how long the slowest took until it served."""

    pids: list[int]
    start_s: float

    def most_memory_mb(self) -> float:
        return max(machine.resident_mb(pid) for pid in self.pids)


@dataclass(frozen=True)
class KeyGround:
    """`count` keys over 64 shards of the token `bench`; with `hosts` divided between them."""

    place: Place
    count: int
    hosts: int = 0

    @property
    def folder(self) -> Path:
        name = f"keys-{self.count}-{self.hosts}-hosts" if self.hosts else f"keys-{self.count}"
        return self.place.folder / name

    @property
    def notes(self) -> Path:
        """The keys' URIs; written last."""
        return self.folder / "uris.json"

    @cached_property
    def sockets(self) -> Path:
        return Path(tempfile.gettempdir()) / f"bench-keys-{os.getuid()}-{os.getpid()}-{self.count}"

    @cached_property
    def hsm(self) -> SoftHsm:
        return SoftHsm(
            folder=self.folder,
            module=self.place.servers.module,
            labels=(LABEL, f"{LABEL}-spare"),
            user_pin=PIN,
            so_pin="bench-so-pin",
            shards=SHARDS,
            hosts=self.hosts,
            sockets=self.sockets,
        )

    def environment(self) -> dict[str, str]:
        return os.environ | self.hsm.environment() | {"KEY_GROUND": str(self.notes), "LOG_LEVEL": "WARNING"}

    def ensure(self) -> None:
        """Make what is missing."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if read_json(self.notes).get("uris"):
            return
        with step(f"{self.count:,} keys in {SHARDS} shards"):
            self.hsm.ensure()
            places, uris = max(1, self.hosts), []
            for place in range(places):
                conf = {"SOFTHSM2_CONF": str(self.hsm.conf_of(place))}
                self.ask("fill", str(self.count), str(place), str(places), environment=conf)
                uris += read_json(self.notes)["made"]
            write_json(self.notes, {"uris": uris})

    @contextmanager
    def serving(self) -> Iterator[Serving]:
        """Key hosts over the keys, as `manage.py key_host` runs them."""
        root = self.place.servers.layout.root
        began = time.monotonic()
        command = [sys.executable, str(root / "manage.py"), "key_host", "--number"]
        environment = self.environment() | self.hsm.host_environment()
        hosts = [
            subprocess.Popen([*command, str(number)], env=environment, cwd=root)
            for number in range(self.hosts)
        ]
        try:
            wanted = [self.sockets / f"host-{number}.sock" for number in range(self.hosts)]
            if not wait_until(lambda: all(path.exists() for path in wanted), seconds=START_SECONDS):
                raise StepFailed("the key hosts did not start", hint="read the messages above")
            yield Serving([host.pid for host in hosts], time.monotonic() - began)
        finally:
            for host in hosts:
                host.terminate()
                host.wait()

    def ask(self, what: str, *arguments: str, environment: dict[str, str] | None = None) -> Figures:
        """What a child process with this HSM measured."""
        done = subprocess.run(
            self._command(what, *arguments),
            env=self.environment() | (environment or {}),
            cwd=self.place.servers.layout.root,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise StepFailed(f"measuring {what} failed: {last}", hint=f"remove {self.folder} and try again")
        return dict(json.loads(done.stdout))

    def start(self, what: str) -> "subprocess.Popen[str]":
        """A child process that works beside a measurement; the caller ends it."""
        return subprocess.Popen(
            self._command(what), env=self.environment(), cwd=self.place.servers.layout.root, text=True
        )

    def _command(self, what: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bench.pki.key_child", what, *arguments]
