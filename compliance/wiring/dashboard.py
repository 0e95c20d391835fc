"""The console's first page: how a tenant's agents, certificates and deliveries stand at this moment.

Everything is counted over what the user's own lists show, in the environment of the session.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from agents.models import Agent, AgentStatus
from agents.risk import MEDIUM, band_of
from auditlog.models import AuditEntry
from certificates.models import AuthorityRole, Certificate, CertificateStatus, RevocationList
from compliance import clock
from compliance.console.access import access_of
from compliance.console.display import chip, code, moment, score_chip, shortened, status_chip, visible
from events.models import BehaviorEvent
from webhooks.models import FAILING_AFTER, Delivery, DeliveryStatus, Webhook

DAY = timedelta(days=1)
ROWS = 6


@dataclass(frozen=True)
class Tile:
    """One number; `tone` colours it: good, warn, bad or nothing."""

    label: str
    icon: str
    value: object
    note: str = ""
    url: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Row:
    """A line of a panel; its first cell leads to `url`."""

    cells: list[object]
    url: str = ""


@dataclass(frozen=True)
class Panel:
    """A short list with a way to the whole of it."""

    title: str
    columns: list[str]
    rows: list[Row]
    empty: str
    url: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Board:
    """What the first page shows."""

    tiles: list[Tile] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold's callback: the page's context with its `board`; without one for who belongs to no tenant."""
    access = access_of(request)
    if access.is_operator or access.roles:
        context["board"] = board(request, clock.now())
    return {**context, "title": "Overview"}


def board(request: HttpRequest, now: datetime) -> Board:
    """The numbers and lists of the user's tenants."""
    agents, deliveries = scoped(request, Agent), scoped(request, Delivery)
    certificates, events = scoped(request, Certificate), scoped(request, BehaviorEvent)
    return Board(
        tiles=[
            *agent_tiles(agents),
            *certificate_tiles(certificates, now),
            list_tile(scoped(request, RevocationList), now),
            event_tile(events, now),
            delivery_tile(deliveries, now),
        ],
        panels=[
            attention(agents),
            *troubled_webhooks(scoped(request, Webhook)),
            risky_events(events, now),
            latest_entries(scoped(request, AuditEntry)),
            ending_soon(certificates, now),
        ],
    )


def scoped(request: HttpRequest, model: type[Model]) -> QuerySet[Any]:
    """The rows that the user's own list of `model` would show."""
    return admin.site._registry[model].get_queryset(request)


def list_url(model: type[Model], query: str = "") -> str:
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") + (f"?{query}" if query else "")


def row_url(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def agent_tiles(agents: QuerySet[Agent]) -> list[Tile]:
    by_status = dict(agents.order_by().values_list("status").annotate(Count("pk")))
    suspended = by_status.get(AgentStatus.SUSPENDED, 0)
    return [
        Tile(
            "Active agents",
            "smart_toy",
            by_status.get(AgentStatus.ACTIVE, 0),
            f"of {sum(by_status.values())} registered",
            list_url(Agent, "status__exact=active"),
            "good",
        ),
        Tile(
            "Pending agents",
            "hourglass_top",
            by_status.get(AgentStatus.PENDING, 0),
            "wait for a certificate",
            list_url(Agent, "status__exact=pending"),
        ),
        Tile(
            "Suspended agents",
            "pause_circle",
            suspended,
            "await a review" if suspended else "nothing to review",
            list_url(Agent, "status__exact=suspended"),
            "bad" if suspended else "",
        ),
    ]


def certificate_tiles(certificates: QuerySet[Certificate], now: datetime) -> list[Tile]:
    active = Q(status=CertificateStatus.ACTIVE, expires_at__gte=now)
    counts = certificates.aggregate(
        active=Count("pk", filter=active),
        soon=Count("pk", filter=active & Q(expires_at__lt=now + 30 * DAY)),
        very_soon=Count("pk", filter=active & Q(expires_at__lt=now + 7 * DAY)),
    )
    return [
        Tile(
            "Active certificates",
            "workspace_premium",
            counts["active"],
            "neither revoked nor expired",
            list_url(Certificate, "state=active"),
            "good",
        ),
        Tile(
            "Expire within 30 days",
            "event_upcoming",
            counts["soon"],
            f"{counts['very_soon']} of them within 7 days",
            list_url(Certificate, "state=30"),
            "bad" if counts["very_soon"] else "warn" if counts["soon"] else "",
        ),
    ]


def list_tile(lists: QuerySet[RevocationList], now: datetime) -> Tile:
    """The age of the list that tells of revoked agents' certificates."""
    newest = (
        lists.filter(authority__role=AuthorityRole.ISSUING, authority__retired_at=None, scope="full")
        .order_by("-number")
        .first()
    )
    url = list_url(RevocationList)
    if newest is None:
        return Tile("Revocation list", "playlist_remove", "none", "not yet published", url, "bad")
    minutes = (now - newest.this_update) // timedelta(minutes=1)
    age = f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
    stale = newest.next_update <= now
    note = f"old, number {newest.number}, {newest.entry_count} entries"
    return Tile("Revocation list", "playlist_remove", age, note, url, "bad" if stale else "good")


def event_tile(events: Any, now: datetime) -> Tile:
    high = events.high_risk().since(now - DAY).count()
    url = list_url(BehaviorEvent, "risk_band__exact=high")
    return Tile("High-risk events", "warning", high, "last 24 hours", url, "bad" if high else "")


def risky_events(events: Any, now: datetime) -> Panel:
    rows = events.high_risk().since(now - 7 * DAY).select_related("agent")
    return Panel(
        "High-risk events of the last 7 days",
        ["Agent", "Action", "Risk", "Received"],
        [
            Row(
                [
                    visible(e.agent.name),
                    chip(e.action_type, verbatim=True),
                    score_chip(e.risk_score, e.risk_band),
                    moment(e.received_at),
                ],
                row_url(e),
            )
            for e in rows.order_by("-received_at", "-id")[:ROWS]
        ],
        "None.",
        list_url(BehaviorEvent, "risk_band__exact=high"),
    )


def ending_soon(certificates: QuerySet[Certificate], now: datetime) -> Panel:
    rows = certificates.filter(
        status=CertificateStatus.ACTIVE, expires_at__gte=now, expires_at__lt=now + 30 * DAY
    )
    return Panel(
        "Certificates that expire within 30 days",
        ["Agent", "Serial number", "Expires"],
        [
            Row(
                [visible(c.agent.name), code(shortened(c.serial_number, 17)), moment(c.expires_at)],
                row_url(c),
            )
            for c in rows.select_related("agent").order_by("expires_at", "id")[:ROWS]
        ],
        "None.",
        list_url(Certificate, "state=30"),
    )


def delivery_tile(deliveries: QuerySet[Delivery], now: datetime) -> Tile:
    failed = deliveries.filter(status=DeliveryStatus.FAILED, created_at__gte=now - DAY).count()
    return Tile(
        "Failed deliveries",
        "outbox",
        failed,
        "webhooks, last 24 hours",
        list_url(Delivery, "status__exact=failed"),
        "bad" if failed else "",
    )


def troubled_webhooks(webhooks: QuerySet[Webhook]) -> list[Panel]:
    """A notice of webhooks that the service switched off, or that fail; none while all is well."""
    failing = Q(active=True, consecutive_failures__gte=FAILING_AFTER)
    rows = webhooks.filter(Q(disabled_at__isnull=False) | failing, deleted_at=None)
    found = [
        Row(
            [
                code(shortened(webhook.url, 40)),
                chip("disabled by the service" if webhook.disabled_at else "failing", "danger"),
                webhook.failed_deliveries,
                moment(webhook.failing_since) if webhook.failing_since else "",
            ],
            row_url(webhook),
        )
        for webhook in rows.order_by("-disabled_at", "-consecutive_failures", "-id")[:ROWS]
    ]
    if not found:
        return []
    columns = ["Webhook", "State", "Failed deliveries in a row", "Failing since"]
    return [Panel("Webhooks that don't deliver", columns, found, "None.", list_url(Webhook))]


def attention(agents: QuerySet[Agent]) -> Panel:
    """Agents that a person should look at: suspended, or risky while active."""
    risky = Q(status=AgentStatus.ACTIVE, risk_score__gte=MEDIUM)
    rows = agents.filter(Q(status=AgentStatus.SUSPENDED) | risky)
    return Panel(
        "Needs attention",
        ["Agent", "Status", "Risk", "Reason"],
        [attention_row(agent) for agent in rows.order_by("-status", "-risk_score", "-id")[:ROWS]],
        "No agent is suspended or at risk.",
        list_url(Agent, "status__exact=suspended"),
    )


def attention_row(agent: Agent) -> Row:
    band = band_of(agent.risk_score)
    is_suspended = agent.status == AgentStatus.SUSPENDED
    reason = visible(agent.status_reason) if is_suspended else f"At {band} risk while active"
    risk = score_chip(agent.risk_score, band)
    return Row([visible(agent.name), status_chip(agent.status), risk, reason], row_url(agent))


def latest_entries(entries: QuerySet[AuditEntry]) -> Panel:
    shown = entries.order_by("-created_at", "-id")[:ROWS]
    return Panel(
        "Latest in the audit log",
        ["Action", "Description", "When"],
        [
            Row(
                [
                    chip(e.event_type, verbatim=True),
                    visible(e.description or ""),
                    moment(e.created_at),
                ],
                row_url(e),
            )
            for e in shown
        ],
        "Nothing has happened yet.",
        list_url(AuditEntry),
    )
