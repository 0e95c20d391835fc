"""The inbox's page as its template shows it."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from auditlog.actors.names import names_of
from auditlog.actors.requests import actor_of
from compliance.console.access import OFFICERS, access_of
from compliance.console.display import chip, code, moment, pretty_json, score_chip, status_chip, visible
from compliance.console.filters import tenants_of
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from compliance.tenancy.console_actions import mode_chip
from events.inbox.filters import MINE, NOBODY, SNOOZED, InboxFilters
from events.inbox.forms import SNOOZES, DecisionForm
from events.inbox.models import AgentQueue, InboxComment, OpenEvent
from events.inbox.people import reviewers_of
from events.inbox.reading import Dossier, InboxPage, QueuedAgent, dossier_of, filtered, read_inbox
from events.models import BehaviorEvent

SHOWN = (("", "All"), (MINE, "Mine"), (NOBODY, "Nobody's"), (SNOOZED, "Snoozed"))
Names = Mapping[str, str]
BANDS = (("", "High and medium"), ("high", "High"), ("medium", "Medium"))


def context_of(request: HttpRequest, rows: QuerySet[OpenEvent], form: DecisionForm) -> dict[str, Any]:
    """Return the template variables of the inbox over `rows`, those of the user's tenants."""
    filters, moment_now = InboxFilters.of(request.GET), now()
    given = request.POST if request.method == "POST" else request.GET
    event_id, agent_id, after = (parse_id(given.get(name)) for name in ("event", "agent", "after"))
    shown = filtered(rows, filters, actor_id=actor_of(request).id, now=moment_now)  # type: ignore[arg-type]
    inbox = read_inbox(shown, filters, event_id=event_id, agent_id=agent_id, after=after)
    dossier = dossier_of(inbox.selected, now=moment_now) if inbox.selected else None
    names = _names(inbox, dossier)
    return {
        "title": "Review inbox",
        "inbox_url": reverse("admin:inbox_openevent_changelist"),
        "inbox": inbox,
        "form": form,
        "filters": filters,
        "choices": _choices(request, filters),
        "groups": [_group(one, inbox, filters, names) for one in inbox.queued],
        "links": _links(inbox, filters),
        "events": [_row(row, inbox, filters, request) for row in inbox.window],
        "dossier": _dossier(request, dossier, _queue_of(inbox), names) if dossier else None,
        "is_unknown": event_id is not None and (inbox.selected is None or inbox.selected.pk != event_id),
    }


def _choices(request: HttpRequest, filters: InboxFilters) -> dict[str, Any]:
    """Return the filters with their links, and the tenants to choose from."""
    return {
        "bands": [(label, filters.but(band=value), filters.band == value) for value, label in BANDS],
        "shown": [(label, filters.but(shown=value), filters.shown == value) for value, label in SHOWN],
        "tenants": tenants_of(request),
    }


def _names(inbox: InboxPage, dossier: Dossier | None) -> Names:
    """Return the present names of the assignees and commenters on the page."""
    assignees = [one.queue.assignee for one in inbox.queued if one.queue and one.queue.assignee]
    return names_of([*assignees, *(comment.actor_id for comment in (dossier.comments if dossier else ()))])


def _named(actor_id: str | None, names: Names) -> str:
    return visible(names.get(actor_id, actor_id)) if actor_id else ""


def _group(one: QueuedAgent, inbox: InboxPage, filters: InboxFilters, names: Names) -> dict[str, Any]:
    return {
        "name": visible(one.agent.name),
        "tenant": visible(one.agent.tenant),
        "high": one.group.high,
        "medium": one.group.medium,
        "total": one.group.total,
        "oldest": moment(one.group.oldest_at),
        "assignee": _named(one.queue.assignee if one.queue else None, names),
        "status": status_chip(one.agent.status),
        "mode": mode_chip(one.agent.effective_enforcement) if one.agent.is_observed else "",
        "url": filters.query(agent=one.agent.id),
        "is_open": inbox.selected is not None and inbox.selected.agent_id == one.agent.id,
    }


def _row(row: OpenEvent, inbox: InboxPage, filters: InboxFilters, request: HttpRequest) -> dict[str, Any]:
    return {
        "id": row.event_id,
        "url": filters.query(agent=row.agent_id, event=row.event_id),
        "action": chip(row.action_type, verbatim=True),
        "risk": score_chip(row.risk_score, row.risk_band),
        "at": moment(row.received_at),
        "is_selected": inbox.selected is not None and inbox.selected.event_id == row.event_id,
        "is_ticked": request.GET.get("tick") == "all",
        "label": f"{row.action_type} of {row.received_at:%Y-%m-%d %H:%M:%S}",
    }


def _links(inbox: InboxPage, filters: InboxFilters) -> dict[str, str]:
    """Return where the keys and the links to neighbours lead; those that lead nowhere are left out."""
    found: dict[str, str] = {}
    if filters.page > 1:
        found["page_before"] = filters.query(page=filters.page - 1 if filters.page > 2 else "")
    if inbox.has_next_page:
        found["page_after"] = filters.query(page=filters.page + 1)
    if inbox.selected is None:
        return found
    agent_id, last = inbox.selected.agent_id, inbox.window[-1]
    found["all"] = filters.query(agent=agent_id, event=inbox.selected.event_id, tick="all")
    found["here"] = filters.query(agent=agent_id, event=inbox.selected.event_id)
    if inbox.is_more:
        found["more"] = filters.query(agent=agent_id, after=last.event_id)
    if inbox.following:
        found["next"] = filters.query(agent=agent_id, event=inbox.following.event_id)
    elif inbox.is_more:
        found["next"] = found["more"]
    elif inbox.next_agent:
        found["next"] = filters.query(agent=inbox.next_agent.agent.id)
    if inbox.preceding:
        found["previous"] = filters.query(agent=agent_id, event=inbox.preceding.event_id)
    return found


def _queue_of(inbox: InboxPage) -> AgentQueue | None:
    """Return the queue of the selected event's agent."""
    agent_id = inbox.selected.agent_id if inbox.selected else None
    return next((one.queue for one in inbox.queued if one.agent.id == agent_id), None)


def _dossier(request: HttpRequest, found: Dossier, queue: AgentQueue | None, names: Names) -> dict[str, Any]:
    event, agent = found.event, found.event.agent
    window = int(settings.HIGH_RISK_WINDOW.total_seconds() // 60)
    may_decide = access_of(request).may(OFFICERS, event.tenant_id)
    page = admin.site.get_model_admin(BehaviorEvent)
    return {
        "event": event,
        "agent": agent,
        "agent_name": visible(agent.name),
        "agent_status": status_chip(agent.status),
        "mode": mode_chip(agent.effective_enforcement) if agent.is_observed else "",
        "action": chip(event.action_type, verbatim=True),
        "risk": score_chip(event.risk_score, event.risk_band),
        "received": f"{event.received_at:%Y-%m-%d %H:%M:%S} UTC",
        "occurred": f"{event.occurred_at:%Y-%m-%d %H:%M:%S} UTC",
        "certificate": status_chip(found.certificate.status) if found.certificate else "none",
        "can_be_revoked": found.certificate is not None and _can_be_revoked(found),
        "can_be_suspended": agent.status in ("pending", "active"),
        "is_strike": event.risk_band == "high",
        "strikes": f"{found.strikes} of {settings.HIGH_RISK_STRIKES}",
        "strikes_now": f"{found.strikes_now} of {settings.HIGH_RISK_STRIKES}",
        "window": window,
        "marks": [code(name) for name in found.marks],
        "why": page.why(event),  # type: ignore[attr-defined]
        "details": pretty_json(event.details),
        "before": [_told(row) for row in found.before],
        "after": [_told(row) for row in found.after],
        "comments": [_comment(row, names) for row in found.comments],
        "queue": _queue(queue, names),
        "may_decide": may_decide,
        "reviewers": reviewers_of(request, event.tenant_id) if may_decide else [],
        "snoozes": [(value, words) for value, (words, _) in SNOOZES.items()],
    }


def _can_be_revoked(found: Dossier) -> bool:
    certificate, moment_now = found.certificate, now()
    return certificate is not None and (
        certificate.status_at(moment_now) == "active" or certificate.is_on_hold(moment_now)
    )


def _told(event: BehaviorEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "at": moment(event.received_at),
        "action": chip(event.action_type, verbatim=True),
        "risk": score_chip(event.risk_score, event.risk_band),
        "verdict": status_chip(event.said) if event.said else "",  # type: ignore[attr-defined]
    }


def _comment(comment: InboxComment, names: Names) -> dict[str, Any]:
    return {
        "text": visible(comment.text),
        "case_number": visible(comment.case_number or ""),
        "by": _named(comment.actor_id, names),
        "at": moment(comment.created_at),
        "kind": "" if comment.kind == "comment" else status_chip(comment.kind),
    }


def _queue(queue: AgentQueue | None, names: Names) -> dict[str, Any]:
    until = queue.snoozed_until if queue else None
    is_snoozed = until is not None and until > now()
    return {
        "assignee": queue.assignee if queue else None,
        "assignee_name": _named(queue.assignee if queue else None, names) or "nobody",
        "snoozed_until": f"{until:%Y-%m-%d %H:%M} UTC" if until and is_snoozed else "",
    }
