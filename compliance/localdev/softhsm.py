"""SoftHSM for one stack or test run: the module, a private configuration, and two tokens."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .console import StepFailed
from .redis import write_private
from .softhsm_package import fetch_module
from .state import read_json, write_json

SYSTEM_MODULES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
)


@dataclass(frozen=True)
class Module:
    """The PKCS#11 library, and the folder of libraries it needs that the system lacks (None: none)."""

    path: Path
    libraries: Path | None = None

    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to load the module."""
        variables = {"PKCS11_MODULE": str(self.path)}
        if self.libraries is not None:
            given = os.environ.get("LD_LIBRARY_PATH")
            variables["LD_LIBRARY_PATH"] = ":".join(filter(None, (str(self.libraries), given)))
        return variables


@dataclass(frozen=True)
class SoftHsm:
    """Tokens in `folder`, one per environment and its shards, opened with one generated PIN."""

    folder: Path
    module: Module
    labels: tuple[str, str]
    user_pin: str
    so_pin: str
    shards: int = 0

    @property
    def all_labels(self) -> list[str]:
        """The main tokens' labels, and those of each one's shards."""
        numbered = [f"{label}-{number:02}" for label in self.labels for number in range(self.shards)]
        return [*self.labels, *numbered]

    @property
    def conf(self) -> Path:
        return self.folder / "softhsm2.conf"

    def environment(self) -> dict[str, str]:
        """The part of the environment contract that opens the tokens."""
        live, test = self.labels
        return self.module.environment() | {
            "SOFTHSM2_CONF": str(self.conf),
            "PKCS11_LIVE_TOKEN": live,
            "PKCS11_LIVE_PIN": self.user_pin,
            "PKCS11_TEST_TOKEN": test,
            "PKCS11_TEST_PIN": self.user_pin,
            "PKCS11_SHARDS": str(self.shards),
        }

    def made(self) -> bool:
        """Whether all tokens were made, and the configuration still says where they are."""
        return self.conf.exists() and self.conf.read_text() == self._configuration() and not self._missing()

    def ensure(self) -> None:
        """Write the configuration and initialise the tokens that were never made.

        One that was made and is now gone is not replaced: its keys are what certificates hang on.
        """
        for folder in (self.folder, self._tokens):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.conf, self._configuration())
        missing = self._missing()
        if missing:
            self._initialise(missing)
            write_json(self._notes, {"made": self._made() + missing})

    @property
    def _tokens(self) -> Path:
        return self.folder / "tokens"

    @property
    def _notes(self) -> Path:
        return self.folder / "made.json"

    def _made(self) -> list[str]:
        return list(read_json(self._notes).get("made", []))

    def _missing(self) -> list[str]:
        made = self._made()
        return [label for label in self.all_labels if label not in made]

    def _configuration(self) -> str:
        lines = (f"directories.tokendir = {self._tokens}", "objectstore.backend = file", "log.level = ERROR")
        return "\n".join((*lines, "slots.removable = false", ""))

    def _initialise(self, labels: list[str]) -> None:
        """Ask a process of its own: the library reads its configuration once, and may crash."""
        order = {"labels": labels, "user_pin": self.user_pin, "so_pin": self.so_pin}
        done = subprocess.run(
            [sys.executable, "-m", "compliance.localdev.tokens"],
            input=json.dumps(order),
            env=os.environ | self.environment(),
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise StepFailed(
                f"the SoftHSM tokens can't be made: {reason}",
                hint=f"check {self.module.path}, or remove {self.folder} to start with new tokens",
            )


def find_module(folder: Path) -> Module:
    """PKCS11_MODULE, else the system's SoftHSM, else the distribution's package unpacked into `folder`."""
    given = os.environ.get("PKCS11_MODULE")
    if given:
        if not Path(given).is_file():
            raise StepFailed(f"PKCS11_MODULE={given} is no file", hint="correct or unset PKCS11_MODULE")
        return Module(Path(given))
    installed = [*map(Path, SYSTEM_MODULES), *Path("/usr/lib").glob("*-linux-gnu/softhsm/libsofthsm2.so")]
    for path in installed:
        if path.is_file():
            return Module(path)
    return Module(*fetch_module(folder))
