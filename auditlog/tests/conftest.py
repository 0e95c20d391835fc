"""Witnesses for the tests of the audit log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from auditlog.sealing import keys
from auditlog.tests.factories import make_log_key
from auditlog.tests.witness_process import WitnessProcess, start_witness
from auditlog.tests.witnessed import write_policy
from auditlog.tlog.policy import Policy
from compliance.core.clock import now


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[WitnessProcess]:
    """A running witness of the current environment's log."""
    make_log_key()
    found = start_witness(tmp_path / "witness", keys.verifier_keys(now=now()))
    yield found
    found.kill()


@pytest.fixture
def trusted(witness: WitnessProcess, tmp_path: Path, settings: Settings) -> Policy:
    """A policy of the running witness and one that is never there; the running one is enough."""
    return write_policy(witness, tmp_path, settings, quorum="running")
