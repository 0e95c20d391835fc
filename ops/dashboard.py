"""The console's first page, which is the review inbox, and the overview: the state of a tenant's agents,
certificates and webhooks.

Every number counts the rows of the user's own lists, in the environment of the request.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from agents.models import Agent, AgentStatus
from agents.querysets import IS_ORPHAN, NEEDS_ATTENTION, is_in_mode
from agents.risk import band_of
from auditlog.models import AuditEntry, TreeHead
from auditlog.proving.proofs import MET, MISSING, NO_POLICY, log_state
from certificates.models import AuthorityRole, Certificate, CertificateStatus, RevocationList
from certificates.querysets import ends_within
from compliance.console.access import access_of
from compliance.console.display import chip, code, moment, score_chip, shortened, status_chip, visible
from compliance.core import clock
from compliance.core.wording import counted, spoken
from delegation.reviews.models import AccessReview
from events.inbox.forms import DecisionForm
from events.inbox.models import OpenEvent
from ops.charts import Figures, charts, figures_of
from tenancy.models import Enforcement
from webhooks.models import FAILING_AFTER, Delivery, Webhook

DAY = timedelta(days=1)
RECENT = 7 * DAY
ROWS = 6


@dataclass(frozen=True)
class Tile:
    """One number; `tone` colours it: good, warn, bad or none."""

    label: str
    icon: str
    value: object
    note: str
    url: str
    tone: str = ""


Panel = dict[str, Any]
"""The first rows of a list, and a link to all of it."""


def first_page(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold's callback: make the index the review inbox, except for a user who belongs to no tenant."""
    page = admin.site.get_model_admin(OpenEvent)
    if not page.has_view_permission(request):
        return {**context, "title": "Welcome"}
    return {**context, **page.variables(request, DecisionForm())}  # type: ignore[attr-defined]


def overview(request: HttpRequest) -> HttpResponse:
    access = access_of(request)
    if not (access.is_operator or access.roles):
        return HttpResponseRedirect(reverse("admin:index"))
    now = clock.now()
    figures = figures_of(request, now)
    shown = {
        "title": "Overview",
        "board": {"tiles": tiles(request, figures, now), "panels": panels(request, now)},
        "charts": charts(request, figures, now),
    }
    return TemplateResponse(request, "admin/overview.html", {**admin.site.each_context(request), **shown})


def scoped(request: HttpRequest, model: type[Model]) -> Any:
    """Return the rows that the user's own list of `model` shows."""
    return admin.site.get_model_admin(model).get_queryset(request)


def list_url(model: type[Model], query: str = "") -> str:
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") + (f"?{query}" if query else "")


def panel(
    title: str, rows: QuerySet[Any], columns: dict[str, Callable[[Any], object]], *, url: str, empty: str = ""
) -> Panel:
    """Show the first `ROWS` of `rows`; `columns` maps each heading to the value of a cell."""
    page = f"admin:{rows.model._meta.app_label}_{rows.model._meta.model_name}_change"
    shown = [
        {
            "pk": row.pk,
            "cells": [cell(row) for cell in columns.values()],
            "url": reverse(page, args=[row.pk]),
        }
        for row in rows[:ROWS]
    ]
    return {"title": title, "columns": list(columns), "rows": shown, "empty": empty or "None.", "url": url}


def tiles(request: HttpRequest, figures: Figures, now: datetime) -> list[Tile]:
    """Return one number for each state that somebody may have to act on."""
    overdue = scoped(request, AccessReview).overdue(now).count()
    high, medium = scoped(request, OpenEvent).counts()
    waiting = f"{high} high, {medium} medium" if high or medium else "every event has its verdict"
    today = now.astimezone(UTC).date()
    failed = sum(figures[day]["undelivered"] for day in (today, today - DAY) if day in figures)
    return [
        *_agent_tiles(request, now),
        *_certificate_tiles(request, now),
        _list_tile(request, now),
        Tile(
            "Overdue reviews",
            "fact_check",
            overdue,
            "of access, past their date",
            list_url(AccessReview, "state__exact=open"),
            "bad" if overdue else "",
        ),
        Tile(
            "Events to review",
            "inbox",
            high + medium,
            waiting,
            list_url(OpenEvent),
            "bad" if high else "warn" if medium else "good",
        ),
        Tile(
            "Failed deliveries",
            "outbox",
            failed,
            "webhooks, today and yesterday",
            list_url(Delivery, "status__exact=failed"),
            "bad" if failed else "",
        ),
        _log_tile(now),
    ]


def _agent_tiles(request: HttpRequest, now: datetime) -> list[Tile]:
    would_have_stopped = Q(status=AgentStatus.ACTIVE, would_have_stopped_at__gte=now - RECENT)
    found = scoped(request, Agent).aggregate(
        **{status: Count("pk", filter=Q(status=status)) for status in AgentStatus.values},
        registered=Count("pk"),
        observed=Count("pk", filter=is_in_mode(Enforcement.OBSERVE) & would_have_stopped),
        orphans=Count("pk", filter=IS_ORPHAN),
        dormant=Count("pk", filter=Q(dormant_at__isnull=False)),
    )
    suspended, orphans, dormant = (found[name] for name in ("suspended", "orphans", "dormant"))
    registered = f"of {found['registered']} registered"
    review, tone = ("await a review", "bad") if suspended else ("nothing to review", "")
    if found["observed"]:
        review += f"; {found['observed']} observed would have been in {RECENT.days} days"
    urls = {status: list_url(Agent, f"status__exact={status}") for status in AgentStatus.values}
    return [
        Tile("Active agents", "smart_toy", found["active"], registered, urls["active"], "good"),
        Tile("Pending agents", "hourglass_top", found["pending"], "wait for a certificate", urls["pending"]),
        Tile("Suspended agents", "pause_circle", suspended, review, urls["suspended"], tone),
        Tile(
            "Agents without an owner",
            "person_off",
            orphans,
            "nobody answers for them",
            list_url(Agent, "owner=none"),
            "warn" if orphans else "",
        ),
        Tile(
            "Dormant agents",
            "bedtime",
            dormant,
            f"active, no event for {settings.DORMANT_DAYS} days",
            list_url(Agent, "dormant=yes"),
            "warn" if dormant else "",
        ),
    ]


def _certificate_tiles(request: HttpRequest, now: datetime) -> list[Tile]:
    counts = scoped(request, Certificate).aggregate(
        active=Count("pk", filter=Q(status=CertificateStatus.ACTIVE, expires_at__gte=now)),
        soon=Count("pk", filter=ends_within(30, now)),
        very_soon=Count("pk", filter=ends_within(7, now)),
    )
    url, soon_url = list_url(Certificate, "state=active"), list_url(Certificate, "state=30")
    note, very_soon = "neither revoked nor expired", f"{counts['very_soon']} of them within 7 days"
    tone = "bad" if counts["very_soon"] else "warn" if counts["soon"] else ""
    return [
        Tile("Active certificates", "workspace_premium", counts["active"], note, url, "good"),
        Tile("Expire within 30 days", "event_upcoming", counts["soon"], very_soon, soon_url, tone),
    ]


def _list_tile(request: HttpRequest, now: datetime) -> Tile:
    """Return the age of the newest full list of agents' certificates."""
    lists = scoped(request, RevocationList)
    full = lists.filter(authority__role=AuthorityRole.ISSUING, authority__retired_at=None, scope="full")
    age, note, tone = "none", "not yet published", "bad"
    if (newest := full.order_by("-number").first()) is not None:
        age = spoken(now - newest.this_update)
        note = f"old, number {newest.number}, {counted(newest.entry_count, 'entry', 'entries')}"
        tone = "bad" if newest.next_update <= now else "good"
    return Tile("Revocation list", "playlist_remove", age, note, list_url(RevocationList), tone)


def _log_tile(now: datetime) -> Tile:
    """Return how many entries of the audit log are sealed, and whether witnesses vouch for them."""
    log = log_state(now=now)
    tone = {MET: "good", MISSING: "warn", NO_POLICY: ""}[log.quorum]
    quorum = {MET: "quorum met", MISSING: "quorum missing", NO_POLICY: "no witnesses"}[log.quorum]
    if log.is_contradicted:
        tone, quorum = "bad", "a witness contradicts"
    note = f"{log.backlog.unsealed + log.backlog.unsigned} unsigned; {quorum}"
    return Tile("Sealed audit entries", "account_tree", log.tree_size, note, list_url(TreeHead), tone)


def panels(request: HttpRequest, now: datetime) -> list[Panel]:
    """Return the agents, webhooks, events, entries and certificates that somebody may want to look at."""
    certificates = scoped(request, Certificate).filter(ends_within(30, now))
    attention = panel(
        "Needs attention",
        scoped(request, Agent)
        .with_tenant()
        .filter(NEEDS_ATTENTION)
        .order_by("-status", "-risk_score", "-id"),
        {
            "Agent": lambda agent: visible(agent.name),
            "Status": lambda agent: status_chip(agent.status),
            "Risk": lambda agent: score_chip(agent.risk_score, band_of(agent.risk_score)),
            "Reason": lambda agent: reason_of(agent, now),
        },
        empty="No agent is suspended or at risk.",
        url=list_url(Agent, "risk=attention"),
    )
    failing = Q(disabled_at__isnull=False) | Q(active=True, consecutive_failures__gte=FAILING_AFTER)
    webhooks = panel(
        "Webhooks that don't deliver",
        scoped(request, Webhook)
        .filter(failing, deleted_at=None)
        .order_by("-disabled_at", "-consecutive_failures", "-id"),
        {
            "Webhook": lambda row: code(shortened(row.url, 40)),
            "State": lambda row: chip("disabled by the service" if row.disabled_at else "failing", "danger"),
            "Failed deliveries in a row": lambda row: row.failed_deliveries,
            "Failing since": lambda row: moment(row.failing_since) if row.failing_since else "",
        },
        url=list_url(Webhook),
    )
    waiting = panel(
        "Events to review",
        scoped(request, OpenEvent).select_related("agent").order_by("event_id"),
        {
            "Agent": lambda row: visible(row.agent.name),
            "Action": lambda row: chip(row.action_type, verbatim=True),
            "Risk": lambda row: score_chip(row.risk_score, row.risk_band),
            "Received": lambda row: moment(row.received_at),
        },
        empty="No event waits for a verdict.",
        url=list_url(OpenEvent),
    )
    for row in waiting["rows"]:
        row["url"] = list_url(OpenEvent, f"event={row['pk']}")
    entries = panel(
        "Latest in the audit log",
        scoped(request, AuditEntry).order_by("-created_at", "-id"),
        {
            "Action": lambda entry: chip(entry.event_type, verbatim=True),
            "Description": lambda entry: visible(entry.description or ""),
            "When": lambda entry: moment(entry.created_at),
        },
        empty="Nothing has happened yet.",
        url=list_url(AuditEntry),
    )
    ending = panel(
        "Certificates that expire within 30 days",
        certificates.select_related("agent").order_by("expires_at", "id"),
        {
            "Agent": lambda certificate: visible(certificate.agent.name),
            "Serial number": lambda certificate: code(shortened(certificate.serial_number, 17)),
            "Expires": lambda certificate: moment(certificate.expires_at),
        },
        url=list_url(Certificate, "state=30"),
    )
    return [attention, *([webhooks] if webhooks["rows"] else []), waiting, entries, ending]


def reason_of(agent: Agent, now: datetime) -> str:
    """Say why a person should review the agent."""
    if agent.status == AgentStatus.SUSPENDED:
        return visible(agent.status_reason)
    noted_at = agent.would_have_stopped_at
    if agent.is_observed and noted_at is not None and noted_at >= now - RECENT:
        return "Would have been stopped, but is only observed"
    return f"At {band_of(agent.risk_score)} risk while active"
