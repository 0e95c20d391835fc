"""The programs that the cluster runs: those of the wheels, and those of the distribution."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compliance.localdev.console import StepFailed
from compliance.localdev.install import prepare
from compliance.localdev.layout import Layout
from compliance.localdev.servers.postgres import postgres_bin

PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")


@dataclass(frozen=True)
class Programs:
    """Paths of programs; `postgres` is a folder."""

    postgres: Path
    patroni: Path
    etcd: Path
    haproxy: Path


def find_programs(layout: Layout) -> Programs:
    """Find all programs, and install Patroni among the benchmarks' requirements.

    Raises StepFailed if one is missing.
    """
    prepare("bench", venv=layout.bench_venv)
    return Programs(
        postgres=postgres_bin(), patroni=layout.bench_venv / "bin/patroni",
        etcd=_found("etcd", "etcd-server"), haproxy=_found("haproxy", "haproxy"),
    )  # fmt: skip


def _found(name: str, package: str) -> Path:
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *PLACES)))
    if path is None:
        raise StepFailed(
            f"{name} was not found", hint=f"install it (Debian, Ubuntu: apt-get install {package})"
        )
    return Path(path)


def fake_clock() -> Path | None:
    """Return libfaketime, which moves a program's clock, or None; FAKETIME_LIBRARY names another place."""
    given = os.environ.get("FAKETIME_LIBRARY")
    found = [Path(given)] if given else sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return next((path for path in found if path.is_file()), None)


def unprivileged() -> list[str]:
    """Return what precedes a command that refuses to run as root: a user namespace in which root is another.

    Files still belong to the same user, so that no folder is handed over.
    """
    if os.geteuid() != 0:
        return []
    unshare = shutil.which("unshare")
    if unshare is None:
        raise StepFailed("unshare was not found", hint="run as an ordinary user: PostgreSQL refuses root")
    return [unshare, "--user", "--map-user=65534", "--map-group=65534", "--"]


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that redirect PostgreSQL's, etcd's or Patroni's programs."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("PG", "ETCD_", "PATRONI_", "PYTHONPATH"))
    }
