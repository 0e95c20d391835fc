"""SoftHSM for one stack or test run: the module, a private configuration, and the tokens."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..console import StepFailed
from ..layout import ROOT
from ..setup.softhsm_package import fetch_module
from ..state import write_private
from .processes import captured, tail

SYSTEM_FOLDERS = (
    "lib/softhsm",
    "lib64/softhsm",
    "lib64/pkcs11",
    "local/lib/softhsm",
    "lib/*-linux-gnu/softhsm",
)


@dataclass(frozen=True)
class SoftHsm:
    """Tokens in `folder`, one per environment and its shards, opened with one generated PIN."""

    folder: Path
    module: Path
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
        libraries = {}
        if not self.module.is_relative_to("/usr"):
            # The libraries that it needs and the system lacks were unpacked with it.
            places = (str(self.module.parents[1]), os.environ.get("LD_LIBRARY_PATH"))
            libraries = {"LD_LIBRARY_PATH": ":".join(filter(None, places))}
        return libraries | {
            "PKCS11_MODULE": str(self.module),
            "SOFTHSM2_CONF": str(self.conf),
            "PKCS11_LIVE_TOKEN": live,
            "PKCS11_TEST_TOKEN": test,
            "PKCS11_SHARDS": str(self.shards),
            "PKCS11_LIVE_PIN": self.user_pin,
            "PKCS11_TEST_PIN": self.user_pin,
        }

    @property
    def _stamp(self) -> Path:
        return self.folder / "made"

    def made(self) -> bool:
        """Whether the tokens were made, and are where the configuration says."""
        is_configured = self.conf.exists() and self.conf.read_text() == self._configuration()
        return is_configured and self._stamp.exists()

    def ensure(self) -> None:
        """Write the configuration, and initialise the tokens unless that was done.

        A token that was made and is now gone is not replaced: certificates depend on its keys.
        """
        (self.folder / "tokens").mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.conf, self._configuration())
        if not self._stamp.exists():
            shards = [f"{label}-{number:02}" for label in self.labels for number in range(self.shards)]
            self._initialise([*self.labels, *shards])
            self._stamp.touch()

    def _configuration(self) -> str:
        lines = ("objectstore.backend = file", "log.level = ERROR", "slots.removable = false", "")
        return "\n".join((f"directories.tokendir = {self.folder / 'tokens'}", *lines))

    def _initialise(self, labels: list[str]) -> None:
        # In a process of its own: the library reads its configuration once, and may crash.
        order = {"labels": labels, "user_pin": self.user_pin, "so_pin": self.so_pin}
        command = [sys.executable, "-m", "compliance.keys.pkcs11.provisioning"]
        done = captured(command, text=json.dumps(order), env=os.environ | self.environment(), cwd=ROOT)
        if done.returncode != 0:
            hint = f"check {self.module}, or remove {self.folder} to start with new tokens"
            raise StepFailed(f"the SoftHSM tokens can't be made: {tail(done, 1)}", hint=hint)


def find_module(folder: Path) -> Path:
    """Find PKCS11_MODULE, else the system's SoftHSM, else that of the distribution, unpacked in `folder`."""
    if given := os.environ.get("PKCS11_MODULE"):
        if not Path(given).is_file():
            raise StepFailed(f"PKCS11_MODULE={given} is no file", hint="correct or unset PKCS11_MODULE")
        return Path(given)
    installed = (path for place in SYSTEM_FOLDERS for path in Path("/usr").glob(f"{place}/libsofthsm2.so"))
    return next((path for path in installed if path.is_file()), None) or fetch_module(folder)
