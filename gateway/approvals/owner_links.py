"""The owner's one-time link: pages on which an agent's owner, without an account, decides on one approval.

The link's secret moves to the session and leaves the address. Only the form's POST decides: mail scanners
follow links.
"""

from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from auditlog.vocabulary import Actor
from compliance.api import gate
from compliance.api.exceptions import error_response
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import hit
from compliance.console.display import visible
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from gateway.approvals import page, services
from gateway.approvals.models import Approval, ApprovalStatus, DeciderKind

HELD: Final = "approval_links"
MOST_HELD: Final = 20
UNKNOWN: Final = (
    "This link is not one of ours, what it asked about ended long ago, or the agent has another owner now. "
    "Nothing was decided."
)
NOT_HELD: Final = "Nothing was decided: open the link in the mail again."


@never_cache
def open_link(request: HttpRequest, approval_id: UUID, token: str) -> HttpResponse:
    """Keep the secret of a link in the session, so that no address shows it, and go to the form.

    A guess is not kept: strangers could fill the table of sessions.
    """
    if refused := _over_limit(request):
        return refused
    if services.asked_by_link(approval_id, token) is None:
        answer = _shown(request, None, problem=UNKNOWN, status=404)
    else:
        held = dict(list(request.session.get(HELD, {}).items())[-MOST_HELD + 1 :])
        # Who knew the session before must not decide with it.
        request.session.cycle_key()
        request.session[HELD] = {**held, str(approval_id): token}
        answer = HttpResponseRedirect(reverse("approval_link_form", args=[approval_id]))
    answer.headers["Referrer-Policy"] = "no-referrer"
    return answer


@never_cache
@csrf_protect
def decide(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Show what the agent asks for; decide on a POST."""
    if refused := _over_limit(request):
        return refused
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    approval = services.asked_by_link(approval_id, request.session.get(HELD, {}).get(str(approval_id), ""))
    if approval is None:
        return _shown(request, None, problem=NOT_HELD, status=404)
    if request.method == "POST" and (verdict := page.VERDICTS.get(request.POST.get("act", ""))) is not None:
        try:
            approval = services.decide(
                tenant_id=approval.tenant_id,
                approval_id=approval.id,
                approved=verdict,
                actor=Actor.owner(approval.owner_email or ""),
                now=now(),
            )
        except ServiceError as error:
            approval.refresh_from_db()
            problem = f"Nothing was decided: {error.message}."
            return _shown(request, approval, problem=problem, status=error.status)
    return _shown(request, approval)


def _shown(
    request: HttpRequest, approval: Approval | None, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {**admin.site.each_context(request), "title": "Approval", "problem": problem}
    if approval is not None:
        context["title"] = f"May {visible(approval.agent_name)} do this?"
        context["it"] = {
            **page.act_of(approval),
            "owner": approval.owner_email,
            "is_waiting": approval.status_at(now()) is ApprovalStatus.PENDING,
            "outcome": _outcome(approval),
        }
    return TemplateResponse(request, "admin/approvals/owner.html", context, status=status)


def _outcome(approval: Approval) -> str:
    """Say what became of the approval."""
    if approval.decided_by is None:
        return approval.note or "Nobody decided in time; the link has expired. The agent has to ask again."
    by = "an officer" if approval.decided_by_kind == DeciderKind.PERSON else "the owner, by this link"
    verdict = "Denied" if approval.status == ApprovalStatus.DENIED else "Approved"
    when = f"{approval.decided_at:%Y-%m-%d %H:%M} UTC"
    return f"{verdict} by {by} at {when}. The link decides once and is used up."


def _over_limit(request: HttpRequest) -> HttpResponse | None:
    limit = hit("public", gate.client_address(GateRequest.of(request)))
    return None if limit.allowed else error_response(request, 429, "Too many requests", limit.headers())
