"""SoftHSM for one stack or test run: the module, a private configuration, and the tokens."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..console import StepFailed
from ..layout import ROOT
from ..setup.softhsm_package import fetch_module
from ..state import read_json, write_json, write_private
from .processes import captured, tail

SYSTEM_FOLDERS = (
    "lib/softhsm",
    "lib64/softhsm",
    "lib64/pkcs11",
    "local/lib/softhsm",
    "lib/*-linux-gnu/softhsm",
)


@dataclass(frozen=True)
class ModuleLibrary:
    """The PKCS#11 library, and the folder of libraries it needs that the system lacks (None: none)."""

    path: Path
    libraries: Path | None = None

    def environment(self) -> dict[str, str]:
        """Variables that a process needs to load the module."""
        variables = {"PKCS11_MODULE": str(self.path)}
        if self.libraries is not None:
            given = os.environ.get("LD_LIBRARY_PATH")
            variables["LD_LIBRARY_PATH"] = ":".join(filter(None, (str(self.libraries), given)))
        return variables


@dataclass(frozen=True)
class SoftHsm:
    """Tokens in `folder`, one per environment and its shards, opened with one generated PIN."""

    folder: Path
    module: ModuleLibrary
    labels: tuple[str, str]
    user_pin: str
    so_pin: str
    shards: int = 0

    @property
    def conf(self) -> Path:
        return self.folder / "softhsm2.conf"

    def environment(self) -> dict[str, str]:
        """Variables of a process that uses keys."""
        live, test = self.labels
        return self.module.environment() | {
            "SOFTHSM2_CONF": str(self.conf),
            "PKCS11_LIVE_TOKEN": live,
            "PKCS11_TEST_TOKEN": test,
            "PKCS11_SHARDS": str(self.shards),
            "PKCS11_LIVE_PIN": self.user_pin,
            "PKCS11_TEST_PIN": self.user_pin,
        }

    def made(self) -> bool:
        """Whether all tokens were made, and are where the configuration says."""
        is_configured = self.conf.exists() and self.conf.read_text() == self._configuration()
        return is_configured and not self._missing()

    def ensure(self) -> None:
        """Write the configuration and initialise the tokens that were never made.

        A token that was made and is now gone is not replaced: certificates depend on its keys.
        """
        (self.folder / "tokens").mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.conf, self._configuration())
        if missing := self._missing():
            self._initialise(missing)
            write_json(self.folder / "made.json", {"made": self._made() + missing})

    def _made(self) -> list[str]:
        return list(read_json(self.folder / "made.json").get("made", []))

    def _missing(self) -> list[str]:
        shards = (f"{label}-{number:02}" for label in self.labels for number in range(self.shards))
        made = self._made()
        return [label for label in (*self.labels, *shards) if label not in made]

    def _configuration(self) -> str:
        lines = ("objectstore.backend = file", "log.level = ERROR", "slots.removable = false", "")
        return "\n".join((f"directories.tokendir = {self.folder / 'tokens'}", *lines))

    def _initialise(self, labels: list[str]) -> None:
        # In a process of its own: the library reads its configuration once, and may crash.
        order = {"labels": labels, "user_pin": self.user_pin, "so_pin": self.so_pin}
        command = [sys.executable, "-m", "compliance.keys.pkcs11.provisioning"]
        done = captured(command, text=json.dumps(order), env=os.environ | self.environment(), cwd=ROOT)
        if done.returncode != 0:
            hint = f"check {self.module.path}, or remove {self.folder} to start with new tokens"
            raise StepFailed(f"the SoftHSM tokens can't be made: {tail(done, 1)}", hint=hint)


def find_module(folder: Path) -> ModuleLibrary:
    """Find PKCS11_MODULE, else the system's SoftHSM, else that of the distribution, unpacked in `folder`."""
    if given := os.environ.get("PKCS11_MODULE"):
        if not Path(given).is_file():
            raise StepFailed(f"PKCS11_MODULE={given} is no file", hint="correct or unset PKCS11_MODULE")
        return ModuleLibrary(Path(given))
    installed = (path for folder in SYSTEM_FOLDERS for path in Path("/usr").glob(f"{folder}/libsofthsm2.so"))
    found = next((path for path in installed if path.is_file()), None)
    return ModuleLibrary(found) if found else ModuleLibrary(*fetch_module(folder))
