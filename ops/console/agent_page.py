"""An agent's page in the console: a summary that answers an officer's questions, and all fields below it."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.models import Agent, AgentStatus
from agents.risk import band_of
from auditlog.actors.names import names_of
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates.admin import CertifiedAgentAdmin, state_chip
from certificates.models import Certificate
from compliance.console.display import (
    EMPTY,
    chips,
    code,
    link,
    moment,
    row_link,
    score_chip,
    shortened,
    visible,
)
from compliance.core.clock import now as present
from compliance.core.wording import counted, spoken
from delegation.reviews.admin import REPLACE_OWNER
from delegation.reviews.models import AccessReviewItem
from delegation.stops.models import StoppedAgent
from events.figures.usage import usage
from events.models import BehaviorEvent
from incidents.models import TouchedAgent
from ops import charts
from reports.standing.past import MOVES

PERIOD: Final = timedelta(days=charts.RISK_DAYS)
MOST_ENTRIES: Final = 200
MOST_STRIKES: Final = 10
MOST_NAMES: Final = 20
STOPS: Final = (AuditAction.AGENT_SUSPENDED, AuditAction.AGENT_RETIRED)


class AgentPageAdmin(CertifiedAgentAdmin):
    """Agents, each with a summary of what many rooms know of it."""

    change_form_before_template = "admin/agents/summary.html"
    confirmed_actions = (*CertifiedAgentAdmin.confirmed_actions, REPLACE_OWNER)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if agent := kwargs.get("obj"):
            now = present()
            latest = Certificate.objects.for_tenant(agent.tenant_id).latest_of(agent)
            context["title"] = visible(agent.name)
            context["summary"] = {**summary_of(agent, latest, now), "state": self.state(agent)}
        return super().render_change_form(request, context, *args, **kwargs)


def summary_of(agent: Agent, latest: Certificate | None, now: datetime) -> dict[str, Any]:
    """Return what the template shows of an agent, in a bounded number of statements."""
    since = now - PERIOD
    about = AuditEntry.objects.for_tenant(agent.tenant_id).about(agent.id).filter(event_type__in=MOVES)
    about = about.filter(Q(created_at__gte=since) | Q(created_at=agent.status_changed_at))
    moves = list(about.order_by("-created_at", "-id")[:MOST_ENTRIES])
    stops = [one.created_at for one in moves if one.event_type in STOPS and one.created_at >= since]
    touched = TouchedAgent.objects.filter(agent_id=agent.id, incident__tenant_id=agent.tenant_id)
    use = usage(agent, since, now)
    reviewed = AccessReviewItem.objects.filter(tenant_id=agent.tenant_id, agent_id=agent.id)
    decided = reviewed.filter(decided_at__gte=since).values_list("decided_at", flat=True)[:MOST_ENTRIES]
    reviews = [decided_at for decided_at in decided if decided_at is not None]
    chart = charts.of_agent(agent, {"stop": stops, "review": reviews}, now)
    outside = [one.name for one in use.used if one.permitted is False] + [one.name for one in use.refused]
    lists = (
        ("Permitted, not used", use.unused, "warning"),
        ("Permitted and used", [one.name for one in use.used if one.permitted], "success"),
        ("Not permitted, yet named", list(dict.fromkeys(outside))[:MOST_NAMES], "danger"),
    )
    certificate = None
    if latest is not None:
        end = min(latest.expires_at, latest.superseded_at or latest.expires_at)
        shown = row_link(code(shortened(latest.serial_number, 17)), "certificates_certificate", latest.pk)
        certificate = {"link": shown, "state": state_chip(latest), "end": f"{end:%Y-%m-%d %H:%M} UTC"}
    return {
        "why": why(agent, latest, moves, now),
        "incident": touched.select_related("incident").order_by("-is_current", "-since").first(),
        "risk": score_chip(agent.risk_score, band_of(agent.risk_score)),
        "charts": [chart],
        "owners": [_person(agent.owner), _person(agent.backup_owner)],
        "is_orphan": agent.is_orphan,  # type: ignore[attr-defined]
        "certificate": certificate,
        "use": use,
        "lists": [(title, chips(names, tone)) for title, names, tone in lists if names],
        "days": charts.RISK_DAYS,
    }


def why(agent: Agent, latest: Certificate | None, moves: Sequence[AuditEntry], now: datetime) -> SafeString:
    """Say in one sentence what the agent's state is, since when and why, with links to what it rests on."""
    move = next((one for one in moves if one.created_at == agent.status_changed_at), None)
    since = moment(agent.status_changed_at)
    reason = visible(agent.status_reason) or "no reason is on record"
    rule = row_link("the rule", "tenancy_tenant", agent.tenant_id)
    within = f"within {spoken(settings.HIGH_RISK_WINDOW)}"
    if agent.status == AgentStatus.SUSPENDED and agent.stopped_by_strikes:
        strikes = _strikes(agent, agent.status_changed_at)[: agent.stopped_by_strikes]
        told: object = _linked(strikes) or "past their retention"
        said = "Suspended since {} by {}: {} {} ({})."
        return format_html(said, since, rule, counted(agent.stopped_by_strikes, "strike"), within, told)
    if agent.is_stopped:
        stops = StoppedAgent.objects.filter(tenant_id=agent.tenant_id, agent_id=agent.id, suspended=True)
        found = stops.filter(decided_at=agent.status_changed_at).select_related("stop").first()
        by = ""
        if found is not None:
            shown = f"the stop of {counted(found.stop.matched, 'agent')}"
            by = format_html(" by {}", row_link(shown, "stops_kindstop", found.stop_id))
        elif move is not None:
            by = f" by {visible(names_of([move.actor_id]).get(move.actor_id, move.actor_id))}"
        return format_html("{} since {}{}: {}.", agent.get_status_display(), since, by, reason)
    if agent.status == AgentStatus.PENDING:
        said = "Pending since {}: it has no certificate in force. {}"
        return format_html(said, since, visible(agent.status_reason))
    said = format_html("Active since {}", since)
    if strikes := _strikes(agent, now):
        told = f"{len(strikes)} of the {settings.HIGH_RISK_STRIKES} strikes {within} that"
        said = format_html("{}, with {} {} allows ({})", said, told, rule, _linked(strikes))
    if agent.is_observed and agent.would_have_stopped_at is not None:
        noted = moment(agent.would_have_stopped_at)
        said = format_html("{}; only observed: {} would have stopped it on {}", said, rule, noted)
    if agent.dormant_at is not None:
        said = format_html("{}; dormant: no event for {} days", said, settings.DORMANT_DAYS)
    if latest is not None and (state := latest.status_at(now)) != "active":
        said = format_html("{}; it may do nothing, as its certificate is {}", said, state)
    return format_html("{}.", said)


def _strikes(agent: Agent, until: datetime) -> list[BehaviorEvent]:
    """Return the newest high events of the window up to a moment that count, the newest first."""
    counting = BehaviorEvent.objects.of_agent(agent.id).strikes(until, agent.reinstated_at)
    return list(counting.received_before(until + timedelta(microseconds=1)).latest_received(MOST_STRIKES))


def _linked(events: Iterable[BehaviorEvent]) -> SafeString:
    shown = ((f"{event} at {event.received_at:%H:%M:%S}", event.pk) for event in events)
    links = ((row_link(label, "events_behaviorevent", key),) for label, key in shown)
    return format_html_join(", ", "{}", links)


def _person(person: dict[str, str] | None) -> SafeString | str:
    """Show a person, with a link to all agents that have the address."""
    if person is None:
        return EMPTY
    url = f"{reverse('admin:agents_agent_changelist')}?{urlencode({'q': person['email']})}"
    return format_html("{} {}", visible(person["name"]), link(visible(person["email"]), url))
