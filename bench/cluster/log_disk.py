"""A small disk of its own for the cluster's logs, which a fault fills."""

import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compliance.localdev.console import StepFailed

SIZE = 128 * 1024 * 1024
PIECE = bytes(1024 * 1024)


@dataclass(frozen=True)
class LogDisk:
    """A file system in memory at `folder`, seen in our mount namespace only; `kept` gets the logs."""

    folder: Path
    kept: Path

    def mount(self) -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "logs", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StepFailed(f"no disk for logs: {done.stderr.strip()}", hint="run without root")

    def keep(self) -> None:
        """Copy the logs to where they outlive us."""
        shutil.copytree(self.folder, self.kept, dirs_exist_ok=True)

    def fill(self) -> str:
        """Write until nothing fits any more."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            for size in (len(PIECE), 4096, 1):
                with suppress(OSError):
                    while filler.write(PIECE[:size]) == size:
                        pass
        return str(self.folder)

    def empty(self) -> None:
        (self.folder / "filler").unlink()
