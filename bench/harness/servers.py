"""What a benchmark with servers of its own needs: an environment without the caller's, and Citus's build."""

from collections.abc import Mapping
from pathlib import Path

from compliance.localdev.console import StepFailed
from compliance.localdev.servers.citus import BUILD, citus_build


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that redirect PostgreSQL's, etcd's or Patroni's programs."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("PG", "ETCD_", "PATRONI_", "PYTHONPATH"))
    }


def find_build() -> Path:
    """Return the program that installs Citus. Raises StepFailed."""
    found = citus_build()
    if found is None:
        raise StepFailed(f"{BUILD} names no build of Citus", hint=f"set {BUILD}=/folder")
    return found
