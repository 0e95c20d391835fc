"""Programs that deployment files are checked with; a test without its program is skipped visibly."""

import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

DEPLOY = Path(settings.BASE_DIR) / "deploy"


def program(name: str) -> str:
    """Return the path of a program; skip the test where it is absent."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def output_of(*command: str, **options: object) -> str:
    """Return everything a command prints; fail with it if the command does."""
    done = subprocess.run(  # type: ignore[call-overload]
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout
    return str(done.stdout)
