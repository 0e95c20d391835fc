"""Drop the contents of entries past their retention; the hashes stay, so other entries keep their proofs."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings

from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.sealing.sealer import LOCK
from auditlog.vocabulary import RETENTIONS, SERVICE_TENANT_ID, Actor, AuditAction
from compliance.core import environments
from compliance.stores import sql, wakeups

BATCH: Final = 5_000
_DROP: Final = "SELECT auditlog_drop(%s, %s, %s::jsonb)"


def record_settings(*, actor: Actor, now: datetime) -> None:
    """Record each retention that is not what was recorded last: the operator sets it, the service sees it."""
    recorded = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(AuditAction.RETENTION_CHANGED)
    with environments.atomic():
        sql.query("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [LOCK, AuditAction.RETENTION_CHANGED])
        for name in RETENTIONS:
            own = recorded.filter(metadata__setting=name).order_by("-created_at", "-id")
            before, days = own.values_list("metadata__days", flat=True).first(), getattr(settings, name)
            if before != days:
                auditlog.record(
                    tenant_id=SERVICE_TENANT_ID,
                    action=AuditAction.RETENTION_CHANGED,
                    description=f"{name} is {days} days",
                    metadata={"setting": name, "before": before, "days": days},
                    actor=actor,
                    now=now,
                )


def drop_expired(*, actor: Actor, now: datetime) -> int:
    """Drop and record the contents of entries past retention, in the order of the tree; return how many."""
    horizon = now - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    # The function adds to the record which entries they were.
    told = {"before": horizon.isoformat()}
    total, dropped = 0, 1
    while dropped:
        with environments.atomic():
            record = auditlog.entry(
                tenant_id=SERVICE_TENANT_ID,
                action=AuditAction.AUDIT_DROPPED,
                metadata=told,
                actor=actor,
                now=now,
            )
            dropped = sql.query(_DROP, [horizon, BATCH, auditlog.as_json(record)])[0][0]
            if dropped:
                wakeups.ask_for_on_commit(auditlog.SEAL)
        total += dropped
    return total
