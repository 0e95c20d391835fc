"""The report's document: pure functions from facts to JSON, and its digest.

The digest is SHA-256 over the canonical JSON (RFC 8785), so whoever holds the document can check it with
any JSON library, whatever became of white space and the order of members on the way.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import rfc8785

from compliance.reports import eu_ai_act, mica
from compliance.reports.controls import Control
from compliance.reports.facts import AgentFact, CertificateFact, Facts, Frame, HighRiskFact, OversightFact
from compliance.reports.regulations import REGULATIONS, Regulation
from compliance.reports.vocabulary import ReportType

FORMAT = "1"
NOTICE = (
    "This report states which records exist and which do not. It is no legal assessment, and it does not say "
    "whether anybody complies with anything."
)
CONTROLS: dict[ReportType, Callable[[Frame, Facts], list[Control]]] = {
    ReportType.EU_AI_ACT: eu_ai_act.controls,
    ReportType.MICA: mica.controls,
}

Json = dict[str, Any]


def build(kind: ReportType, frame: Frame, facts: Facts) -> Json:
    """The whole document, JSON values only; the same facts give the same document."""
    regulation = REGULATIONS[kind]
    return {
        "format": FORMAT,
        "notice": NOTICE,
        "type": kind.value,
        "regulation": _regulation(regulation),
        **_frame(frame),
        "summary": _summary(facts),
        "controls": [_control(control, regulation) for control in CONTROLS[kind](frame, facts)],
        "trend": {
            "span": facts.trend_span,
            "points": [{"from": _time(point.at), **_bands(point.bands)} for point in facts.trend],
        },
        "agents": [_agent(agent) for agent in facts.agents],
        "certificates": [_certificate(certificate) for certificate in facts.certificates],
        "high_risk_events": [_high_risk(event) for event in facts.high_risk],
        "oversight": [_oversight(act) for act in facts.oversight],
    }


def canonical(document: Json) -> bytes:
    """RFC 8785 JSON in UTF-8."""
    return rfc8785.dumps(document)


def digest(document: Json) -> str:
    """SHA-256 over the canonical JSON, in lowercase hex."""
    return hashlib.sha256(canonical(document)).hexdigest()


def _regulation(regulation: Regulation) -> Json:
    return {
        "name": regulation.name,
        "reference": regulation.reference,
        "applications": [
            {
                "scope": application.scope,
                "applies_from": application.applies_from.isoformat() if application.applies_from else None,
                "source": application.source,
            }
            for application in regulation.applications
        ],
    }


def _frame(frame: Frame) -> Json:
    return {
        "report_id": str(frame.report_id),
        "tenant": {"id": str(frame.tenant_id), "name": frame.tenant_name},
        "environment": frame.environment,
        "period_start": _time(frame.start),
        "period_end": _time(frame.end),
        "covered_until": _time(frame.covered_until),
        "generated_at": _time(frame.generated_at),
        "agent_ids": None if frame.agent_ids is None else [str(agent_id) for agent_id in frame.agent_ids],
    }


def _summary(facts: Facts) -> Json:
    return {
        "agents": facts.agent_count,
        "events": facts.event_count,
        "events_by_band": _bands(facts.events_by_band),
        "events_by_action": dict(sorted(facts.events_by_action.items())),
        "certificates": facts.certificate_count,
        "revocations": facts.revocation_count,
        "delegations": {
            "issued": facts.delegations.total,
            "rooted_in_a_human": facts.delegations.rooted_in_a_human,
            "checked_against_a_scope": facts.delegations.checked_against_a_scope,
        },
        "audit_entries": dict(sorted(facts.audit_by_type.items())),
        "listed": {
            "agents": len(facts.agents),
            "certificates": len(facts.certificates),
            "high_risk_events": len(facts.high_risk),
            "oversight": len(facts.oversight),
        },
    }


def _control(control: Control, regulation: Regulation) -> Json:
    provision = regulation.provisions[control.id]
    return {
        "id": control.id,
        "reference": provision.reference,
        "title": provision.title,
        "summary": provision.summary,
        "state": control.state.value,
        "evidence": list(control.evidence),
        "gaps": list(control.gaps),
    }


def _agent(agent: AgentFact) -> Json:
    return {
        "id": str(agent.id),
        "name": agent.name,
        "model": agent.model,
        "version": agent.version,
        "model_hash": agent.model_hash,
        "status": agent.status,
        "registered_at": _time(agent.registered_at),
        "permitted_actions": None if agent.permitted_actions is None else list(agent.permitted_actions),
        "has_financial_limits": agent.has_financial_limits,
        "is_certified": agent.is_certified,
        "risk_score": agent.risk_score,
        "events_by_band": _bands(agent.events),
        "last_event_at": _time(agent.last_event_at),
    }


def _certificate(certificate: CertificateFact) -> Json:
    delay = certificate.delay
    return {
        "serial_number": certificate.serial_number,
        "agent_id": str(certificate.agent_id),
        "status": certificate.status,
        "issued_at": _time(certificate.issued_at),
        "expires_at": _time(certificate.expires_at),
        "revoked_at": _time(certificate.revoked_at),
        "revocation_reason": certificate.reason,
        "seconds_from_high_risk_event": None if delay is None else delay.total_seconds(),
    }


def _high_risk(event: HighRiskFact) -> Json:
    return {
        "id": str(event.id),
        "agent_id": str(event.agent_id),
        "action_type": event.action_type,
        "risk_score": event.risk_score,
        "occurred_at": _time(event.occurred_at),
        "received_at": _time(event.received_at),
        "reasons": list(event.reasons),
    }


def _oversight(act: OversightFact) -> Json:
    return {
        "at": _time(act.at),
        "what": act.what,
        "actor_type": act.actor_type,
        "actor_id": act.actor_id,
        "subject": act.subject,
        "description": act.description,
    }


def _bands(counts: dict[str, int]) -> dict[str, int]:
    return {band: counts.get(band, 0) for band in ("low", "medium", "high")}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
