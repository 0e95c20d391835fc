"""Entries on nodes of Citus: they lie with their tenant, are guarded there, and stay during verification."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import OperationalError, connections

from auditlog import guards, services
from auditlog.disposal import erasing
from auditlog.errors import BeingVerified
from auditlog.models import AuditEntry, PendingEntry
from auditlog.sealing import sealer
from auditlog.tests.logs import verify
from auditlog.verifying import completeness, stillness
from auditlog.verifying.findings import Damage
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.tests.citus import on_citus
from compliance.tests.owner import workers_as_owner
from compliance.tests.threads import in_thread

pytestmark = [on_citus, pytest.mark.usefixtures("committed")]

ACTOR = Actor.system("tests")
_SHARD = (
    "SELECT shard_name(logicalrelid, shardid) FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)"
    " WHERE logicalrelid = 'auditlog_auditentry'::regclass"
    " AND groupid = (SELECT groupid FROM pg_dist_local_group) LIMIT 1"
)


def record(tenant_id: UUID | None = None) -> AuditEntry:
    with environments.atomic():
        return services.record(
            tenant_id=tenant_id or new_id(),
            action=AuditAction.DELEGATION_ISSUED,
            description="for Grace",
            actor=ACTOR,
            now=now(),
        )


def test_entry_is_read_at_one_node_and_queued_on_the_coordinator() -> None:
    entry = record()

    statement = "EXPLAIN SELECT * FROM auditlog_auditentry WHERE tenant_id = %s AND id = %s"
    plan = "\n".join(line for (line,) in sql.query(statement, [entry.tenant_id, entry.id]))

    assert "Task Count: 1" in plan
    assert PendingEntry.objects.filter(entry_id=entry.id).count() == 1


def test_long_queue_is_sealed_and_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant_id = new_id()
    entries = [
        services.entry(tenant_id=tenant_id, action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=now())
        for _ in range(500)
    ]
    with environments.atomic():
        services.record_all(entries)
    monkeypatch.setattr(sealer, "ROUND", 50)
    # Less than the ids of the queue or of the entries take.
    sql.execute("SET citus.max_intermediate_result_size = '4kB'")

    try:
        found = {flaw.entry_id for flaw in completeness.queue_flaws(timeout_seconds=60)}
        sealed = sealer.seal_all()
    finally:
        sql.execute("RESET citus.max_intermediate_result_size")

    assert found.isdisjoint(str(entry.id) for entry in entries)
    assert sealed >= len(entries)
    assert not PendingEntry.objects.filter(entry_id__in=[entry.id for entry in entries]).exists()


def test_guard_of_a_shard_that_is_not_in_force_is_told() -> None:
    with workers_as_owner() as (worker, *_):
        worker.execute("SET citus.enable_manual_changes_to_shards = on")
        ((shard,),) = worker.execute(_SHARD).fetchall()
        trigger = f"auditlog_no_change_{shard.rpartition('_')[2]}"
        worker.execute(f"ALTER TABLE {shard} DISABLE TRIGGER {trigger}")
        worker.commit()
        try:
            found = guards.not_in_force()
        finally:
            worker.execute(f"ALTER TABLE {shard} ENABLE TRIGGER {trigger}")
            worker.commit()

    assert found == {f"auditlog_no_change ON {shard}"}
    assert guards.are_in_force()


def test_node_that_does_not_answer_has_no_say_about_guards() -> None:
    database = connections["default"].settings_dict["NAME"]
    connections["default"].close()
    with workers_as_owner() as (worker, *_):
        worker.autocommit = True
        worker.execute("SET citus.enable_ddl_propagation = off")
        worker.execute(f'ALTER DATABASE "{database}" CONNECTION LIMIT 0')
        try:
            with pytest.raises(OperationalError, match="does not answer"):
                guards.not_in_force()
        finally:
            worker.execute(f'ALTER DATABASE "{database}" CONNECTION LIMIT -1')
            connections["default"].close()

    assert guards.are_in_force()


def test_nothing_is_erased_while_the_log_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = record()
    sealer.seal_all()
    monkeypatch.setattr(stillness, "OTHERS_WITHIN_SECONDS", 0.1)

    def erase() -> list[str]:
        return erasing.erase(entry_id=entry.id, parts=["description"], reason="r", actor=ACTOR, now=now())

    with ThreadPoolExecutor(1) as pool:
        with stillness.contents_kept():
            refused = pool.submit(in_thread, erase).result()
        erased = pool.submit(in_thread, erase).result()

    assert isinstance(refused, BeingVerified)
    assert erased == ["description"]


def test_log_that_grows_meanwhile_is_verified() -> None:
    known, verdicts = verify().flaws, []

    def grow() -> None:
        for _ in range(60):
            record()

    with ThreadPoolExecutor(2) as pool:
        growing = [pool.submit(in_thread, grow) for _ in range(2)]
        while not all(one.done() for one in growing):
            sealer.seal_all()
            verdicts.append(verify())
        errors = [error for one in growing if (error := one.result()) is not None]

    assert errors == []
    assert verdicts
    # Other tests leave rows that nobody queued.
    unqueued = {flaw.entry_id for flaw in known if flaw.damage is Damage.INSERTED and flaw.index is None}
    found = [flaw for verdict in verdicts for flaw in verdict.flaws if flaw.entry_id not in unqueued]
    assert found == []
