"""The page of an agent's trail in the console."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from agents.models import Agent
from auditlog.actors.names import actor_shown, names_of
from compliance.console.admin import RowPage, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, moment, score_chip, shortened, status_chip, visible
from events.models import BehaviorEvent, EventReview
from events.risk.scoring.model import in_words
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
        reasons = [reason for reason in row.reasons or () if isinstance(reason, dict)]
        strongest = visible(in_words(str(reasons[0].get("name", "")))) if reasons else ""
        return {
            "kind": "Event",
            "when": moment(row.received_at),
            "what": chip(row.action_type, verbatim=True),
            "text": format_html("{} {}", score_chip(row.risk_score, row.risk_band), strongest),
            "url": reverse("admin:events_behaviorevent_change", args=[row.pk]),
            "by": "the agent",
        }
    by = actor_shown(row.actor_id, names.get(row.actor_id), is_short=True)
    if isinstance(row, EventReview):
        return {
            "kind": "Verdict",
            "when": moment(row.reviewed_at),
            "what": status_chip(row.verdict),
            "text": visible(row.note or EMPTY),
            "url": reverse("admin:events_eventreview_change", args=[row.pk]),
            "by": by,
        }
    return {
        "kind": row.event_type.partition(".")[0].capitalize(),
        "when": moment(row.created_at),
        "what": chip(row.event_type, verbatim=True),
        "text": visible(row.description or EMPTY),
        "url": reverse("admin:auditlog_auditentry_change", args=[row.pk]),
        "by": by,
    }
