"""A SoftHSM of one test's own, used from child processes so that the suite's tokens stay untouched."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PIN = "correct-horse"
SO_PIN = "battery-staple"


@dataclass(frozen=True)
class PrivateSoftHsm:
    """Configuration and token directory of a private SoftHSM."""

    directory: Path

    @classmethod
    def create(cls, directory: Path, *, tokens: tuple[str, ...]) -> "PrivateSoftHsm":
        hsm = cls(directory)
        hsm.tokens.mkdir()
        hsm.configure()
        hsm.run("init", *tokens)
        return hsm

    def copy_to(self, directory: Path) -> "PrivateSoftHsm":
        """The same tokens in another place."""
        hsm = PrivateSoftHsm(directory)
        shutil.copytree(self.tokens, hsm.tokens)
        hsm.configure()
        return hsm

    def configure(self) -> None:
        """Write the configuration that points to the tokens."""
        self.configuration.write_text(
            f"directories.tokendir = {self.tokens}\nobjectstore.backend = file\nlog.level = ERROR\n"
        )

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens"

    @property
    def configuration(self) -> Path:
        return self.directory / "softhsm2.conf"

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """A scenario of `scenarios.py` in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "compliance.keys.tests.scenarios", *arguments],
            env={**os.environ, "SOFTHSM2_CONF": str(self.configuration), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environ: str) -> Any:
        """The scenario's result, from the JSON it prints; fails with what it wrote to stderr."""
        return self.finish(self.start(*arguments, **environ))

    @staticmethod
    def finish(process: subprocess.Popen[str]) -> Any:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return {**json.loads(out), "log": err}
