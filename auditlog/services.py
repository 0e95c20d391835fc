"""Write to the audit log."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NotRequired, TypedDict, Unpack
from uuid import UUID

from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.observing import correlation
from compliance.stores import sql, wakeups

SEAL: Final = "auditlog.seal"
REQUEST_ID: Final = "request_id"
TRACE_ID: Final = "trace_id"
"""The names of the ids in an entry's metadata."""


class EntryFields(TypedDict):
    """What an entry tells. `metadata` must be JSON and hold no secret."""

    tenant_id: UUID
    action: AuditAction
    affected_id: NotRequired[object]
    description: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any] | None]
    actor: Actor
    now: datetime


def record(**fields: Unpack[EntryFields]) -> AuditEntry:
    """Append one entry inside the caller's transaction, so that it commits with the change it records.

    The ids of the request that causes the entry are added to its metadata. They are a client's words, and are
    erased with it. Raises RuntimeError outside a transaction.
    """
    made = entry(**fields)
    record_all([made])
    return made


def entry(**fields: Unpack[EntryFields]) -> AuditEntry:
    actor, affected_id, metadata = fields["actor"], fields.get("affected_id"), fields.get("metadata")
    ids = correlation.current()
    traced = {REQUEST_ID: ids.request_id, TRACE_ID: ids.trace_id} if ids else {}
    return AuditEntry(
        tenant_id=fields["tenant_id"],
        event_type=fields["action"],
        actor_type=actor.type,
        actor_kind=actor.kind,
        actor_id=actor.id[:255],
        description=fields.get("description"),
        affected_id=None if affected_id is None else str(affected_id),
        metadata={**(metadata or {}), **traced} if traced else metadata,
        created_at=fields["now"],
    )


def record_all(entries: Sequence[AuditEntry]) -> None:
    """Append entries as `record` does, in their order. Raises RuntimeError outside a transaction."""
    if not environments.in_transaction():
        raise RuntimeError("auditlog.record() belongs inside environments.atomic()")
    sql.insert_all(entries)
    ask_to_seal()


def ask_to_seal() -> None:
    """Have the entries that the transaction queued sealed as soon as it has committed."""
    wakeups.ask_for_on_commit(SEAL)


def as_json(made: AuditEntry) -> str:
    """Return an entry for a function of the database that records what it does."""
    fields = {field.attname: getattr(made, field.attname) for field in made._meta.concrete_fields}
    return json.dumps(fields, default=str)
