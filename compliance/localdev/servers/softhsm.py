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
    """Tokens in `folder`, one per environment and its shards, opened with one generated PIN.

    Each key host has a configuration and a folder of tokens of its own; the first host has the main tokens.
    Without key hosts, or if these share all tokens, as clients of a network HSM do, all are where the first
    host has its own. Key hosts listen in `sockets`.
    """

    folder: Path
    module: ModuleLibrary
    labels: tuple[str, str]
    user_pin: str
    so_pin: str
    shards: int = 0
    hosts: int = 0
    is_shared: bool = False
    sockets: Path | None = None

    @property
    def conf(self) -> Path:
        return self.conf_of(0)

    def conf_of(self, host: int) -> Path:
        return self.folder / (f"softhsm2-{host}.conf" if host else "softhsm2.conf")

    def environment(self) -> dict[str, str]:
        """Variables of a process that uses keys; with key hosts they hold no PIN."""
        live, test = self.labels
        found = self.module.environment() | {
            "SOFTHSM2_CONF": str(self.conf),
            "PKCS11_LIVE_TOKEN": live,
            "PKCS11_TEST_TOKEN": test,
            "PKCS11_SHARDS": str(self.shards),
            "PKCS11_HOSTS": str(self.hosts),
        }
        if self.hosts:
            return found | {"PKCS11_HOST_FOLDER": str(self.sockets or self.folder / "sockets")}
        return found | self._pins()

    def host_environment(self) -> dict[str, str]:
        """Further variables of `manage.py key_host`."""
        if self.is_shared:
            return self._pins()
        return self._pins() | {"PKCS11_HOST_CONFS": ",".join(str(self.conf_of(n)) for n in self._places)}

    def made(self) -> bool:
        """Whether all tokens were made, and are where the configurations say."""
        for host in self._places:
            conf = self.conf_of(host)
            if self._missing(host) or not conf.exists() or conf.read_text() != self._configuration(host):
                return False
        return not self._strays()

    def ensure(self) -> None:
        """Write the configurations and initialise the tokens that were never made.

        A token that was made and is now gone is not replaced: certificates depend on its keys.
        """
        for stray in self._strays():
            stray.rename(self._tokens_of(0) / stray.name)
        for host in self._places:
            self._tokens_of(host).mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self.conf_of(host), self._configuration(host))
            if missing := self._missing(host):
                self._initialise(host, missing)
                write_json(self.folder / "made.json", {"made": self._made() + missing})

    @property
    def _places(self) -> range:
        return range(1 if self.is_shared else max(1, self.hosts))

    def _tokens_of(self, host: int) -> Path:
        """Return a host's folder of tokens; the first holds the others, so that moving it moves the HSM."""
        tokens = self.folder / "tokens"
        return tokens / f"host-{host}" if host else tokens

    def _strays(self) -> list[Path]:
        folders = self._tokens_of(0).glob("host-*")
        unused = (folder for folder in folders if int(folder.name[5:]) not in self._places)
        return [token for folder in unused for token in folder.iterdir()]

    def _pins(self) -> dict[str, str]:
        return {"PKCS11_LIVE_PIN": self.user_pin, "PKCS11_TEST_PIN": self.user_pin}

    def _made(self) -> list[str]:
        return list(read_json(self.folder / "made.json").get("made", []))

    def _missing(self, host: int) -> list[str]:
        numbers = range(host, self.shards, len(self._places))
        shards = [f"{label}-{number:02}" for label in self.labels for number in numbers]
        made = self._made()
        return [label for label in (*(() if host else self.labels), *shards) if label not in made]

    def _configuration(self, host: int) -> str:
        lines = ("objectstore.backend = file", "log.level = ERROR", "slots.removable = false", "")
        return "\n".join((f"directories.tokendir = {self._tokens_of(host)}", *lines))

    def _initialise(self, host: int, labels: list[str]) -> None:
        # In a process of its own: the library reads its configuration once, and may crash.
        order = {"labels": labels, "user_pin": self.user_pin, "so_pin": self.so_pin}
        command = [sys.executable, "-m", "compliance.keys.pkcs11.provisioning"]
        env = os.environ | self.environment() | {"SOFTHSM2_CONF": str(self.conf_of(host))}
        done = captured(command, text=json.dumps(order), env=env, cwd=ROOT)
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
