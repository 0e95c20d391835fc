"""Write to the audit log."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.observing import correlation
from compliance.stores import doorbell, sql

SEAL: Final = "auditlog.seal"
REQUEST_ID: Final = "request_id"
TRACE_ID: Final = "trace_id"
"""The names of the ids in an entry's metadata."""
SEALED: Final = ("auditlog", "sealed")
"""The channel of `compliance.stores.announcements` on which sealed entries are announced."""
# Elsewhere a trigger of the table queues entries: triggers of shards reach no other node.
_QUEUE: Final = "SELECT auditlog_queue(%s::uuid[])"


def record(
    *,
    tenant_id: UUID,
    action: AuditAction,
    affected_id: object = None,
    description: str | None = None,
    metadata: dict[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> AuditEntry:
    """Append one entry inside the caller's transaction, so that it commits with the change it records.

    `metadata` must be JSON and hold no secret; the ids of the request that causes the entry are added to it.
    They are a client's words, and are erased with it. Raises RuntimeError outside a transaction.
    """
    made = entry(
        tenant_id=tenant_id,
        action=action,
        affected_id=affected_id,
        description=description,
        metadata=metadata,
        actor=actor,
        now=now,
    )
    record_all([made])
    return made


def entry(
    *,
    tenant_id: UUID,
    action: AuditAction,
    affected_id: object = None,
    description: str | None = None,
    metadata: dict[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> AuditEntry:
    """An entry that is not yet recorded, with the fields of `record`."""
    return AuditEntry(
        tenant_id=tenant_id,
        event_type=action,
        actor_type=actor.type,
        actor_kind=actor.kind,
        actor_id=actor.id[:255],
        description=description,
        affected_id=None if affected_id is None else str(affected_id),
        metadata=_with_ids(metadata),
        created_at=now,
    )


def record_all(entries: Sequence[AuditEntry]) -> None:
    """Append entries as `record` does, in their order. Raises RuntimeError outside a transaction."""
    if not environments.in_transaction():
        raise RuntimeError("auditlog.record() belongs inside environments.atomic()")
    sql.insert_all(entries)
    if settings.DATABASE_CITUS:
        sql.prepared_write(_QUEUE, [[each.id for each in entries]])
    ask_to_seal()


def record_as_owner(made: AuditEntry) -> None:
    """Append an entry where a function that runs as the tables' owner has changed rows of the transaction.

    On Citus one role changes the rows of a transaction.
    """
    sql.query("SELECT auditlog_record(%s::jsonb)", [as_json(made)])
    ask_to_seal()


def ask_to_seal() -> None:
    """Have the entries that the transaction queued sealed as soon as it has committed."""
    doorbell.ring_on_commit(SEAL)


def as_json(made: AuditEntry) -> str:
    """Return an entry for a function of the database that records what it does (migration 0011)."""
    fields = {field.attname: getattr(made, field.attname) for field in made._meta.concrete_fields}
    return json.dumps(fields, default=str)


def _with_ids(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """The metadata with the ids of the work under way, if it has any."""
    ids = correlation.current()
    if ids is None:
        return metadata
    return {**(metadata or {}), REQUEST_ID: ids.request_id, TRACE_ID: ids.trace_id}
