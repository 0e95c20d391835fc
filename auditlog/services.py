"""Write to the audit log."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Required, TypedDict, Unpack
from uuid import UUID

from django.db.models import Model

from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.core import environments
from compliance.observing import correlation
from compliance.stores import sql, wakeups

SEAL: Final = "auditlog.seal"
REQUEST_ID: Final = "request_id"
TRACE_ID: Final = "trace_id"
"""The names of the ids in an entry's metadata."""


class EntryFields(TypedDict, total=False):
    """The fields of an entry: `of`, the affected row, or else `tenant_id` and, if any, `affected_id`.

    A row without `tenant_id` is the service's: for a Tenant itself pass `tenant_id`. `metadata` must be JSON
    and hold no secret; the ids of the request that causes the entry are added to it. They are a client's
    words, and are erased with it.
    """

    of: Model | None
    tenant_id: UUID
    action: Required[AuditAction]
    affected_id: object
    description: str | None
    metadata: dict[str, Any] | None
    actor: Required[Actor]
    now: Required[datetime]


def record(**told: Unpack[EntryFields]) -> AuditEntry:
    """Append one entry inside the caller's transaction, so that it commits with the change it records.

    Raises RuntimeError outside a transaction.
    """
    made = entry(**told)
    record_all([made])
    return made


def entry(**told: Unpack[EntryFields]) -> AuditEntry:
    """An entry that is not yet recorded."""
    row, actor, metadata = told.get("of"), told["actor"], told.get("metadata")
    tenant_id = told["tenant_id"] if row is None else getattr(row, "tenant_id", SERVICE_TENANT_ID)
    affected_id = told.get("affected_id") if row is None else row.pk
    ids = correlation.current()
    traced = {REQUEST_ID: ids.request_id, TRACE_ID: ids.trace_id} if ids else {}
    return AuditEntry(
        tenant_id=tenant_id,
        event_type=told["action"],
        actor_type=actor.type,
        actor_kind=actor.kind,
        actor_id=actor.id[:255],
        description=told.get("description"),
        affected_id=None if affected_id is None else str(affected_id),
        metadata={**(metadata or {}), **traced} if traced else metadata,
        created_at=told["now"],
    )


def record_all(entries: Sequence[AuditEntry]) -> None:
    """Append entries as `record` does, in their order. Raises RuntimeError outside a transaction."""
    if not environments.in_transaction():
        raise RuntimeError("auditlog.record() belongs inside environments.atomic()")
    sql.insert(*entries)
    ask_to_seal()


def ask_to_seal() -> None:
    """Have the entries that the transaction queued sealed as soon as it has committed."""
    environments.on_commit(lambda: wakeups.ask_for(SEAL))


def as_json(made: AuditEntry) -> str:
    """Return an entry for a function of the database that records what it does."""
    fields = {field.attname: getattr(made, field.attname) for field in made._meta.concrete_fields}
    return json.dumps(fields, default=str)
