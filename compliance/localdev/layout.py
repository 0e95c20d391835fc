"""The files and folders of the stack, all in one private folder."""

import os
from pathlib import Path

from .servers.processes import Supervisor

ROOT = Path(__file__).resolve().parents[2]


class Layout:
    """The paths of one checkout's stack; `local` is its private folder, which LOCAL_DIR moves."""

    def __init__(self, *, root: Path = ROOT, local: Path | None = None) -> None:
        local = local or Path(os.environ.get("LOCAL_DIR") or ROOT / ".local").resolve()
        self.root = root
        self.local = local
        self.log = local / "log"
        self.archive = local / "archive"  # of events that were dropped
        self.secrets = local / "secrets.json"
        self.ports = local / "ports.json"
        self.demo = local / "demo.json"  # `bootstrap_dev` writes the tenant's API keys and log-ins
        self.run = local / "run"
        self.supervisor = Supervisor(self.run)
        self.parts = self.run / "parts.json"  # its state: the web server's port, and the pid of each part
        self.metrics = self.run / "metrics"  # METRICS_DIR; begins empty with each stack
        self.up_lock = self.run / "up.lock"  # held by the one command that brings the stack up
        self.setup_lock = self.run / "setup.lock"  # held while servers are made, started or stopped
        self.users_lock = self.run / "users.lock"  # held shared by each user of the data servers
        self.bench_venv = local / "bench-venv"  # what the benchmarks compare the service with
        self.bench = local / "bench"

    def prepare(self) -> None:
        """Make the folders. Others may traverse the private folder, but not read its contents."""
        self.local.mkdir(mode=0o711, parents=True, exist_ok=True)
        for folder in (self.run, self.log, self.archive):
            folder.mkdir(mode=0o700, exist_ok=True)
