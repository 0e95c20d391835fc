"""What an audit entry means in the words of CAEP; pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid5

from auditlog.vocabulary import ActorKind, AuditAction
from compliance.signals.vocabulary import SignalEvent

WITHDRAWN: Final = "withdrawn"
MAX_TEXT: Final = 500


@dataclass(frozen=True)
class FollowedEntry:
    """The parts of an audit entry that a signal is made of."""

    id: UUID
    tenant_id: UUID
    action: str
    actor_kind: str
    affected_id: str | None
    metadata: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True)
class Meaning:
    """One event with its subject (RFC 9493), before it is addressed to a stream."""

    event: SignalEvent
    subject: Mapping[str, Any]
    details: Mapping[str, Any]

    def claims(self, *, transaction: UUID) -> dict[str, Any]:
        """Return the claims that are the same in every stream."""
        return {
            "txn": str(transaction),
            "sub_id": dict(self.subject),
            "events": {self.event.value: dict(self.details)},
        }


@dataclass(frozen=True)
class SubjectNames:
    """How this transmitter names things: its issuer, and the DID of an agent's id."""

    issuer: str
    did_of: Callable[[UUID], str]


def signal_id(*, stream_id: UUID, entry_id: UUID) -> UUID:
    """Return the `jti` of an entry's signal in a stream: the same whenever it is derived."""
    return uuid5(stream_id, str(entry_id))


def occurrence_of(entry: FollowedEntry, names: SubjectNames) -> Meaning | None:
    """Return what the entry tells a receiver; None if nothing, or if it does not name its subject."""
    make = _MAKERS.get(entry.action)
    return make(entry, names) if make else None


def _session(entry: FollowedEntry, names: SubjectNames) -> Meaning | None:
    """An agent was stopped: every token of it, and every one that came of these, has ended."""
    subject = _agent(entry.affected_id, names)
    return Meaning(SignalEvent.SESSION_REVOKED, subject, _common(entry)) if subject else None


def _token(entry: FollowedEntry, names: SubjectNames) -> Meaning | None:
    """A token was revoked: it has ended, and every one that came of it."""
    token_id = entry.metadata.get("token_id")
    if not isinstance(token_id, str):
        return None
    subject = {"format": "jwt_id", "iss": names.issuer, "jti": token_id}
    return Meaning(SignalEvent.SESSION_REVOKED, subject, _common(entry))


def _certificate(change: str) -> Callable[[FollowedEntry, SubjectNames], Meaning | None]:
    def make(entry: FollowedEntry, names: SubjectNames) -> Meaning | None:
        subject, serial = _agent(entry.metadata.get("agent_id"), names), entry.metadata.get("serial_number")
        if subject is None or not serial:
            return None
        replaced = entry.metadata.get("replaces")
        details = {
            **_common(entry),
            "credential_type": "x509",
            "change_type": change,
            "x509_serial": serial,
            **({"friendly_name": f"Replaces {replaced}"} if replaced else {}),
        }
        return Meaning(SignalEvent.CREDENTIAL_CHANGE, subject, details)

    return make


def _token_key(entry: FollowedEntry, names: SubjectNames) -> Meaning | None:
    """A token key was withdrawn: whatever it signed has ended. A key retired on time is no news."""
    kid = entry.metadata.get("kid")
    if entry.metadata.get("status") != WITHDRAWN or not kid:
        return None
    details = {**_common(entry), "credential_type": "jwk", "change_type": "revoke", "friendly_name": kid}
    subject = {"format": "opaque", "id": f"{names.issuer}#{kid}"}
    return Meaning(SignalEvent.CREDENTIAL_CHANGE, subject, details)


def _agent(agent_id: object, names: SubjectNames) -> dict[str, Any] | None:
    try:
        return {"format": "did", "url": names.did_of(UUID(str(agent_id)))}
    except ValueError:
        return None


def _common(entry: FollowedEntry) -> dict[str, Any]:
    """Return the optional claims of every CAEP event (CAEP 1.0 §2)."""
    by = "policy" if entry.actor_kind == ActorKind.SYSTEM else "admin"
    reason = entry.metadata.get("reason")
    said = {"reason_admin": {"en": reason[:MAX_TEXT]}} if isinstance(reason, str) and reason else {}
    return {"event_timestamp": int(entry.created_at.timestamp()), "initiating_entity": by, **said}


_MAKERS: Final[Mapping[str, Callable[[FollowedEntry, SubjectNames], Meaning | None]]] = {
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
