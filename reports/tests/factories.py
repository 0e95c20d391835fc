"""Facts and documents for tests."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from reports.content.facts import Facts, Frame, Row
from reports.pdf.sections import render

END = datetime(2026, 11, 1, tzinfo=UTC)
START = END - timedelta(days=31)
NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
AGENT_ID = UUID(int=7)


def make_frame(**fields: Any) -> Frame:
    given: dict[str, Any] = {
        "report_id": UUID(int=1),
        "tenant_id": UUID(int=2),
        "tenant_name": "Acme",
        "environment": "live",
        "start": START,
        "end": END,
        "generated_at": NOW,
        "agent_ids": None,
    }
    return Frame(**{**given, **fields})


def make_agent_fact(**fields: Any) -> Row:
    given: dict[str, Any] = {
        "id": AGENT_ID,
        "name": "trade-bot",
        "model": "gpt-5",
        "version": "2.1",
        "model_hash": "sha256:ab",
        "status": "active",
        "registered_at": START - timedelta(days=1),
        "permitted_actions": ["read", "trade"],
        "has_financial_limits": True,
        "risk_score": 0.42,
        "is_certified": True,
        "enforcement": "enforce",
        "seconds_observed": 0,
        "events_by_band": {"low": 90, "medium": 7, "high": 3},
        "last_event_at": END - timedelta(hours=1),
    }
    return given | fields


def make_revoked_certificate_fact(**fields: Any) -> Row:
    given: dict[str, Any] = {
        "serial_number": "5f2c9a3de1b047c8",
        "agent_id": AGENT_ID,
        "agent_name": "trade-bot",
        "status": "revoked",
        "issued_at": START,
        "expires_at": START + timedelta(days=365),
        "revoked_at": END - timedelta(hours=1),
        "revocation_reason": "3 high-risk events in 15 minutes",
        "seconds_from_high_risk_event": 0.25,
    }
    return given | fields


def make_high_risk_fact() -> Row:
    return {
        "id": UUID(int=9),
        "agent_id": AGENT_ID,
        "action_type": "transaction_anomaly",
        "risk_score": 0.97,
        "occurred_at": END,
        "received_at": END,
        "agent_name": "trade-bot",
        "reasons": ["prior", "scope"],
        "verdict": "confirmed",
        "first_review_at": END,
    }


def make_oversight_fact() -> Row:
    return {
        "at": END,
        "what": "certificate.revoked",
        "actor_type": "user",
        "actor_id": "person:kim",
        "subject": "5f",
        "description": "Revoked",
    }


def make_busy_facts(**fields: Any) -> Facts:
    """A month in which everything happened once."""
    given: dict[str, Any] = {
        "agents": (make_agent_fact(),),
        "agent_count": 1,
        "certificates": (make_revoked_certificate_fact(),),
        "certificate_count": 1,
        "certificates_revoked_at_end": 1,
        "high_risk": (make_high_risk_fact(),),
        "events_by_band": {"low": 90, "medium": 7, "high": 3},
        "events_by_action": {"api_call": 80, "transaction_initiated": 20},
        "trend": ({"at": START, "bands": {"low": 90, "high": 3}},),
        "oversight": (make_oversight_fact(),),
        "acts": {
            "agent.suspended": {"person": 1},
            "certificate.revoked": {"system": 1},
            "agent.updated": {"person": 1, "api_key": 1},
            "agent.high_risk": {"system": 1},
            "delegation.issued": {"api_key": 4},
        },
        "verdicts": {"confirmed": 2, "dismissed": 1},
        "verdicts_by": {"person": 3},
        "human_interventions": 1,
        "delegations": {"verified": 4},
        "delegations_checked_against_a_scope": 4,
        "oldest_event_at": NOW - timedelta(days=400),
        "oldest_entry_at": NOW - timedelta(days=401),
        "event_retention_days": 1827,
        "audit_retention_days": 1827,
        "is_log_guarded": True,
    }
    return Facts(**{**given, **fields})


def draw(document: dict[str, Any]) -> bytes:
    return render(document, digest="ab" * 32, fingerprint="cd" * 32)
