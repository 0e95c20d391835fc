"""Doctor on witnesses: a quorum that is missing for long, a witness that contradicts the log."""

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from auditlog import services
from auditlog.models import WitnessState
from auditlog.sealing import sealer
from auditlog.tests.factories import make_log_key
from auditlog.tests.log_keys import make_witness_key
from auditlog.vocabulary import AuditAction
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from ops.doctor import QUORUM_LATE, log_is_witnessed
from tenancy.tests.factories import ACTOR

SECOND = timedelta(seconds=1)


@pytest.fixture
def policy(tmp_path: Path, settings: Settings) -> None:
    """One witness, which must cosign."""
    path = tmp_path / "policy"
    path.write_text(f"witness w1 {make_witness_key().public.encode()} http://127.0.0.1:9\nquorum w1\n")
    settings.AUDIT_WITNESS_POLICY = str(path)


def test_without_witnesses_there_is_no_finding() -> None:
    assert log_is_witnessed(now()).problem == ""


def test_missing_quorum_is_a_finding_after_five_minutes(policy: None) -> None:
    make_log_key()
    services.record(tenant_id=new_id(), action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=now())
    sealer.seal_all()
    signed = sealer.sign_head(now=now())
    assert signed is not None

    soon, late = (
        log_is_witnessed(signed.signed_at + QUORUM_LATE + wait).problem for wait in (-SECOND, SECOND)
    )

    assert soon == ""
    assert late == f"not enough cosignatures since {signed.signed_at:%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        ("The witness answered 422: no", "w1: The witness answered 422: no"),
        ("The witness answered 503: busy", ""),
    ],
)
def test_witness_that_contradicts_is_a_finding(policy: None, problem: str, found: str) -> None:
    WitnessState.objects.create(name="w1", problem=problem)

    assert log_is_witnessed(now()).problem == found


def test_policy_that_cannot_be_read_is_a_finding(settings: Settings, tmp_path: Path) -> None:
    settings.AUDIT_WITNESS_POLICY = str(tmp_path / "missing")

    assert "AUDIT_WITNESS_POLICY" in log_is_witnessed(now()).problem
