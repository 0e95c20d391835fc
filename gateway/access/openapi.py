"""Texts, parameters and examples of decisions and approval policies for the API description."""

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

APPLIES_TO: Final = OpenApiParameter(
    "applies_to",
    OpenApiTypes.STR,
    location=OpenApiParameter.PATH,
    description="`tenant`, `agent:<id>` or `route:<id>`.",
)
_AGENT: Final = "01a0b2c4-7b1e-7c31-8d55-0d2f5a1c9e77"
_APPROVAL: Final = "01a0b2c4-0000-7000-8000-000000000003"
PRECEDENCE: Final = "The policy of the route counts, else the agent's, its blueprint's or the tenant's."
EVALUATE_TEXT: Final = (
    "OpenID AuthZEN Authorization API 1.0. Checks the agent and its certificate, its scope and financial "
    "limits, the delegation token if there is one, and the score that the event would get; nothing is "
    "learned of it. `decision` is true only of the outcome `allow`. An unknown subject, another tenant's and "
    "one of the other environment are denied alike. Unknown members are ignored."
)
EVALUATE_ALL_TEXT: Final = (
    "As `/access/v1/evaluation` for each of `evaluations`, in order. A malformed one is denied in its place. "
    "Each counts as a request against the rate limit, each 4 KiB of the body as one at least."
)
_ACT: Final = {
    "subject": {"type": "agent", "id": _AGENT},
    "action": {"name": "pay"},
    "resource": {"type": "invoice", "id": "2026-0042"},
    "context": {
        "action_type": "transaction_initiated",
        "details": {"amount": 900, "currency": "EUR", "payee": "Acme Supplies"},
    },
}
ACT: Final = OpenApiExample("act", value=_ACT, request_only=True)
ACTS: Final = OpenApiExample(
    "acts",
    value={
        "subject": _ACT["subject"],
        "action": {"name": "read"},
        "context": _ACT["context"],
        "options": {"evaluations_semantic": "deny_on_first_deny"},
        "evaluations": [
            {"resource": {"type": "invoice", "id": "2026-0042"}},
            {"action": {"name": "pay"}, "resource": {"type": "invoice", "id": "2026-0042"}},
        ],
    },
    request_only=True,
)
_REASON: Final = {
    "name": "action_type",
    "text": "What such an action is worth by itself",
    "observed": "transaction_initiated",
    "expected": "scores 0.06 by itself",
}
_ALLOWED: Final = {
    "decision": True,
    "context": {
        "outcome": "allow",
        "decision_id": "01a0b2c4-0000-7000-8000-000000000004",
        "reasons": [_REASON],
        "risk_score": 0.06,
        "risk_band": "low",
    },
}
_ASKED: Final = {
    "decision": False,
    "context": {
        "outcome": "ask",
        "decision_id": "01a0b2c4-0000-7000-8000-000000000005",
        "reasons": [
            {"name": "always_ask", "text": "A person is asked before every act of this name"},
            _REASON,
        ],
        "risk_score": 0.06,
        "risk_band": "low",
        "approval": {"id": _APPROVAL, "status": "pending", "expires_at": "2026-01-02T03:19:05Z"},
    },
}
ALLOWED: Final = OpenApiExample("allow", value=_ALLOWED, response_only=True, status_codes=["200"])
ASKED: Final = OpenApiExample("ask", value=_ASKED, response_only=True, status_codes=["200"])
DECIDED: Final = OpenApiExample(
    "decisions", value={"evaluations": [_ALLOWED, _ASKED]}, response_only=True, status_codes=["200"]
)
_POLICY: Final = {"ask_from": "medium", "always_ask": ["pay"], "ttl_seconds": 900}
POLICY: Final = OpenApiExample("policy", value=_POLICY, request_only=True)
A_POLICY: Final = OpenApiExample(
    "policy",
    value={
        "data": {
            "applies_to": f"agent:{_AGENT}",
            **_POLICY,
            "created_at": "2026-01-02T03:04:05Z",
            "updated_at": "2026-01-02T03:04:05Z",
        }
    },
    response_only=True,
    status_codes=["200"],
)
