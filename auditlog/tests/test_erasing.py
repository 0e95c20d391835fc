"""Erasure and retention: contents go from the tables, every proof still holds, and both are recorded."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import Error, connections
from django.test import override_settings

from auditlog import services
from auditlog.disposal import erasing, retention
from auditlog.errors import EntryNotFound, NotSealedYet, TreeDamaged
from auditlog.leaves import ERASABLE
from auditlog.models import AuditEntry, Leaf
from auditlog.sealing import sealer
from auditlog.sealing.stored_rows import sealed_between, sealed_entry_of
from auditlog.sealing.tree import StoredTiles, head
from auditlog.tests.factories import ACTOR, make_entry
from auditlog.tlog.merkle import root_from_inclusion
from auditlog.vocabulary import SERVICE_TENANT_ID, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.core.identifiers import new_id
from compliance.stores import sql


def assert_proved(entry_id: object) -> None:
    sealed = sealed_entry_of(entry_id)  # type: ignore[arg-type]
    assert sealed is not None
    path = StoredTiles().inclusion_path(sealed.index, head().size)
    assert root_from_inclusion(sealed.index, head().size, sealed.hash(), path) == head().root


@pytest.fixture
def entry() -> AuditEntry:
    return make_entry()


@pytest.mark.parametrize("parts", [ERASABLE, ("description",), ("actor_id", "metadata")])
def test_erased_parts_are_gone_and_the_proof_holds(parts: tuple[str, ...], entry: AuditEntry) -> None:
    sealer.seal_all()

    erased = erasing.erase(entry_id=entry.id, parts=parts, reason="GDPR 17", actor=ACTOR, now=now())

    entry.refresh_from_db()
    kept = {
        "actor_id": f"person:{UUID(int=7)}",
        "affected_id": "agent",
        "description": "for Grace",
        "metadata": entry.metadata,
    }
    shown = {part: getattr(entry, part) for part in ERASABLE}
    assert erased == [part for part in ERASABLE if part in parts]
    assert shown == kept | {part: "erased" if part == "actor_id" else None for part in parts}
    assert_proved(entry.id)
    recorded = AuditEntry.objects.get(event_type=AuditAction.AUDIT_ERASED, affected_id=str(entry.id))
    assert recorded.metadata is not None
    assert recorded.metadata["parts"] == erased


def test_erased_part_leaves_no_salt_to_guess_it_with(entry: AuditEntry) -> None:
    sealer.seal_all()

    erasing.erase(entry_id=entry.id, parts=["description"], reason="GDPR 17", actor=ACTOR, now=now())

    leaf = Leaf.objects.get(entry_id=entry.id)
    salts = bytes(leaf.salts)
    assert salts[48:64] == bytes(16)
    assert salts.count(bytes(16)) == 1
    assert leaf.erased is not None
    assert list(leaf.erased) == ["description"]


def test_second_erasure_takes_the_rest(entry: AuditEntry) -> None:
    sealer.seal_all()
    erasing.erase(entry_id=entry.id, parts=["description"], reason="first", actor=ACTOR, now=now())

    again = erasing.erase(entry_id=entry.id, parts=["description"], reason="twice", actor=ACTOR, now=now())
    rest = erasing.erase(entry_id=entry.id, reason="rest", actor=ACTOR, now=now())

    assert (again, rest) == ([], ["actor_id", "affected_id", "metadata"])
    assert_proved(entry.id)


def test_what_cannot_be_erased_is_refused(entry: AuditEntry) -> None:
    with pytest.raises(NotSealedYet):
        erasing.erase(entry_id=entry.id, reason="r", actor=ACTOR, now=now())
    with pytest.raises(EntryNotFound):
        erasing.erase(entry_id=new_id(), reason="r", actor=ACTOR, now=now())
    with pytest.raises(Invalid):
        erasing.erase(entry_id=entry.id, parts=["head"], reason="r", actor=ACTOR, now=now())


def test_record_of_an_erasure_keeps_what_it_names(entry: AuditEntry) -> None:
    sealer.seal_all()
    erasing.erase(entry_id=entry.id, parts=["description"], reason="Ada asked", actor=ACTOR, now=now())
    sealer.seal_all()
    told = AuditEntry.objects.get(event_type=AuditAction.AUDIT_ERASED, affected_id=str(entry.id))

    with pytest.raises(Invalid, match="keeps its affected_id"):
        erasing.erase(entry_id=told.id, reason="r", actor=ACTOR, now=now())
    erased = erasing.erase(entry_id=told.id, parts=["description"], reason="r", actor=ACTOR, now=now())

    assert erased == ["description"]


@pytest.mark.parametrize(
    ("action", "told", "is_leaf", "refusal"),
    [
        (AuditAction.AUDIT_DROPPED, ["description"], True, "is recorded"),
        (AuditAction.AUDIT_ERASED, ["metadata"], True, "is recorded"),
        (AuditAction.AUDIT_ERASED, ["description"], False, "not the leaf"),
    ],
)
def test_database_refuses_an_erasure_without_its_record_or_with_another_leaf(
    action: AuditAction, told: list[str], is_leaf: bool, refusal: str, entry: AuditEntry
) -> None:
    sealer.seal_all()
    sealed = sealed_entry_of(entry.id)
    assert sealed is not None
    about: dict[str, Any] = {"tenant_id": entry.tenant_id, "affected_id": entry.id}
    made = services.entry(action=action, metadata={"parts": told}, actor=ACTOR, now=now(), **about)
    leaf = sealed.leaf() if is_leaf else bytes(161)

    with pytest.raises(Error, match=refusal), environments.atomic():
        sql.query(erasing.ERASE, [entry.id, ["description"], leaf, services.as_json(made)])


def test_tampered_entry_is_not_erased(owned: None, entry: AuditEntry) -> None:
    sealer.seal_all()
    sql.execute("ALTER TABLE auditlog_auditentry DISABLE TRIGGER auditlog_no_change")
    sql.execute("UPDATE auditlog_auditentry SET description = 'Eve' WHERE id = %s", [entry.id])

    with pytest.raises(TreeDamaged, match="not as it was sealed"):
        erasing.erase(entry_id=entry.id, reason="GDPR 17", actor=ACTOR, now=now())


@pytest.mark.usefixtures("committed")
def test_two_erasures_of_one_entry_at_once_are_one() -> None:
    with environments.atomic():
        entry = make_entry()
    sealer.seal_all()

    def erase() -> list[str]:
        with environments.use(Environment.LIVE):
            try:
                return erasing.erase(entry_id=entry.id, reason="GDPR 17", actor=ACTOR, now=now())
            finally:
                connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        outcomes = [future.result() for future in [pool.submit(erase) for _ in range(4)]]

    assert sorted(outcomes, key=len) == [[], [], [], list(ERASABLE)]
    assert AuditEntry.objects.filter(affected_id=str(entry.id)).count() == 1
    assert_proved(entry.id)


def test_contents_past_their_retention_are_dropped_and_later_proofs_hold(owned: None) -> None:
    sealer.seal_all()
    start = head().size
    # Other tests' entries, which are not so old.
    sql.execute("UPDATE auditlog_treehead SET minimum_index = %s", [start])
    long_ago = now() - timedelta(days=settings.AUDIT_RETENTION_DAYS + 1)
    old = [make_entry(now=long_ago) for _ in range(3)]
    kept = make_entry()
    late = make_entry(now=long_ago)
    sealer.seal_all()

    dropped = retention.drop_expired(actor=ACTOR, now=now())
    sealer.seal_all()

    assert (dropped, head().minimum_index) == (3, start + 3)
    assert not AuditEntry.objects.filter(id__in=[entry.id for entry in old]).exists()
    assert [entry.row.id for entry in sealed_between(0, start + 5)] == [str(kept.id), str(late.id)]
    assert_proved(kept.id)
    assert_proved(late.id)
    recorded = AuditEntry.objects.get(event_type=AuditAction.AUDIT_DROPPED)
    assert recorded.metadata is not None
    assert (recorded.metadata["from"], recorded.metadata["to"]) == (start, start + 3)


def test_each_change_of_a_retention_is_recorded_once() -> None:
    days = settings.EVENT_RETENTION_DAYS
    for wanted in (days, days, 200, 200, days):
        with override_settings(EVENT_RETENTION_DAYS=wanted):
            retention.record_settings(actor=ACTOR, now=now())

    entries = AuditEntry.objects.of_type(AuditAction.RETENTION_CHANGED).order_by("created_at", "id")
    metadata = [entry.metadata or {} for entry in entries]
    told = [each for each in metadata if each["setting"] == "EVENT_RETENTION_DAYS"]
    assert [(each["before"], each["days"]) for each in told] == [(None, days), (days, 200), (200, days)]
    assert len(metadata) == 4  # that of audit entries was set before the first


def test_database_drops_nothing_of_the_last_six_months() -> None:
    with pytest.raises(Error, match="183 days"), environments.atomic():
        sql.query("SELECT auditlog_drop(%s, 10, '{}')", [now() - timedelta(days=182)])


@pytest.mark.parametrize(
    "changed",
    [
        {"event_type": "audit.erased"},
        {"metadata": None},
        {"metadata": []},
        {"tenant_id": "01890a5d-ac96-774b-bcce-b302099a8057"},
        {"created_at": "1970-01-02T00:00:00Z"},
        {"created_at": "9998-01-02T00:00:00Z"},
        {"created_at": None},
    ],
)
def test_database_drops_nothing_that_is_not_recorded(changed: dict[str, Any]) -> None:
    made = services.entry(
        tenant_id=SERVICE_TENANT_ID, action=AuditAction.AUDIT_DROPPED, metadata={}, actor=ACTOR, now=now()
    )
    told = json.dumps(json.loads(services.as_json(made)) | changed)

    with pytest.raises(Error, match="a drop is recorded"), environments.atomic():
        sql.query("SELECT auditlog_drop(%s, 10, %s::jsonb)", [now() - timedelta(days=184), told])
