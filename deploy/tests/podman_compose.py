"""podman-compose for the drill; `python -m deploy.tests.podman_compose` installs it, pinned by hashes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from compliance.localdev.console import StepFailed, complain, say
from compliance.localdev.layout import Layout

PINS = Path(__file__).with_name("podman-compose.txt")
FOLDER = Layout().local / "tools" / "podman-compose"
PROGRAM = FOLDER / "podman_compose.py"


def fetch() -> Path:
    """Install podman-compose, and return its path. Raises: StepFailed."""
    making = FOLDER.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--target", str(making), "-r", str(PINS)),
        ],
        check=False,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    if done.returncode:
        raise StepFailed(f"podman-compose can't be installed: {done.stderr.strip()}", hint="try again later")
    shutil.rmtree(FOLDER, ignore_errors=True)
    making.rename(FOLDER)
    return PROGRAM


if __name__ == "__main__":
    try:
        say(str(PROGRAM if PROGRAM.exists() else fetch()))
    except StepFailed as failure:
        complain(failure)
        sys.exit(1)
