"""Texts, parameters and examples of approvals in the API description."""

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from gateway.approvals.models import ApprovalStatus
from gateway.approvals.services import LONGEST_WAIT

AGENT_FILTER: Final = OpenApiParameter("agent_id", OpenApiTypes.UUID)
STATUS_FILTER: Final = OpenApiParameter("status", OpenApiTypes.STR, enum=ApprovalStatus.values)
WAIT: Final = OpenApiParameter(
    "wait",
    {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
    description="Answer once the approval is decided, at the latest after so many seconds.",
)
OPEN_TEXT: Final = (
    "Asks the tenant's officers whether an agent may do one act. Only a person decides: in the console, or "
    "the agent's owner by a link that is mailed. "
    "While the same act of the same agent waits for a decision, the answer is that approval. Events "
    "`approval.requested` and `approval.decided` are sent to webhooks."
)
SHOW_TEXT: Final = (
    "An approved act has a `receipt`, which is good once, for this agent and this act only, until "
    "`expires_at`. 503 with `Retry-After`: as many requests wait as may."
)
_ACT: Final[dict[str, Any]] = {
    "agent_id": "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",
    "action": "pay",
    "action_type": "transaction_initiated",
    "details": {"amount": 25000, "currency": "EUR", "payee": "Example GmbH"},
}
QUESTION: Final = OpenApiExample("A payment", value={**_ACT, "ttl_seconds": 3600}, request_only=True)
DECIDED: Final = OpenApiExample(
    "Approved",
    value={
        "data": {
            "id": "0199f2a4-9e10-7c00-8d00-5e5e5e5e5e5e",
            **_ACT,
            "agent_name": "trade-bot",
            "action_hash": "a6732a600f087565f7c60061061da4cc754919444894bbf1d972cbf4abbd4e25",
            **dict.fromkeys(("risk_score", "risk_band", "decision_id", "used_at")),
            "reasons": [],
            "status": "approved",
            "requested_at": "2026-11-20T09:15:00.123456Z",
            "expires_at": "2026-11-20T10:15:00.123456Z",
            "decided_at": "2026-11-20T09:16:10.000000Z",
            "decided_by": "person:0199f2a4-1100-7a00-8b00-4d4d4d4d4d4d",
            "note": "Agreed with the supplier",
            "receipt": "eyJhbGciOiJFUzI1NiIsInR5cCI6ImFwcHJv….eyJpc3MiOiJodHRwczovL….QWx3YXlzIHNpZ25lZA",
        }
    },
    response_only=True,
    status_codes=["200"],
)
