"""Which events of a report's period are archived or no longer stored, from the service's own audit entries.

The entries speak of partitions, which all tenants share: a report names their spans and digests, not their
counts.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID, AuditAction
from compliance.reports.content.facts import Frame, Row
from compliance.tenancy.models import Tenant
from events import partitions

ACTIONS = (AuditAction.EVENTS_ARCHIVED, AuditAction.EVENTS_DROPPED)


def archived_spans(frame: Frame) -> list[Row]:
    """Return the spans of receipt whose events were archived or dropped, newest first.

    Those that begin after the period or end before the tenant existed are left out.
    """
    since = Tenant.objects.get(id=frame.tenant_id).created_at
    stored = {(one.start, one.end) for one in partitions.listed()}
    ours = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).filter(event_type__in=ACTIONS)
    entries = ours.filter(metadata__has_key="received_before")
    found: dict[tuple[datetime, datetime], Row] = {}
    for entry in entries.order_by("created_at", "id"):
        span = _span(entry.metadata or {})
        if span[0] < frame.covered_until and span[1] > since:
            found[span] = _with(found.get(span) or _row(span, is_stored=span in stored), entry)
    return [found[span] for span in sorted(found, reverse=True)]


def covered_from(frame: Frame, spans: Iterable[Row]) -> datetime | None:
    """Return the time from which no event of the period was dropped; None if none of it was."""
    gone = (row["received_before"] for row in spans if not row["is_stored"])
    latest = max(gone, default=frame.start)
    return min(latest, frame.covered_until) if latest > frame.start else None


def _span(metadata: dict[str, Any]) -> tuple[datetime, datetime]:
    start, end = (datetime.fromisoformat(metadata[name]) for name in ("received_from", "received_before"))
    return start, end


def _row(span: tuple[datetime, datetime], *, is_stored: bool) -> Row:
    nothing = dict.fromkeys(("archived_at", "archive_sha256", "dropped_at"))
    return {"received_from": span[0], "received_before": span[1], "is_stored": is_stored, **nothing}


def _with(row: Row, entry: AuditEntry) -> Row:
    digest = (entry.metadata or {}).get("sha256")
    if entry.event_type == AuditAction.EVENTS_DROPPED:
        return row | {"dropped_at": entry.created_at, "archive_sha256": digest}
    return row | {"archived_at": entry.created_at, "archive_sha256": digest}


def entries_from(frame: Frame) -> datetime | None:
    """Return the time before which audit entries of the period may have been dropped; None if none were."""
    since = max(frame.start, Tenant.objects.get(id=frame.tenant_id).created_at)
    drops = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(AuditAction.AUDIT_DROPPED)
    told = drops.order_by("-created_at", "-id").values_list("metadata__before", flat=True).first()
    before = datetime.fromisoformat(told) if told else since
    return min(before, frame.covered_until) if before > since else None
