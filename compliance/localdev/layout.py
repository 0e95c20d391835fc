"""The files and folders of the stack, all in one private folder."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Layout:
    """The paths of one checkout's stack."""

    def __init__(self, *, root: Path, local: Path) -> None:
        self.root = root
        self.local = local
        self.log = local / "log"
        # Archives of events that were dropped.
        self.archive = local / "archive"
        self.secrets = local / "secrets.json"
        self.ports = local / "ports.json"
        # `bootstrap_dev` writes the demo tenant's API keys and log-ins here.
        self.demo = local / "demo.json"
        # Process records and locks.
        self.run = local / "run"
        self.supervisor = self.run / "supervisor.json"
        # What the parts count (METRICS_DIR); begins empty with each stack.
        self.metrics = self.run / "metrics"
        # The supervisor's state: the web server's port, and the pid of each part.
        self.parts = self.run / "parts.json"
        # Held by the one command that brings the stack up.
        self.up_lock = self.run / "up.lock"
        # Held while servers are made, started or stopped.
        self.setup_lock = self.run / "setup.lock"
        # Held shared by each user of the data servers; the last user stops them.
        self.users_lock = self.run / "users.lock"
        # What the benchmarks compare the service with is installed apart.
        self.bench_venv = local / "bench-venv"
        self.bench = local / "bench"

    def prepare(self) -> None:
        """Make the folders. Others may traverse the private folder, but not read its contents."""
        self.local.mkdir(mode=0o711, parents=True, exist_ok=True)
        for folder in (self.run, self.log, self.archive):
            folder.mkdir(mode=0o700, exist_ok=True)


def find_layout() -> Layout:
    """Return the layout of this checkout; LOCAL_DIR moves its private folder."""
    local = os.environ.get("LOCAL_DIR") or str(ROOT / ".local")
    return Layout(root=ROOT, local=Path(local).resolve())
