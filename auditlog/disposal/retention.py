"""Drop the contents of entries past their retention; the hashes stay, so other entries keep their proofs."""

from datetime import datetime, timedelta

from django.conf import settings

from auditlog import services as auditlog
from auditlog.sealing.tree import head
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.core import environments
from compliance.stores import sql

BATCH = 5_000


def drop_expired(*, actor: Actor, now: datetime) -> int:
    """Drop the contents of entries older than `AUDIT_RETENTION_DAYS` and record it; return how many.

    They go in the order of the tree: the first entry that is younger, or not sealed, ends the run.
    """
    horizon = now - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    total = 0
    while dropped := _drop_batch(horizon, actor, now):
        total += dropped
    return total


def _drop_batch(horizon: datetime, actor: Actor, now: datetime) -> int:
    with environments.atomic():
        dropped: int = sql.query("SELECT auditlog_drop(%s, %s)", [horizon, BATCH])[0][0]
        if dropped:
            end = head().minimum_index
            auditlog.record(
                tenant_id=SERVICE_TENANT_ID,
                action=AuditAction.AUDIT_DROPPED,
                description=f"Contents of {dropped} entries dropped after their retention",
                metadata={"from": end - dropped, "to": end, "before": horizon.isoformat()},
                actor=actor,
                now=now,
            )
    return dropped
