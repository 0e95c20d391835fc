"""A SoftHSM of one test's own, used from child processes so that the suite's tokens stay untouched."""

import ctypes
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
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return {**json.loads(out), "log": err}


def init_token(module: str, label: str) -> None:
    """Initialise the module's next free slot as a token with `PIN` (PKCS#11 v2.40 §5.5)."""
    library = ctypes.CDLL(module)
    session, count = ctypes.c_ulong(), ctypes.c_ulong()
    _expect_ok(library.C_Initialize(None))
    _expect_ok(library.C_GetSlotList(1, None, ctypes.byref(count)))
    slots = (ctypes.c_ulong * count.value)()
    _expect_ok(library.C_GetSlotList(1, slots, ctypes.byref(count)))
    free = ctypes.c_ulong(slots[count.value - 1])
    _expect_ok(library.C_InitToken(free, SO_PIN.encode(), len(SO_PIN), label.ljust(32).encode()))
    _expect_ok(library.C_OpenSession(free, 6, None, None, ctypes.byref(session)))
    _expect_ok(library.C_Login(session, 0, SO_PIN.encode(), len(SO_PIN)))
    _expect_ok(library.C_InitPIN(session, PIN.encode(), len(PIN)))
    _expect_ok(library.C_Finalize(None))


def _expect_ok(result: int) -> None:
    assert result == 0, f"PKCS#11 returned 0x{result:x}"
