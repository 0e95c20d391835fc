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
    """Tokens in `folder`, one per environment and its shards, opened with one generated PIN.

    With `hosts` (key host processes, which listen in `sockets`) each has a configuration and a folder of
    tokens of its own: the first the main tokens and whatever was made without hosts, all of them shards.
    """

    folder: Path
    module: Module
    labels: tuple[str, str]
    user_pin: str
    so_pin: str
    shards: int = 0
    hosts: int = 0
    sockets: Path | None = None

    @property
    def all_labels(self) -> list[str]:
        """The main tokens' labels, and those of each one's shards."""
        return [label for host in range(self._places) for label in self.labels_of(host)]

    def labels_of(self, host: int) -> list[str]:
        """The tokens that are made in one host's folder."""
        numbers = range(host, self.shards, self._places)
        shards = [f"{label}-{number:02}" for label in self.labels for number in numbers]
        return [*self.labels, *shards] if host == 0 else shards

    @property
    def conf(self) -> Path:
        """The configuration of the main tokens."""
        return self.conf_of(0)

    def conf_of(self, host: int) -> Path:
        return self.folder / (f"softhsm2-{host}.conf" if host else "softhsm2.conf")

    def environment(self) -> dict[str, str]:
        """The part of the environment contract for a process that uses keys: with hosts, no PIN is in it."""
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
        """What `manage.py key_host` has besides."""
        confs = ",".join(str(self.conf_of(host)) for host in range(self._places))
        return self._pins() | {"PKCS11_HOST_CONFS": confs}

    def made(self) -> bool:
        """Whether all tokens were made, and the configurations still say where they are."""
        return all(map(self._is_configured, range(self._places))) and not self._missing(self.all_labels)

    def ensure(self) -> None:
        """Write the configurations and initialise the tokens that were never made.

        One that was made and is now gone is not replaced: its keys are what certificates hang on.
        """
        for host in range(self._places):
            self._tokens_of(host).mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self.conf_of(host), self._configuration(host))
            missing = self._missing(self.labels_of(host))
            if missing:
                self._initialise(host, missing)
                write_json(self._notes, {"made": self._made() + missing})

    @property
    def _places(self) -> int:
        return max(1, self.hosts)

    def _tokens_of(self, host: int) -> Path:
        """One folder holds them all, so that moving it takes the whole HSM away; SoftHSM passes over what is
        no token in it.
        """
        tokens = self.folder / "tokens"
        return tokens / f"host-{host}" if host else tokens

    @property
    def _notes(self) -> Path:
        return self.folder / "made.json"

    def _pins(self) -> dict[str, str]:
        return {"PKCS11_LIVE_PIN": self.user_pin, "PKCS11_TEST_PIN": self.user_pin}

    def _made(self) -> list[str]:
        return list(read_json(self._notes).get("made", []))

    def _missing(self, labels: list[str]) -> list[str]:
        made = self._made()
        return [label for label in labels if label not in made]

    def _is_configured(self, host: int) -> bool:
        conf = self.conf_of(host)
        return conf.exists() and conf.read_text() == self._configuration(host)

    def _configuration(self, host: int) -> str:
        tokens = self._tokens_of(host)
        lines = (f"directories.tokendir = {tokens}", "objectstore.backend = file", "log.level = ERROR")
        return "\n".join((*lines, "slots.removable = false", ""))

    def _initialise(self, host: int, labels: list[str]) -> None:
        """Ask a process of its own: the library reads its configuration once, and may crash."""
        order = {"labels": labels, "user_pin": self.user_pin, "so_pin": self.so_pin}
        done = subprocess.run(
            [sys.executable, "-m", "compliance.localdev.tokens"],
            input=json.dumps(order),
            env=os.environ | self.environment() | {"SOFTHSM2_CONF": str(self.conf_of(host))},
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
