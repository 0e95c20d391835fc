"""Writing to the audit log."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments, sql


class NotInTransaction(RuntimeError):
    """An entry must commit with the change it tells of; a defect of the calling code."""


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
    """Append one entry inside the caller's transaction; `metadata` must be JSON and hold no secret."""
    if not connections[environments.current().alias].in_atomic_block:
        raise NotInTransaction("auditlog.record() belongs inside environments.atomic()")
    entry = AuditEntry(
        tenant_id=tenant_id,
        event_type=action,
        actor_type=actor.type,
        actor_id=actor.id[:255],
        description=description,
        affected_id=None if affected_id is None else str(affected_id),
        metadata=metadata,
        created_at=now,
    )
    sql.insert(entry)
    return entry
