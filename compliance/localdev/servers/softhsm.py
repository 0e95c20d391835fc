"""SoftHSM for one stack or test run: the module, a private configuration, and the tokens."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from ..console import StepFailed, step
from ..layout import ROOT
from ..state import write_private
from .processes import captured, tail

LIBRARY = "libsofthsm2.so"
PLACES = ("lib/softhsm", "lib64/softhsm", "lib64/pkcs11", "local/lib/softhsm", "lib/*-linux-gnu/softhsm")
INSTALL_HINT = (
    "install SoftHSM (Debian, Ubuntu: apt-get install softhsm2; Fedora: dnf install softhsm; "
    "Alpine: apk add softhsm), or set PKCS11_MODULE to a PKCS#11 library"
)
CONFIGURATION = """\
directories.tokendir = {tokens}
objectstore.backend = file
log.level = ERROR
slots.removable = false
"""


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

    def ensure(self) -> None:
        """Write the configuration, and initialise the tokens unless that was done.

        A token that was made and is now gone is not replaced: certificates depend on its keys.
        """
        tokens, stamp = self.folder / "tokens", self.folder / "made"
        tokens.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.conf, CONFIGURATION.format(tokens=tokens))
        if stamp.exists():
            return
        shards = [f"{label}-{number:02}" for label in self.labels for number in range(self.shards)]
        order = {"labels": [*self.labels, *shards], "user_pin": self.user_pin, "so_pin": self.so_pin}
        # In a process of its own: the library reads its configuration once, and may crash.
        command = [sys.executable, "-m", "compliance.keys.pkcs11.provisioning"]
        with step("SoftHSM tokens"):
            done = captured(command, text=json.dumps(order), env=os.environ | self.environment(), cwd=ROOT)
        if done.returncode != 0:
            hint = f"check {self.module}, or remove {self.folder} to start with new tokens"
            raise StepFailed(f"the SoftHSM tokens can't be made: {tail(done, 1)}", hint=hint)
        stamp.touch()


def find_module(folder: Path) -> Path:
    """Find PKCS11_MODULE, else the system's SoftHSM, else that of the distribution, unpacked in `folder`."""
    if given := os.environ.get("PKCS11_MODULE"):
        if not Path(given).is_file():
            raise StepFailed(f"PKCS11_MODULE={given} is no file", hint="correct or unset PKCS11_MODULE")
        return Path(given)
    for place in PLACES:
        for path in Path("/usr").glob(f"{place}/{LIBRARY}"):
            if path.is_file():
                return path
    if not folder.exists():
        if shutil.which("apt-get") is None:
            raise StepFailed("SoftHSM was not found on this system", hint=INSTALL_HINT)
        with step("SoftHSM from the distribution's package"):
            done = captured([str(ROOT / "compliance/localdev/fetch-softhsm"), str(folder)])
            if done.returncode != 0:
                raise StepFailed(f"SoftHSM can't be fetched: {tail(done)}", hint=INSTALL_HINT)
    return next(path for path in folder.rglob(LIBRARY) if not path.is_symlink())
