"""Approvals for tests, named by state."""

from datetime import timedelta
from typing import Any, Final

from agents.models import Agent
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from gateway.approvals import services
from gateway.approvals.models import Approval

OFFICER: Final = Actor.person(new_id())
KEY: Final = Actor.api_key("tests")
DETAILS: Final[dict[str, Any]] = {"amount": 25_000, "currency": "EUR", "payee": "Ωmega & Söhne"}
HOUR: Final = timedelta(hours=1)


def make_approval(agent: Agent, **fields: Any) -> Approval:
    """An approval that waits for a decision, of an hour."""
    asked: dict[str, Any] = {
        "action_name": "pay",
        "action_type": "transaction_initiated",
        "details": DETAILS,
        "risk_score": 0.62,
        "risk_band": "medium",
        "reasons": [],
        "ttl_seconds": 3600,
        "decision_id": None,
        "actor": KEY,
        "now": now(),
    }
    return services.open_approval(tenant_id=agent.tenant_id, agent_id=agent.id, **(asked | fields))


def decide(approval: Approval, *, approved: bool = True, **fields: Any) -> Approval:
    said: dict[str, Any] = {"note": "", "actor": OFFICER, "now": now()} | fields
    return services.decide(tenant_id=approval.tenant_id, approval_id=approval.id, approved=approved, **said)


def make_approved(agent: Agent, **fields: Any) -> Approval:
    return decide(make_approval(agent, **fields))


def use(approval: Approval, **fields: Any) -> Approval:
    """Use the approval's receipt for its act, unless told otherwise."""
    act: dict[str, Any] = {
        "receipt": approval.receipt or "",
        "tenant_id": approval.tenant_id,
        "agent_id": approval.agent_id,
        "action_name": approval.action_name,
        "details": approval.details,
        "now": now(),
    }
    return services.consume(**(act | fields))
