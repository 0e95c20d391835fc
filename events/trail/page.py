"""The page of an agent's trail in the console."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.models import Agent
from auditlog.actors.names import actor_shown, names_of
from auditlog.models import AuditEntry
from compliance.console.admin import RowPage, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, moment, score_chip, shortened, status_chip, visible
from events.models import BehaviorEvent, EventReview
from events.risk.words import in_words
from events.trail.steps import Place, TrailStep, trail_of

BEFORE = "before"


def trail_page(admin: TenantScopedAdmin, request: HttpRequest, agent: Agent) -> HttpResponse:
    """Show a page of the agent's trail, newest first."""
    before = Place.parse(request.GET.get(BEFORE, ""))
    page = trail_of(agent, before=before)
    actors = [step.row.actor_id for step in page.steps if not isinstance(step.row, BehaviorEvent)]
    names = names_of(actors)
    context = {
        **admin.admin_site.each_context(request),
        "title": f"Activity of {shortened(visible(agent.name))}",
        "opts": admin.opts,
        "agent": visible(agent.name),
        "agent_url": admin.row_url(agent),
        "state": admin.state(agent),  # type: ignore[attr-defined]
        "steps": [_shown(step, names) for step in page.steps],
        "is_newest": before is None,
        "older": page.older and urlencode({BEFORE: str(page.older)}),
    }
    return TemplateResponse(request, "admin/events/trail.html", context)


TRAIL = RowPage("trail", "Activity", "route", trail_page)


def _shown(step: TrailStep, names: Any) -> dict[str, Any]:
    row = step.row
    if isinstance(row, BehaviorEvent):
        return {
            **_cells("Event", moment(row.received_at), chip(row.action_type, verbatim=True), _risk(row)),
            "url": reverse("admin:events_behaviorevent_change", args=[row.pk]),
            "by": "the agent",
        }
    by = actor_shown(row.actor_id, names.get(row.actor_id), is_short=True)
    if isinstance(row, EventReview):
        what = status_chip(row.verdict)
        return {
            **_cells("Verdict", moment(row.reviewed_at), what, visible(row.note or EMPTY)),
            "url": reverse("admin:events_eventreview_change", args=[row.pk]),
            "by": by,
        }
    return {
        **_cells(*_entry(row)),
        "url": reverse("admin:auditlog_auditentry_change", args=[row.pk]),
        "by": by,
    }


def _entry(entry: AuditEntry) -> tuple[str, Any, SafeString, str]:
    kind = entry.event_type.partition(".")[0].capitalize()
    text = visible(entry.description or EMPTY)
    return kind, moment(entry.created_at), chip(entry.event_type, verbatim=True), text


def _cells(kind: str, when: Any, what: Any, text: Any) -> dict[str, Any]:
    return {"kind": kind, "when": when, "what": what, "text": text}


def _risk(event: BehaviorEvent) -> SafeString:
    """Return the score, with the strongest reason for it."""
    reasons = [reason for reason in event.reasons or () if isinstance(reason, dict)]
    strongest = visible(in_words(str(reasons[0].get("name", "")))) if reasons else ""
    return format_html("{} {}", score_chip(event.risk_score, event.risk_band), strongest)
