"""Programs that deployment files are checked with; a test without its program is skipped visibly."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

DEPLOY = Path(settings.BASE_DIR) / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
PARTS: dict[str, Any] = COMPOSE["services"]


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


def make_certificate(folder: Path) -> None:
    """Make `tls.crt` and `tls.key` in the folder: of agents.example.org and 127.0.0.1, signed by itself."""
    output_of(
        *(program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")),
        *("-subj", "/CN=agents.example.org"),
        *("-addext", "subjectAltName=IP:127.0.0.1,DNS:agents.example.org"),
    )
