"""The page of approvals as its template shows it."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from agents.models import Agent
from auditlog.actors.names import names_of
from certificates.models import Certificate
from compliance.console.access import OFFICERS, access_of
from compliance.console.display import EMPTY, chip, moment, pretty_json, score_chip, status_chip, visible
from compliance.core.identifiers import parse_id
from events.models import BehaviorEvent
from gateway.approvals.models import Approval, ApprovalQuerySet
from people.doors.second_factor import is_shown

WAITING_SHOWN, ENDED_SHOWN = 50, 20
VERDICTS = {"approve": True, "deny": False}


def context_of(request: HttpRequest, rows: ApprovalQuerySet, now: datetime) -> dict[str, Any]:
    """Return the template variables of the page over `rows`, those of the user's tenants."""
    waiting = list(rows.pending(now).order_by("expires_at", "id")[: WAITING_SHOWN + 1])
    ended = rows.ended(now).order_by("-requested_at", "-id")[:ENDED_SHOWN]
    wanted = parse_id(request.GET.get("approval"))
    found = next((one for one in waiting if one.id == wanted), None)
    if found is None and wanted is not None:
        found = rows.pending(now).filter(id=wanted).first()
    selected = found or next(iter(waiting), None)
    shown = waiting[:WAITING_SHOWN]
    return {
        "title": "Approvals",
        "page_url": url_of(None),
        "count": f"{WAITING_SHOWN} or more" if len(waiting) > WAITING_SHOWN else len(waiting),
        "waiting": [{**_told(one), "url": url_of(one), "is_open": one == selected} for one in shown],
        "ended": [{**_told(one), "status": status_chip(one.status_at(now))} for one in ended],
        "links": _links(shown, selected),
        "is_unknown": wanted is not None and found is None,
        "it": selected and _dossier(request, selected, now),
    }


def url_of(approval: Approval | None) -> str:
    """Return where the page shows an approval that waits."""
    page = reverse("admin:approvals_approval_changelist")
    return page if approval is None else f"{page}?{urlencode({'approval': approval.id})}"


def risk_chip(approval: Approval) -> str:
    score = approval.risk_score
    return "" if score is None else score_chip(score, approval.risk_band or "")


def _told(approval: Approval) -> dict[str, Any]:
    return {
        "id": approval.id,
        "agent": visible(approval.agent_name),
        "tenant": visible(approval.tenant),
        "action": chip(approval.action_name, verbatim=True),
        "risk": risk_chip(approval),
        "requested": moment(approval.requested_at),
        "expires": moment(approval.expires_at),
    }


def act_of(approval: Approval) -> dict[str, Any]:
    """Return what the agent asks for, all of it: a person approves what they can see."""
    agent = Agent.objects.for_tenant(approval.tenant_id).get(id=approval.agent_id)
    return {
        **_told(approval),
        "agent_id": agent.id,
        "agent_status": status_chip(agent.status),
        "action_type": chip(approval.action_type, verbatim=True) if approval.action_type else EMPTY,
        "details": pretty_json(approval.details, limit=None),
        "why": admin.site.get_model_admin(BehaviorEvent).why(approval),  # type: ignore[attr-defined]
    }


def _links(waiting: list[Approval], selected: Approval | None) -> dict[str, str]:
    """Return where the keys to the neighbours lead; those that lead nowhere are left out."""
    if selected not in waiting:
        return {}
    place = waiting.index(selected)
    found = {"next": waiting[place + 1 : place + 2], "previous": waiting[max(place - 1, 0) : place]}
    return {name: url_of(rows[0]) for name, rows in found.items() if rows}


def _dossier(request: HttpRequest, approval: Approval, now: datetime) -> dict[str, Any]:
    """Return all that a decision needs."""
    certificate = Certificate.objects.for_tenant(approval.tenant_id).latest_of(approval.agent_id)
    by = approval.requested_by
    return {
        **act_of(approval),
        "certificate": status_chip(certificate.status_at(now)) if certificate else "none",
        "requested_by": visible(names_of([by]).get(by, by)),
        "may_decide": access_of(request).may(OFFICERS, approval.tenant_id),
        "has_factor": is_shown(request),
    }
