"""Signals (docs/signals.md): Security Event Tokens (RFC 8417) of the service, with the events of CAEP 1.0."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from agentid import jose
from agentid.errors import NotValid, Reason

KIND: Final = "secevent+jwt"
MAX_SET: Final = 16_384
NOT_IN_A_SET: Final = frozenset({"sub", "exp"})
"""Claims that SSF forbids, so that a SET is never taken for another token (RFC 8417 §4.5, §4.6)."""


class SignalKind(StrEnum):
    """The event types that the service sends."""

    SESSION_REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
    CREDENTIAL_CHANGE = "https://schemas.openid.net/secevent/caep/event-type/credential-change"
    VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification"
    STREAM_UPDATED = "https://schemas.openid.net/secevent/ssf/event-type/stream-updated"


@dataclass(frozen=True)
class SignalRules:
    """What a receiver accepts: the transmitter's `issuer`, the stream's `aud`."""

    issuer: str
    audience: str
    skew_seconds: int = 60


@dataclass(frozen=True)
class VerifiedSignal:
    """An authentic signal; of agent, token, certificate and key those are set that it speaks of.

    `change` is create, revoke or update, of a credential; `happened_at` is when authority changed.
    """

    id: str
    event: str
    issued_at: datetime
    happened_at: datetime
    agent_id: str | None
    token_id: str | None
    certificate_serial: str | None
    key_id: str | None
    change: str | None
    details: Mapping[str, Any] = field(repr=False)


def verify_signal(
    token: str, *, keys: Mapping[str, ec.EllipticCurvePublicKey], rules: SignalRules, now: datetime
) -> VerifiedSignal:
    """Check a Security Event Token and read its event. Raises: NotValid.

    Whether its `id` was seen before is the caller's to know.
    """
    claims = jose.signed_claims(token, kind=KIND, keys=keys, max_length=MAX_SET)
    if claims.get("iss") != rules.issuer:
        raise NotValid(Reason.INVALID_ISSUER)
    if claims.get("aud") != rules.audience:
        raise NotValid(Reason.WRONG_AUDIENCE)
    if NOT_IN_A_SET & set(claims):
        raise NotValid(Reason.MALFORMED, "a claim that no SET has")
    issued = jose.moment(claims, "iat")
    if issued.timestamp() > now.timestamp() + rules.skew_seconds:
        raise NotValid(Reason.NOT_YET_VALID)
    return _read(claims, issued)


def _read(claims: Mapping[str, Any], issued: datetime) -> VerifiedSignal:
    events = jose.claim(claims, "events", dict)
    if len(events) != 1:
        raise NotValid(Reason.MALFORMED, "not one event")
    (event,) = events
    details = jose.claim(events, event, dict)
    is_about_authority = event in (SignalKind.SESSION_REVOKED, SignalKind.CREDENTIAL_CHANGE)
    agent_id, token_id, key_id = _subject(claims) if is_about_authority else (None, None, None)
    credential = details.get("credential_type") if event == SignalKind.CREDENTIAL_CHANGE else None
    return VerifiedSignal(
        id=_text(claims, "jti"),
        event=event,
        issued_at=issued,
        happened_at=jose.moment(details, "event_timestamp") if is_about_authority else issued,
        agent_id=agent_id,
        token_id=token_id,
        certificate_serial=_text(details, "x509_serial").lower() if credential == "x509" else None,
        key_id=key_id,
        change=_text(details, "change_type") if event == SignalKind.CREDENTIAL_CHANGE else None,
        details=details,
    )


def _subject(claims: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    """The agent, the token or the key that `sub_id` names (RFC 9493)."""
    subject = jose.claim(claims, "sub_id", dict)
    match subject.get("format"):
        case "did":
            return _text(subject, "url").rpartition(":")[2], None, None
        case "jwt_id":
            if _text(subject, "iss") != claims["iss"]:
                raise NotValid(Reason.MALFORMED, "a token of another issuer")
            return None, _text(subject, "jti"), None
        case "opaque":
            issuer, _, kid = _text(subject, "id").rpartition("#")
            if issuer == claims["iss"] and kid:
                return None, None, kid
    raise NotValid(Reason.MALFORMED, "a subject of another format")


def _text(values: Mapping[str, Any], name: str) -> str:
    value = jose.claim(values, name, str)
    if not value:
        raise NotValid(Reason.MALFORMED, f"{name} is empty")
    return value
