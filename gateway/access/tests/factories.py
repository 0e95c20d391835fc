"""Evaluations and policies for tests."""

from typing import Any, Final

from agents.models import Agent
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from gateway.access import services
from gateway.models import AskPolicy
from tenancy.models import Tenant

ONE: Final = "/access/v1/evaluation"
ALL: Final = "/access/v1/evaluations"
RECORD: Final = {"type": "record", "id": "record-1"}
UNUSUAL: Final = {"action_type": "transaction_anomaly", "details": {"action": "pay"}}
"""The context of an act that is medium by itself."""


def ask(agent: Agent, action: str = "read", **members: Any) -> dict[str, Any]:
    """The body of an evaluation; `members` beside or instead of those of an ordinary one."""
    subject = {"type": "agent", "id": str(agent.id)}
    return {"subject": subject, "action": {"name": action}, "resource": RECORD, **members}


def make_policy(tenant: Tenant, applies_to: str = "tenant", **fields: Any) -> AskPolicy:
    """A policy that never asks, unless told otherwise."""
    named = {"ask_from": "never", "always_ask": [], "ttl_seconds": 900, **fields}
    actor = Actor.system("tests")
    return services.put(tenant_id=tenant.id, applies_to=applies_to, fields=named, actor=actor, now=now())


def decided(client: ApiClient, body: Any) -> tuple[bool, str, str]:
    """Decision, outcome and first reason."""
    answer = client.post(ONE, body)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    context = found["context"]
    return found["decision"], context["outcome"], context["reasons"][0]["name"]
