"""Write to the audit log."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.stores import doorbell, sql

SEAL: Final = "auditlog.seal"
SEALED: Final = ("auditlog", "sealed")
"""The channel of `compliance.stores.announcements` on which sealed entries are announced."""


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

    `metadata` must be JSON and hold no secret. Raises RuntimeError outside a transaction.
    """
    if not environments.in_transaction():
        raise RuntimeError("auditlog.record() belongs inside environments.atomic()")
    entry = AuditEntry(
        tenant_id=tenant_id,
        event_type=action,
        actor_type=actor.type,
        actor_kind=actor.kind,
        actor_id=actor.id[:255],
        description=description,
        affected_id=None if affected_id is None else str(affected_id),
        metadata=metadata,
        created_at=now,
    )
    sql.insert(entry)
    doorbell.ring_on_commit(SEAL)
    return entry
