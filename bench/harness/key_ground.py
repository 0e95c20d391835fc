"""So many keys in a SoftHSM of their own, made once and kept: what growth and signing are measured on.

Every key is an object that the token made, under an id of its own. Generating ten thousand RSA keys would
take most of an hour, so each shard generates one and has it copied (C_CopyObject): the token has as many
objects of the same size to hold, read and search, while the numbers in them repeat.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.harness.place import Place
from compliance.localdev.console import StepFailed, step
from compliance.localdev.softhsm import SoftHsm
from compliance.localdev.state import read_json

LABEL = "bench"
PIN = "bench-pin"
SHARDS = 64


@dataclass(frozen=True)
class KeyGround:
    """`count` keys over 64 shards of the token `bench`."""

    place: Place
    count: int

    @property
    def folder(self) -> Path:
        return self.place.folder / f"keys-{self.count}"

    @property
    def notes(self) -> Path:
        """The keys' URIs; written last."""
        return self.folder / "uris.json"

    @cached_property
    def hsm(self) -> SoftHsm:
        return SoftHsm(
            folder=self.folder,
            module=self.place.servers.module,
            labels=(LABEL, f"{LABEL}-spare"),
            user_pin=PIN,
            so_pin="bench-so-pin",
            shards=SHARDS,
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
            self.ask("fill", str(self.count))

    def ask(self, what: str, *arguments: str) -> dict[str, float]:
        """What a child process with this HSM measured."""
        done = subprocess.run(
            self._command(what, *arguments),
            env=self.environment(),
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
        return [sys.executable, "-m", "bench.parts.key_child", what, *arguments]
