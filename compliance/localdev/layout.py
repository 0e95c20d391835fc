"""Where the embedded stack keeps its things; everything lies under one private folder."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Layout:
    """The folders and files of one checkout's stack."""

    root: Path
    local: Path

    @property
    def run(self) -> Path:
        """Process records and locks."""
        return self.local / "run"

    @property
    def log(self) -> Path:
        return self.local / "log"

    @property
    def secrets(self) -> Path:
        return self.local / "secrets.json"

    @property
    def ports(self) -> Path:
        return self.local / "ports.json"

    @property
    def demo(self) -> Path:
        """Where `bootstrap_dev` keeps the demo tenant's keys and log-ins."""
        return self.local / "demo.json"

    @property
    def supervisor(self) -> Path:
        """The record of the process that keeps web, worker, sender and beat up."""
        return self.run / "supervisor.json"

    @property
    def parts(self) -> Path:
        """The supervisor's notes: the web server's port and each part's pid."""
        return self.run / "parts.json"

    @property
    def up_lock(self) -> Path:
        """Held by the one command that is bringing the stack up or down."""
        return self.run / "up.lock"

    @property
    def setup_lock(self) -> Path:
        """Held while something is being made or started."""
        return self.run / "setup.lock"

    @property
    def users_lock(self) -> Path:
        """Held shared by everyone who needs the data servers; the last one to leave stops them."""
        return self.run / "users.lock"

    @property
    def bench_venv(self) -> Path:
        """The virtual environment of what the benchmarks compare the service with."""
        return self.local / "bench-venv"

    @property
    def bench(self) -> Path:
        """What the benchmarks keep from one run to the next."""
        return self.local / "bench"

    @property
    def digest(self) -> str:
        """A short name for this checkout, unique on the machine."""
        return hashlib.sha256(os.fsencode(self.local)).hexdigest()[:12]

    def prepare(self) -> None:
        """Make the folders; the private folder itself may be traversed, what it holds may not be read."""
        self.local.mkdir(mode=0o711, parents=True, exist_ok=True)
        for folder in (self.run, self.log):
            folder.mkdir(mode=0o700, exist_ok=True)


def find_layout() -> Layout:
    """The layout of this checkout; `LOCAL_DIR` in the environment moves it."""
    local = os.environ.get("LOCAL_DIR") or str(ROOT / ".local")
    return Layout(root=ROOT, local=Path(local).resolve())
