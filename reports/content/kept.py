"""Retention: events dropped and archived, the retention's history, the last check of the whole log.

The service's own audit entries tell it. Those of partitions concern all tenants: a report names spans and
digests, not counts.
"""

from collections.abc import Iterable
from datetime import datetime

from auditlog.models import AuditEntry
from auditlog.verifying import last_verified
from auditlog.vocabulary import SERVICE_TENANT_ID, AuditAction
from compliance.core.errors import Invalid
from events.archiving import changes
from reports.content.facts import Frame, Row
from tenancy.models import Tenant

ACTIONS = (AuditAction.EVENTS_ARCHIVED, AuditAction.EVENTS_DROPPED)


def archived_spans(frame: Frame) -> list[Row]:
    """Return the spans of receipt whose events were archived or dropped, newest first.

    Those that begin after the period or end before the tenant existed are left out.
    """
    since = Tenant.objects.get(id=frame.tenant_id).created_at
    stored = {(one.start, one.end) for one in changes.listed()}
    ours = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).filter(event_type__in=ACTIONS)
    entries = ours.filter(metadata__has_key="received_before")
    found: dict[tuple[datetime, datetime], Row] = {}
    nothing = dict.fromkeys(("archived_at", "archive_sha256", "dropped_at"))
    for entry in entries.order_by("created_at", "id"):
        told = entry.metadata or {}
        start, end = (datetime.fromisoformat(told[name]) for name in ("received_from", "received_before"))
        if start < frame.covered_until and end > since:
            bounds = {"received_from": start, "received_before": end, "is_stored": (start, end) in stored}
            row = found.setdefault((start, end), bounds | nothing)
            is_drop = entry.event_type == AuditAction.EVENTS_DROPPED
            row["dropped_at" if is_drop else "archived_at"] = entry.created_at
            row["archive_sha256"] = told.get("sha256")
    return [found[span] for span in sorted(found, reverse=True)]


def covered_from(frame: Frame, spans: Iterable[Row]) -> datetime | None:
    """Return the time from which no event of the period was dropped; None if none of it was."""
    gone = (row["received_before"] for row in spans if not row["is_stored"])
    latest = max(gone, default=frame.start)
    return min(latest, frame.covered_until) if latest > frame.start else None


def retention_changes(frame: Frame) -> Iterable[Row]:
    """Yield what each retention was changed to, oldest first; `before` is None at the first record."""
    recorded = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(AuditAction.RETENTION_CHANGED)
    for entry in recorded.filter(created_at__lt=frame.generated_at).order_by("created_at", "id"):
        named = entry.metadata or {}
        yield {"at": entry.created_at, **{name: named.get(name) for name in ("setting", "before", "days")}}


def whole_log() -> str:
    """Return what the last verification of the whole log found; empty if it failed or none is on record."""
    try:
        last, failure = last_verified.read(), last_verified.failure()
    except Invalid:
        return ""
    if last is None or failure:
        return ""
    return (
        f"audit_verify found all {last.checkpoint.size:,} entries of the log as they were sealed,"
        f" on {last.verified_at:%Y-%m-%d %H:%M} UTC"
    )


def entries_from(frame: Frame) -> datetime | None:
    """Return the time before which audit entries of the period may have been dropped; None if none were."""
    since = max(frame.start, Tenant.objects.get(id=frame.tenant_id).created_at)
    drops = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(AuditAction.AUDIT_DROPPED)
    told = drops.order_by("-created_at", "-id").values_list("metadata__before", flat=True).first()
    before = datetime.fromisoformat(told) if told else since
    return min(before, frame.covered_until) if before > since else None
