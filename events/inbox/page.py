"""The inbox's page as its template shows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from auditlog.actors.names import names_of
from auditlog.actors.requests import actor_of
from certificates.models import Certificate
from compliance.console.access import OFFICERS, access_of
from compliance.console.display import chip, code, moment, pretty_json, score_chip, status_chip, visible
from compliance.console.filters import tenants_of
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from events.inbox.forms import BANDS, SHOWN, SNOOZES, DecisionForm, InboxFilters, reviewers_of
from events.inbox.models import CommentKind, InboxComment, OpenEvent
from events.inbox.reading import (
    WINDOW,
    Group,
    InboxPage,
    filtered,
    read_inbox,
    story_of,
    strikes_of,
)
from events.inbox.reviewing import places_if_confirmed
from events.ingest.reactions import window_minutes
from events.models import BehaviorEvent
from tenancy.console_actions import mode_chip

COMMENTS = 10
Names = Mapping[str, str]


def context_of(request: HttpRequest, rows: QuerySet[OpenEvent], form: DecisionForm) -> dict[str, Any]:
    """Return the template variables of the inbox over `rows`, those of the user's tenants."""
    filters = InboxFilters.of(request.GET)
    given = request.POST if request.method == "POST" else request.GET
    event_id, agent_id, after = (parse_id(given.get(name)) for name in ("event", "agent", "after"))
    # Verdicts that the browser still holds, so that they can be undone.
    held = [parse_id(text) for text in request.GET.get("held", "").split(",")[:WINDOW]]
    rows = rows.exclude(event_id__in=[found for found in held if found])
    shown = filtered(rows, filters, actor_id=actor_of(request).id, now=now())  # type: ignore[arg-type]
    inbox = read_inbox(shown, filters, event_id=event_id, agent_id=agent_id, after=after)
    event = inbox.event
    comments = list(InboxComment.objects.filter(agent_id=event.agent_id)[:COMMENTS]) if event else []
    assignees = [one.queue.assignee for one in inbox.groups if one.queue and one.queue.assignee]
    names = names_of([*assignees, *(comment.actor_id for comment in comments)])
    return {
        "title": "Review inbox",
        "inbox_url": reverse("admin:inbox_openevent_changelist"),
        "inbox": inbox,
        "form": form,
        "filters": filters,
        "choices": {
            "bands": [(label, filters.but(band=value), filters.band == value) for value, label in BANDS],
            "shown": [(label, filters.but(shown=value), filters.shown == value) for value, label in SHOWN],
            "tenants": tenants_of(request),
        },
        "groups": [
            {
                "name": visible(one.agent.name),
                "tenant": visible(one.agent.tenant),
                "high": one.high,
                "medium": one.medium,
                "oldest": moment(one.oldest_at),
                "assignee": _named(one.queue.assignee if one.queue else None, names),
                "status": status_chip(one.agent.status),
                "mode": mode_chip(one.agent.effective_enforcement) if one.agent.is_observed else "",
                "url": filters.query(agent=one.agent.id),
                "is_open": one is inbox.group,
            }
            for one in inbox.groups
        ],
        "links": _links(inbox, filters),
        "events": [_row(alike, inbox, filters, request) for alike in inbox.alike],
        "dossier": event and _dossier(request, event, inbox.group, comments, names),
        "is_unknown": event_id is not None and (inbox.selected is None or inbox.selected.pk != event_id),
    }


def _named(actor_id: str | None, names: Names) -> str:
    return visible(names.get(actor_id, actor_id)) if actor_id else ""


def _row(
    rows: Sequence[OpenEvent], inbox: InboxPage, filters: InboxFilters, request: HttpRequest
) -> dict[str, Any]:
    """Return one row for events that are alike."""
    row = inbox.selected if inbox.selected and inbox.selected in rows else rows[0]
    return {
        **_told(row),
        "id": row.event_id,
        "ids": ",".join(str(one.event_id) for one in rows),
        "count": len(rows),
        "url": filters.query(agent=row.agent_id, event=row.event_id),
        "is_selected": inbox.selected in rows,
        "is_ticked": request.GET.get("tick") == "all",
        "label": f"{row.action_type} of {row.received_at:%Y-%m-%d %H:%M:%S}",
    }


def _told(event: BehaviorEvent | OpenEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "at": moment(event.received_at),
        "action": chip(event.action_type, verbatim=True),
        "risk": score_chip(event.risk_score, event.risk_band),
        "verdict": status_chip(said) if (said := getattr(event, "said", None)) else "",
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
    agent_id, window = inbox.selected.agent_id, list(inbox.window)
    place = window.index(inbox.selected)
    found["here"] = filters.query(agent=agent_id, event=inbox.selected.pk)
    found["all"] = filters.query(agent=agent_id, event=inbox.selected.pk, tick="all")
    if inbox.is_more:
        found["more"] = filters.query(agent=agent_id, after=window[-1].pk)
    if place > 0:
        found["previous"] = filters.query(agent=agent_id, event=window[place - 1].pk)
    agents = [group.agent.id for group in inbox.groups]
    following = agents[agents.index(agent_id) + 1 :] if agent_id in agents else agents
    if place + 1 < len(window):
        found["next"] = filters.query(agent=agent_id, event=window[place + 1].pk)
    elif inbox.is_more:
        found["next"] = found["more"]
    elif following:
        found["next"] = filters.query(agent=following[0])
    return found


def _dossier(
    request: HttpRequest,
    event: BehaviorEvent,
    group: Group | None,
    comments: Sequence[InboxComment],
    names: Names,
) -> dict[str, Any]:
    """Return all that a verdict on the event needs."""
    agent, moment_now, most = event.agent, now(), settings.HIGH_RISK_STRIKES
    certificate = Certificate.objects.latest_of(agent)
    marks = places_if_confirmed(event, said=None, certificate=certificate, now=moment_now)
    before, after = story_of(event)
    strikes, strikes_now = strikes_of(event, now=moment_now)
    may_decide = access_of(request).may(OFFICERS, event.tenant_id)
    queue = group.queue if group else None
    until = queue.snoozed_until if queue else None
    return {
        "event": event,
        "agent": agent,
        "agent_name": visible(agent.name),
        "agent_status": status_chip(agent.status),
        "mode": mode_chip(agent.effective_enforcement) if agent.is_observed else "",
        "action": chip(event.action_type, verbatim=True),
        "risk": score_chip(event.risk_score, event.risk_band),
        "received": f"{event.received_at:%Y-%m-%d %H:%M:%S} UTC",
        "certificate": status_chip(certificate.status) if certificate else "none",
        "can_be_revoked": certificate is not None
        and (certificate.status_at(moment_now) == "active" or certificate.is_on_hold(moment_now)),
        "can_be_suspended": agent.status in ("pending", "active"),
        "is_strike": event.risk_band == "high",
        "strikes": f"{strikes} of {most}",
        "strikes_now": f"{strikes_now} of {most}",
        "window": window_minutes(),
        "marks": [code(name) for name in marks],
        "why": admin.site.get_model_admin(BehaviorEvent).why(event),  # type: ignore[attr-defined]
        "details": pretty_json(event.details),
        "before": [_told(row) for row in before],
        "after": [_told(row) for row in after],
        "comments": [
            {
                "text": visible(row.text),
                "case_number": visible(row.case_number or ""),
                "by": _named(row.actor_id, names),
                "at": moment(row.created_at),
                "kind": "" if row.kind == CommentKind.COMMENT else status_chip(row.kind),
            }
            for row in comments
        ],
        "queue": {
            "assignee": queue.assignee if queue else None,
            "assignee_name": _named(queue.assignee if queue else None, names) or "nobody",
            "snoozed_until": f"{until:%Y-%m-%d %H:%M} UTC" if until and until > moment_now else "",
        },
        "may_decide": may_decide,
        "reviewers": reviewers_of(request, event.tenant_id).items() if may_decide else [],
        "snoozes": [(value, words) for value, (words, _) in SNOOZES.items()],
    }
