"""The log's state, over HTTP too: sizes, the queue, the quorum and its age, each witness."""

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from auditlog import services
from auditlog.models import WitnessState
from auditlog.proving.proofs import log_state
from auditlog.sealing.tree import Backlog
from auditlog.submitting import gathering
from auditlog.tests.factories import ACTOR, make_log_key
from auditlog.tests.witness_process import WitnessProcess
from auditlog.tests.witnessed import NOBODY, grow, write_policy
from auditlog.tlog.policy import Policy
from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient

PATHS = {Environment.LIVE: "/v1/audit-log/status", Environment.TEST: "/v1/audit-log/test/status"}
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("environment", list(Environment))
def test_status_tells_the_sizes_to_everyone(environment: Environment, api: ApiClient) -> None:
    with environments.use(environment):
        make_log_key()
        size = grow(3).size

    status = api.get(PATHS[environment])

    assert status.status_code == 200
    assert status.json() == {
        "data": {
            "tree_size": size,
            "signed_size": size,
            "published_size": size,
            "quorum": "none",
            "witnesses": [],
        }
    }


def test_status_of_an_environment_is_its_own(api: ApiClient) -> None:
    make_log_key()
    before = api.get(PATHS[Environment.TEST]).json()

    grow(3)

    assert api.get(PATHS[Environment.TEST]).json() == before


def test_status_names_witnesses_without_addresses_and_problems(trusted: Policy, api: ApiClient) -> None:
    size = grow().size
    gathering.gather(now=now())

    status = api.get(PATHS[Environment.LIVE])
    found = status.json()["data"]

    assert found["quorum"] == "met"
    assert [list(witness) for witness in found["witnesses"]] == [["name", "size", "cosigned_at"]] * 2
    running, gone = found["witnesses"]
    assert (running["name"], running["size"]) == (trusted.witnesses[0].key.name, size)
    assert running["cosigned_at"]
    assert gone == {"name": "gone.example", "size": 0, "cosigned_at": None}
    assert NOBODY not in status.content.decode()
    assert WitnessState.objects.get(name="gone").problem not in status.content.decode()


def test_status_survives_a_policy_that_cannot_be_read(
    tmp_path: Path, settings: Settings, api: ApiClient
) -> None:
    (tmp_path / "policy").write_bytes(b"witness \xff\n")
    settings.AUDIT_WITNESS_POLICY = str(tmp_path / "policy")

    found = api.get(PATHS[Environment.LIVE])

    assert found.status_code == 200
    assert (found.json()["data"]["quorum"], found.json()["data"]["witnesses"]) == ("missing", [])
    assert "AUDIT_WITNESS_POLICY" in log_state(now=now()).policy_problem


def test_queue_is_told_with_its_oldest_entry() -> None:
    make_log_key()
    sealed = grow()
    recorded_at = now() - MINUTE
    for moment in (recorded_at, now()):
        services.record(tenant_id=new_id(), action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=moment)

    state = log_state(now=now())

    assert state.backlog == Backlog(unsealed=2, unsigned=0, oldest=recorded_at)
    assert state.tree_size == sealed.size


def test_quorum_is_missing_since_the_oldest_checkpoint_without_it(trusted: Policy) -> None:
    start = now()
    grow(at=start)
    gathering.gather(now=start)
    grow(at=start + MINUTE)
    grow(at=start + 2 * MINUTE)

    soon, late = (log_state(now=start + wait) for wait in (MINUTE, 3 * MINUTE))

    assert (soon.quorum, soon.missing_since) == ("met", None)
    assert (late.quorum, late.missing_since) == ("missing", start + MINUTE)


def test_quorum_never_met_is_missing_since_the_first_checkpoint(
    witness: WitnessProcess, tmp_path: Path, settings: Settings
) -> None:
    write_policy(witness, tmp_path, settings, quorum="both")
    grow()

    state = log_state(now=now() + MINUTE)

    assert state.quorum == "missing"
    assert state.missing_since is not None


@pytest.mark.parametrize(
    ("problem", "contradicts"),
    [
        ("", False),
        ("No complete answer within 5 s", False),
        ("The witness answered 503: busy", False),
        ("The witness answered 422: the proof leads to other roots", True),
        ("The witness answered 409: 17", True),
        ("The witness has a tree of 7 entries", False),
    ],
)
def test_witness_that_refuses_a_proof_contradicts(trusted: Policy, problem: str, contradicts: bool) -> None:
    WitnessState.objects.create(name="running", problem=problem)

    state = log_state(now=now())

    assert state.is_contradicted == contradicts
