"""Events of agents in the form of OCSF: API Activity, or Authentication where an agent signed in."""

from collections.abc import Mapping
from typing import Any, Final

from auditlog.exporting.ocsf import FAILURE, OTHER, SUCCESS, OcsfClass, Severity, milliseconds, ocsf_event
from events.models import ActionType, BehaviorEvent, RiskBand

SHOWN: Final = (
    *("id", "tenant_id", "agent_id", "action_type", "risk_score", "risk_band", "occurred_at", "received_at"),
    *("details", "session_id", "chain_id", "decision_id", "reasons"),
)
"""The fields of an event that its form is made of."""
_ACTIVITIES: Final = {
    ActionType.TRANSACTION_INITIATED: 1,
    ActionType.DATA_ACCESS: 2,
    ActionType.DATA_MUTATION: 3,
}
_SIGN_INS: Final = (ActionType.AUTHENTICATION_ATTEMPT, ActionType.AUTHENTICATION_FAILURE)
_FAILURES: Final = (
    ActionType.AUTHENTICATION_FAILURE,
    ActionType.UNAUTHORIZED_ACCESS_ATTEMPT,
    ActionType.MESSAGE_VERIFICATION_FAILED,
)
_OUTCOMES: Final = {"succeeded": SUCCESS, "failed": FAILURE}
_SEVERITIES: Final = {
    RiskBand.LOW: Severity.INFORMATIONAL,
    RiskBand.MEDIUM: Severity.MEDIUM,
    RiskBand.HIGH: Severity.HIGH,
}
_RISK_LEVELS: Final = {RiskBand.LOW: 1, RiskBand.MEDIUM: 2, RiskBand.HIGH: 3}


def ocsf_of_event(event: BehaviorEvent) -> dict[str, Any]:
    """Return an event in the form of OCSF, its risk by the profile Security Control."""
    agent_id, action, details = str(event.agent_id), event.action_type, event.details
    host = _text(details, "host")
    links = {"chain_id": event.chain_id, "decision_id": event.decision_id}
    session = {} if event.session_id is None else {"session": {"uid": event.session_id}}
    shared: dict[str, Any] = {
        "at": event.occurred_at,
        "severity": _SEVERITIES[RiskBand(event.risk_band)],
        "metadata": {
            "uid": str(event.id),
            "tenant_uid": str(event.tenant_id),
            "log_name": "events",
            "event_code": action,
            "logged_time": milliseconds(event.received_at),
            "profiles": ["security_control"],
        },
        "actor": {"app_uid": agent_id, **session},
        "src_endpoint": {"uid": agent_id},
        "dst_endpoint": {"name": host} if host else None,
        "status_id": FAILURE if action in _FAILURES else _OUTCOMES.get(str(details.get("outcome"))),
        "is_alert": event.risk_band == RiskBand.HIGH,
        "risk_score": round(event.risk_score * 100),
        "risk_level_id": _RISK_LEVELS[RiskBand(event.risk_band)],
        "unmapped": {"reasons": event.reasons, **{name: str(link) for name, link in links.items() if link}},
    }
    if action in _SIGN_INS:
        return ocsf_event(
            OcsfClass.AUTHENTICATION,
            activity=1,
            user={"uid": agent_id, "type_id": 4},
            service={"name": _text(details, "service", "tool") or host or "unknown"},
            **shared | {"unmapped": {**shared["unmapped"], "details": details}},
        )
    activity = _ACTIVITIES.get(ActionType(action), OTHER)
    return ocsf_event(
        OcsfClass.API_ACTIVITY,
        activity,
        activity_name=action if activity == OTHER else None,
        api={
            "operation": _text(details, "tool", "method") or action,
            "request": {"uid": str(event.id), "data": details},
        },
        **shared,
    )


def _text(details: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these that is a text with something in it."""
    return next((value for name in names if isinstance(value := details.get(name), str) and value), None)
