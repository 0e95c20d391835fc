"""Records as OCSF 1.8.0 events: Authentications, Detection Findings, all else Entity Management."""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

from django.conf import settings

from auditlog.leaves import ERASED
from auditlog.vocabulary import ActorKind, AuditAction
from compliance.core import environments

SCHEMA_VERSION: Final = "1.8.0"
OTHER: Final = 99
SUCCESS, FAILURE = 1, 2


class OcsfClass(IntEnum):
    """Classes by their `class_uid`; the thousands are the category."""

    DETECTION_FINDING = 2004
    AUTHENTICATION = 3002
    ENTITY_MANAGEMENT = 3004
    API_ACTIVITY = 6003


class Severity(IntEnum):
    INFORMATIONAL = 1
    LOW = 2
    MEDIUM = 3
    HIGH = 4


_ACTIVITIES: Final = {
    verb: activity
    for activity, verbs in {
        1: "created issued opened requested started drafted generated trusted mapped",
        2: "downloaded exported",
        3: "updated changed rotated rolled secret_rotated status_changed",
        4: "deleted removed erased dropped destroyed distrusted",
        8: "reactivated",
        9: "disabled deactivated",
        10: "activated",
        11: "retired revoked",
        12: "suspended held",
        13: "reinstated released resumed",
    }.items()
    for verb in verbs.split()
}
"""The `activity_id` of Entity Management by the verb of an action; any other verb is `OTHER`."""
_SIGN_INS: Final = {
    AuditAction.PERSON_SIGNED_IN: (1, SUCCESS),
    AuditAction.PERSON_SIGN_IN_FAILED: (1, FAILURE),
    AuditAction.PERSON_CHECK_FAILED: (1, FAILURE),
    AuditAction.PERSON_SIGNED_OUT: (2, SUCCESS),
}
"""`activity_id` (Logon, Logoff) and `status_id` of Authentication."""
_FINDINGS: Final = frozenset(
    {
        AuditAction.EVENT_HIGH_RISK,
        AuditAction.AGENT_HIGH_RISK,
        AuditAction.AGENT_STRIKE,
        AuditAction.AGENT_WOULD_HAVE_STOPPED,
        AuditAction.SCOPE_MISMATCH,
        AuditAction.GATEWAY_SCOPE_VIOLATION,
    }
)


def ocsf_event(
    kind: OcsfClass,
    activity: int,
    *,
    at: datetime,
    severity: Severity,
    metadata: Mapping[str, Any],
    **attributes: Any,
) -> dict[str, Any]:
    """Return an event with the attributes that every class requires; those of None are left out."""
    shared = {
        "version": SCHEMA_VERSION,
        "product": {"name": settings.SERVICE_NAME, "vendor_name": settings.SERVICE_NAME},
        "labels": [f"environment:{environments.current().value}"],
    }
    return {
        "class_uid": int(kind),
        "category_uid": kind // 1000,
        "activity_id": activity,
        "type_uid": kind * 100 + activity,
        "time": milliseconds(at),
        "severity_id": int(severity),
        "metadata": {**shared, **metadata},
        **{name: value for name, value in attributes.items() if value is not None},
    }


def milliseconds(moment: datetime) -> int:
    """Return OCSF's `timestamp_t`."""
    return int(moment.timestamp() * 1000)


def ocsf_of_entry(index: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the disclosure of a sealed entry (`auditlog.leaves`) as an event; erased parts are left out."""
    action = entry["event_type"]
    said = entry["metadata"] if isinstance(entry["metadata"], dict) else {}
    shared: dict[str, Any] = {
        "at": datetime.fromisoformat(entry["created_at"]),
        "metadata": {
            "uid": entry["id"],
            "tenant_uid": entry["tenant_id"],
            "log_name": "audit-log",
            "event_code": action,
            "original_time": entry["created_at"],
            "sequence": index,
        },
        "message": entry["description"],
        "unmapped": said or None,
    }
    actor = _actor(entry["actor_kind"], entry["actor_id"] or ERASED)
    if action in _SIGN_INS:
        activity, status = _SIGN_INS[action]
        return ocsf_event(
            OcsfClass.AUTHENTICATION,
            activity,
            severity=Severity.LOW if status == FAILURE else Severity.INFORMATIONAL,
            status_id=status,
            actor=actor,
            user={"uid": entry["affected_id"]} if entry["affected_id"] else {"name": "unknown"},
            service={"name": settings.SERVICE_NAME},
            src_endpoint={"ip": said["address"]} if said.get("address") else None,
            **shared,
        )
    if action in _FINDINGS:
        agent = str(said["agent_id"]) if said.get("agent_id") else entry["affected_id"]
        return ocsf_event(
            OcsfClass.DETECTION_FINDING,
            activity=1,
            severity=Severity.HIGH,
            status_id=1,
            is_alert=True,
            evidences=[{"actor": actor}],
            finding_info={"uid": entry["id"], "title": AuditAction(action).label},
            resources=[{"uid": agent, "type": "agent"}] if agent else None,
            **shared,
        )
    what, _, verb = action.partition(".")
    activity = _ACTIVITIES.get(verb, OTHER)
    affected = {"uid": entry["affected_id"]} if entry["affected_id"] else {"name": what}
    return ocsf_event(
        OcsfClass.ENTITY_MANAGEMENT,
        activity,
        severity=Severity.INFORMATIONAL,
        activity_name=verb if activity == OTHER else None,
        actor=actor,
        entity={**affected, "type": what, "type_id": OTHER},
        **shared,
    )


def _actor(kind: str, actor_id: str) -> dict[str, Any]:
    if kind == ActorKind.PERSON:
        return {"user": {"uid": actor_id, "type_id": 1}}
    if kind == ActorKind.API_KEY:
        return {"user": {"uid": actor_id, "type_id": 4}}
    return {"app_uid": actor_id}
