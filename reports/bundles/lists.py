"""The rows behind the claims of a report, as JSON Lines: the newest of each set, up to a limit."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from auditlog.vocabulary import AuditAction
from compliance.api.rest.renderers import dumps
from reports.content import delays
from reports.content.facts import Frame
from reports.content.rows_of import agents_of, certificates_of, entries_of, events_of, interventions_in
from reports.content.sources import LISTS, Rows

MOST = 20_000


@dataclass(frozen=True)
class RowList:
    """A file of rows: `count` of the `total` that the report counts."""

    name: str
    content: bytes
    count: int
    total: int


def gather_lists(frame: Frame) -> list[RowList]:
    """Return the lists of `frame`. Call it in the snapshot in which the facts are gathered."""
    agents = agents_of(frame).annotate(has_owner=Q(owner_email__isnull=False))
    entries = entries_of(frame)
    high_risk = delays.with_reviews(events_of(frame).high_risk())
    stops = entries.of_type(AuditAction.AGENT_HIGH_RISK)
    return [
        _list(Rows.AGENTS, agents.order_by("-created_at", "-id"), _AGENT),
        _list(Rows.CERTIFICATES, certificates_of(frame).order_by("-issued_at", "-id"), _CERTIFICATE),
        _list(Rows.HIGH_RISK, high_risk.order_by("-received_at", "-id"), _EVENT),
        _list(Rows.INTERVENTIONS, interventions_in(entries).order_by("-created_at", "-id"), _ENTRY),
        _list(Rows.STOPS, stops.order_by("-created_at", "-id"), _ENTRY),
    ]


_AGENT = (
    *("id", "name", "model", "version", "model_hash"),
    *("status", "created_at", "status_changed_at", "has_owner"),
)
_CERTIFICATE = (
    *("id", "serial_number", "agent_id", "issued_at", "expires_at"),
    *("status", "revoked_at", "revocation_code", "revocation_reason"),
)
_EVENT = (
    *("id", "agent_id", "action_type", "risk_score", "occurred_at", "received_at", "model_version"),
    *("said", "first_review_at"),
)
_ENTRY = ("id", "event_type", "actor_kind", "actor_id", "affected_id", "metadata", "created_at")


def _list(rows: Rows, found: QuerySet[Any], names: tuple[str, ...]) -> RowList:
    lines = [dumps(row) for row in found.values(*names)[:MOST]]
    return RowList(LISTS[rows], b"".join(line + b"\n" for line in lines), len(lines), found.count())
