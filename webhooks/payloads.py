"""What each event's envelope looks like, for the API's description and the receiver's guide."""

from typing import Any

from webhooks.vocabulary import DISABLED_EVENT, TEST_EVENT, EventName

_AGENT = "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10"
_SERIAL = "5f1c0a9e4b7d4c2f8e6a1b3c5d7e9f01"
_EVENT = "0199f2a4-9d20-7f55-8a44-6f2f8f1f9c77"
_TIME = "2026-11-20T09:15:00.123456Z"

# `data` of each event by example. certificate.revoked is the interface specification's own.
DATA: dict[str, dict[str, Any]] = {
    EventName.CERTIFICATE_ISSUED: {
        "certificate_id": "0199f2a4-8b10-7c11-a111-0d0d0d0d0d0d",
        "agent_id": _AGENT,
        "serial_number": _SERIAL,
        "issued_at": _TIME,
        "expires_at": "2027-11-20T09:15:00Z",
    },
    EventName.CERTIFICATE_REVOKED: {
        "serial_number": _SERIAL,
        "agent_id": _AGENT,
        "revocation_reason": "Key compromised",
        "revoked_at": _TIME,
    },
    EventName.CERTIFICATE_EXPIRED: {
        "certificate_id": "0199f2a4-8b10-7c11-a111-0d0d0d0d0d0d",
        "serial_number": _SERIAL,
        "agent_id": _AGENT,
        "expires_at": "2026-11-20T09:15:00Z",
    },
    EventName.AGENT_HIGH_RISK: {
        "agent_id": _AGENT,
        "risk_score": 0.93,
        "high_events": 3,
        "window_minutes": 15,
        "event_id": _EVENT,
        "threshold_breached": True,
    },
    EventName.AGENT_CREATED: {
        "agent_id": _AGENT,
        "name": "trade-bot",
        "status": "pending",
    },
    EventName.AGENT_SUSPENDED: {"agent_id": _AGENT, "reason": "Under review", "status": "suspended"},
    EventName.AGENT_HALTED: {
        "agent_id": _AGENT,
        "reason": "3 high-risk events within 15 minutes",
        "status": "suspended",
    },
    EventName.RISK_ALERT: {
        "agent_id": _AGENT,
        "event_id": _EVENT,
        "action_type": "unauthorized_access_attempt",
        "risk_score": 0.93,
        "risk_band": "high",
        "reasons": [
            {
                "name": "reported_unauthorized",
                "observed": "the agent tried an action outside its scope",
                "expected": "actions inside the scope",
                "weight": 0.1,
            }
        ],
    },
    TEST_EVENT: {"webhook_id": "0199f2a4-6a00-7b00-8c00-1a1a1a1a1a1a"},
    DISABLED_EVENT: {
        "webhook_id": "0199f2a4-6a00-7b00-8c00-1a1a1a1a1a1a",
        "failed_deliveries": 100,
        "failing_since": _TIME,
        "given_up": 12,
    },
}


def example_envelope(event: str) -> dict[str, Any]:
    """A whole envelope of `event`."""
    return {"id": _EVENT, "event": event, "created_at": _TIME, "data": DATA[event]}
