"""Whether a person is asked before a request passes a gateway, and what follows from the answer.

A gateway tells method and URL of a request, so these are what a person approves, and the receipt's act.
"""

from typing import Any, Final
from uuid import UUID

from agents.errors import AgentNotFound
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.answers import service_header
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.core.identifiers import new_id_at
from gateway.approvals import services as approvals
from gateway.approvals.errors import ApprovalRefused, TooManyPending
from gateway.approvals.models import Approval
from gateway.approvals.services import MOST_PENDING
from gateway.deciding.decisions import Passage
from gateway.deciding.refusals import GatewayRefused
from gateway.deciding.requests import APPROVAL, DecisionRequest
from gateway.models import AskPolicy

REQUIRED: Final = "approval_required"
MESSAGE: Final = "A person must approve this request"
MOST_UNPROVEN: Final = 5
"""Approvals of an agent that may wait for a request without its key to open one: others stay for itself."""


def settled(passage: Passage, *, request: DecisionRequest, policy: AskPolicy) -> Passage | ServiceError:
    """The passage if the request brings its approval's receipt; else the refusal that names the approval.

    Another tenant's agent is refused without one: nobody of this tenant decides about it. Refused receipts
    leave no entry in the audit log, which anybody who was shown one could fill.
    """
    act: dict[str, Any] = {
        "tenant_id": request.tenant_id,
        "agent_id": passage.agent_id,
        "action_name": passage.action,
        "details": act_of(request, passage),
        "risk_band": passage.risk_band,
        "now": request.now,
    }
    decision_id, is_proven = UUID(new_id_at(request.now)), passage.credential.is_proven
    try:
        with environments.atomic():
            if request.receipt is not None:
                approvals.consume(receipt=request.receipt, **act)
                return passage
            found = approvals.open_approval(
                action_type=None,
                risk_score=None,
                reasons=[],
                ttl_seconds=policy.ttl_seconds,
                decision_id=decision_id,
                actor=Actor.api_key(request.key_id),
                most_pending=MOST_PENDING if is_proven else MOST_UNPROVEN,
                **act,
            )
            if found.decision_id == decision_id:
                _audit(passage, request, found)
    except ApprovalRefused as refused:
        return GatewayRefused(403, refused.message, f"approval_{refused.reason}")
    except TooManyPending as error:
        return GatewayRefused(403, error.message, "too_many_pending")
    except AgentNotFound:
        return GatewayRefused(403, MESSAGE, REQUIRED)
    except ServiceError as error:
        return error
    return GatewayRefused(403, MESSAGE, REQUIRED, headers={service_header(APPROVAL): str(found.id)})


def act_of(request: DecisionRequest, passage: Passage) -> dict[str, Any]:
    """What is approved: the request with its query, or the route where the gateway does not forward it."""
    if request.original is None:
        return {"resource": {"type": "route", "id": passage.route}}
    return {"resource": {"type": "http", "id": f"{request.original.method} {request.original.uri}"}}


def _audit(passage: Passage, request: DecisionRequest, approval: Approval) -> None:
    auditlog.record(
        tenant_id=request.tenant_id,
        action=AuditAction.DECISION_ASKED,
        affected_id=passage.agent_id,
        description="A request at the gateway was put to a person",
        metadata={
            "decision_id": str(approval.decision_id),
            "agent_id": str(passage.agent_id),
            "action": passage.action,
            "route": passage.route or None,
            "reasons": [REQUIRED],
            "risk_band": passage.risk_band,
            "approval_id": str(approval.id),
        },
        actor=Actor.api_key(request.key_id),
        now=request.now,
    )
