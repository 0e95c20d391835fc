"""Step by step from the row to the witnesses: what passes, what is open, and what was tampered with."""

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from auditlog.disposal import erasing
from auditlog.errors import EntryNotFound
from auditlog.leaves import ERASABLE
from auditlog.models import AuditEntry, Leaf
from auditlog.sealing import keys, sealer
from auditlog.sealing.tree import StoredTiles, latest_checkpoint
from auditlog.submitting import gathering
from auditlog.tests.factories import ACTOR, make_entry, make_log_key, seal_and_sign
from auditlog.tests.log_keys import SigningKey, signed
from auditlog.tests.witness_process import WitnessProcess
from auditlog.tests.witnessed import grow, unguarded, write_policy
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.policy import Policy
from auditlog.verifying.one_entry import CheckedStep, EntryCheck, StepOutcome, verify
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.stores import sql

CONTENTS, PATH, SIGNATURE = "Contents of the entry", "Path to the checkpoint", "Signature of the log"
INTACT = ["Place in the tree", CONTENTS, PATH, SIGNATURE]


def make_sealed_entry() -> AuditEntry:
    """An entry among others, under a signed checkpoint."""
    make_log_key()
    entry = make_entry()
    grow(3)
    return entry


def checked(entry: AuditEntry) -> EntryCheck:
    return verify(tenant_id=entry.tenant_id, entry_id=str(entry.id), now=now() + timedelta(minutes=1))


def outcomes(entry: AuditEntry) -> dict[str, StepOutcome]:
    return {step.name: step.outcome for step in checked(entry).steps}


def only_failures(entry: AuditEntry) -> dict[str, CheckedStep]:
    return {step.name: step for step in checked(entry).steps if step.outcome == StepOutcome.FAILED}


def change_entry(entry: AuditEntry, column: str, value: str | None) -> None:
    statement = f"UPDATE auditlog_auditentry SET {column} = %s WHERE id = %s"  # noqa: S608  (columns of ours)
    with unguarded("auditlog_auditentry"):
        assert sql.execute(statement, [value, entry.id]) == 1


@pytest.fixture
def entry() -> AuditEntry:
    return make_sealed_entry()


@pytest.mark.parametrize("environment", list(Environment))
def test_intact_entry_passes_up_to_the_witnesses(environment: Environment) -> None:
    with environments.use(environment):
        found = checked(make_sealed_entry())

    assert [step.name for step in found.steps] == [*INTACT, "Witnesses"]
    assert [step.outcome for step in found.steps] == [*[StepOutcome.PASSED] * 4, StepOutcome.OPEN]
    assert found.outcome == StepOutcome.OPEN


def test_witnessed_entry_passes(trusted: Policy, entry: AuditEntry) -> None:
    gathering.gather(now=now())

    found = checked(entry)

    assert found.outcome == StepOutcome.PASSED
    assert {step.name: step.outcome for step in found.steps if step.name not in INTACT} == {
        "Witness running": StepOutcome.PASSED,
        "Witness gone": StepOutcome.NOT_NEEDED,
        "Quorum": StepOutcome.PASSED,
    }


def test_missing_quorum_is_open(witness: WitnessProcess, tmp_path: Path, settings: Settings) -> None:
    write_policy(witness, tmp_path, settings, quorum="both")
    entry = make_sealed_entry()
    gathering.gather(now=now())

    found = outcomes(entry)

    assert found["Witness running"] == StepOutcome.PASSED
    assert found["Witness gone"] == found["Quorum"] == StepOutcome.OPEN


def test_policy_without_a_quorum_needs_no_witness(
    witness: WitnessProcess, tmp_path: Path, settings: Settings
) -> None:
    write_policy(witness, tmp_path, settings, quorum="none")

    found = outcomes(make_sealed_entry())

    assert found["Witnesses"] == StepOutcome.OPEN
    assert found["Witness running"] == StepOutcome.NOT_NEEDED
    assert "Quorum" not in found


def test_policy_that_cannot_be_read_is_open(settings: Settings, tmp_path: Path) -> None:
    settings.AUDIT_WITNESS_POLICY = str(tmp_path / "missing")

    assert outcomes(make_sealed_entry())["Witnesses"] == StepOutcome.OPEN


def test_waiting_entry_is_open() -> None:
    assert outcomes(make_entry()) == {"Place in the tree": StepOutcome.OPEN}


def test_unsigned_entry_is_open() -> None:
    entry = make_entry()
    sealer.seal_queued()

    assert outcomes(entry)["Checkpoint"] == StepOutcome.OPEN


def test_another_tenants_entry_is_not_found() -> None:
    entry = make_entry()

    with pytest.raises(EntryNotFound):
        verify(tenant_id=new_id(), entry_id=str(entry.id), now=now())


def test_entry_that_bypassed_the_queue_fails(owned: None) -> None:
    entry = make_entry()
    sql.execute("DELETE FROM auditlog_pendingentry WHERE entry_id = %s", [entry.id])

    assert outcomes(entry) == {"Place in the tree": StepOutcome.FAILED}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("event_type", "agent.retired"),
        ("actor_kind", "system"),
        ("actor_id", "console:eve"),
        ("affected_id", None),
        ("description", "for Eve"),
        ("metadata", '{"chain": []}'),
        ("created_at", "2020-01-01T00:00:00Z"),
    ],
)
def test_changed_field_fails_with_both_hashes(
    owned: None, column: str, value: str | None, entry: AuditEntry
) -> None:
    change_entry(entry, column, value)

    failed = only_failures(entry)

    assert set(failed) == {CONTENTS, PATH}
    for step in failed.values():
        assert len(step.expected) == len(step.found) == 64
        assert step.expected != step.found


def test_changed_tile_fails(owned: None, entry: AuditEntry) -> None:
    index = Leaf.objects.get(entry_id=entry.id).index
    with unguarded("auditlog_tile"):
        sql.execute(
            "UPDATE auditlog_tile SET hashes = overlay(hashes PLACING %s FROM %s)"
            " WHERE level = 0 AND index = %s",
            [bytes(32), index % 256 * 32 + 1, index // 256],
        )

    failed = only_failures(entry)

    assert failed[CONTENTS].expected == "00" * 32


def test_dropped_tile_fails(owned: None, entry: AuditEntry) -> None:
    with unguarded("auditlog_tile"):
        sql.execute("DELETE FROM auditlog_tile")

    failed = only_failures(entry)

    assert failed[CONTENTS].expected == "nothing"
    assert PATH in failed


def replace_note(note: str) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    with unguarded("auditlog_signedhead"):
        sql.execute("UPDATE auditlog_signedhead SET note = %s WHERE size = %s", [note, newest.size])


def test_checkpoint_by_another_key_fails(owned: None, entry: AuditEntry) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    forger = SigningKey(keys.origin())
    text = Checkpoint(keys.origin(), newest.size, StoredTiles().root(newest.size)).text()
    replace_note(signed(text, forger).encode())

    failed = only_failures(entry)

    assert set(failed) == {SIGNATURE}
    assert failed[SIGNATURE].expected != failed[SIGNATURE].found
    assert keys.origin() in failed[SIGNATURE].found


def test_checkpoint_of_another_log_fails(owned: None, entry: AuditEntry) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    replace_note(newest.note.replace(keys.origin(), "other.example/log", 1))

    failed = only_failures(entry)

    assert (failed[SIGNATURE].expected, failed[SIGNATURE].found) == (keys.origin(), "other.example/log")


def test_unreadable_checkpoint_fails(owned: None, entry: AuditEntry) -> None:
    replace_note("no note")

    assert set(only_failures(entry)) == {"Checkpoint"}


def test_forged_cosignature_fails(owned: None, trusted: Policy, entry: AuditEntry) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    (witness, _) = trusted.witnesses
    replace_note(newest.note + witness.key.signature(bytes(72)).line())

    assert set(only_failures(entry)) == {"Witness running"}


@pytest.mark.parametrize("parts", [ERASABLE, ("actor_id",)])
def test_erased_parts_pass(parts: tuple[str, ...], entry: AuditEntry) -> None:
    erasing.erase(entry_id=entry.id, parts=parts, reason="GDPR 17", actor=ACTOR, now=now())
    seal_and_sign()

    found = outcomes(entry)

    assert [found[name] for name in ("Erased parts", *INTACT)] == [StepOutcome.PASSED] * 5


def test_value_in_the_place_of_an_erased_one_fails(owned: None, entry: AuditEntry) -> None:
    erasing.erase(entry_id=entry.id, parts=["description"], reason="GDPR 17", actor=ACTOR, now=now())
    change_entry(entry, "description", "for Eve")

    failed = only_failures(entry)

    assert set(failed) == {"Erased parts"}
    assert "description" in failed["Erased parts"].detail


def test_erasure_that_nobody_recorded_fails(owned: None, entry: AuditEntry) -> None:
    erasing.erase(entry_id=entry.id, parts=["description"], reason="GDPR 17", actor=ACTOR, now=now())
    with unguarded("auditlog_auditentry"):
        sql.execute("DELETE FROM auditlog_auditentry WHERE affected_id = %s", [str(entry.id)])

    assert set(only_failures(entry)) == {"Erased parts"}
