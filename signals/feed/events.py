"""Audit entries in the words of CAEP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from agents.models import AgentDid
from auditlog.models import AuditEntry
from auditlog.vocabulary import ActorKind, AuditAction
from compliance.core import environments
from signals.vocabulary import SignalEvent

WITHDRAWN: Final = "withdrawn"
MAX_TEXT: Final = 500


@dataclass(frozen=True)
class Meaning:
    """One event with its subject (RFC 9493), before it is addressed to a stream."""

    event: SignalEvent
    subject: Mapping[str, Any]
    details: Mapping[str, Any]


def occurrence_of(entry: AuditEntry) -> Meaning | None:
    """Return what the entry tells a receiver; None if nothing, or if it does not name its subject."""
    make = _MAKERS.get(entry.event_type)
    return make(entry) if make else None


def _session(entry: AuditEntry) -> Meaning | None:
    """An agent was stopped: every token of it, and every one that came of these, has ended."""
    subject = _agent(entry.affected_id)
    return Meaning(SignalEvent.SESSION_REVOKED, subject, _common(entry)) if subject else None


def _token(entry: AuditEntry) -> Meaning | None:
    """A token was revoked: it has ended, and every one that came of it."""
    token_id = _said(entry).get("token_id")
    if not isinstance(token_id, str):
        return None
    subject = {"format": "jwt_id", "iss": settings.TOKEN_ISSUER, "jti": token_id}
    return Meaning(SignalEvent.SESSION_REVOKED, subject, _common(entry))


def _certificate(change: str) -> Callable[[AuditEntry], Meaning | None]:
    def make(entry: AuditEntry) -> Meaning | None:
        subject, serial = _agent(_said(entry).get("agent_id")), _said(entry).get("serial_number")
        if subject is None or not serial:
            return None
        replaced = _said(entry).get("replaces")
        details = {
            **_common(entry),
            "credential_type": "x509",
            "change_type": change,
            "x509_serial": serial,
            **({"friendly_name": f"Replaces {replaced}"} if replaced else {}),
        }
        return Meaning(SignalEvent.CREDENTIAL_CHANGE, subject, details)

    return make


def _token_key(entry: AuditEntry) -> Meaning | None:
    """A token key was withdrawn: whatever it signed has ended. A key retired on time is no news."""
    kid = _said(entry).get("kid")
    if _said(entry).get("status") != WITHDRAWN or not kid:
        return None
    details = {**_common(entry), "credential_type": "jwk", "change_type": "revoke", "friendly_name": kid}
    subject = {"format": "opaque", "id": f"{settings.TOKEN_ISSUER}#{kid}"}
    return Meaning(SignalEvent.CREDENTIAL_CHANGE, subject, details)


def _said(entry: AuditEntry) -> Mapping[str, Any]:
    return entry.metadata if isinstance(entry.metadata, dict) else {}


def _agent(agent_id: object) -> dict[str, Any] | None:
    try:
        return {"format": "did", "url": str(AgentDid(environments.current(), UUID(str(agent_id))))}
    except ValueError:
        return None


def _common(entry: AuditEntry) -> dict[str, Any]:
    """Return the optional claims of every CAEP event (CAEP 1.0 §2)."""
    by = "policy" if entry.actor_kind == ActorKind.SYSTEM else "admin"
    reason = _said(entry).get("reason")
    said = {"reason_admin": {"en": reason[:MAX_TEXT]}} if isinstance(reason, str) and reason else {}
    return {"event_timestamp": int(entry.created_at.timestamp()), "initiating_entity": by, **said}


_MAKERS: Final[Mapping[str, Callable[[AuditEntry], Meaning | None]]] = {
    AuditAction.AGENT_SUSPENDED.value: _session,
    AuditAction.AGENT_RETIRED.value: _session,
    AuditAction.DELEGATION_REVOKED.value: _token,
    AuditAction.CERTIFICATE_HELD.value: _certificate("revoke"),
    AuditAction.CERTIFICATE_REVOKED.value: _certificate("revoke"),
    AuditAction.CERTIFICATE_RELEASED.value: _certificate("update"),
    AuditAction.CERTIFICATE_ISSUED.value: _certificate("create"),
    AuditAction.CERTIFICATE_RENEWED.value: _certificate("create"),
    AuditAction.TOKEN_KEY_RETIRED.value: _token_key,
}
FOLLOWED_ACTIONS: Final = tuple(_MAKERS)
