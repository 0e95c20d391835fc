"""Issuing and verifying delegation tokens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id
from delegation import errors
from delegation.issued import revocation
from delegation.issuing.applications import Grant, TokenApplication
from delegation.issuing.groups import IssuedDelegation, issue_alone
from delegation.jose import jws, tokens
from delegation.jose.tokens import Delegation
from delegation.models import TokenKey
from delegation.standing import Introspection, standings
from delegation.token_keys import keyring, keys, recent_tokens
from delegation.token_keys.recent_tokens import AuthenticToken

OAUTH_REVOCATION = "Revoked at /oauth/revoke"
"""The reason of a revocation by the token itself, which has no field for one (RFC 7009 §2.1)."""


@dataclass(frozen=True)
class TokenVerification:
    """The delegation of a valid token, else the reason why it is invalid."""

    delegation: Delegation | None = None
    reason: errors.RejectionReason | None = None

    @property
    def valid(self) -> bool:
        return self.delegation is not None


def bootstrap(*, now: datetime) -> TokenKey:
    """Make the current environment's first token key, unless it has one; safe to repeat."""
    return keys.bootstrap(actor=Actor.system("bootstrap"), now=now)


def issue(
    *,
    tenant_id: UUID,
    agent_id: Any,
    grant: Grant,
    parent: Delegation | None = None,
    actor: Actor,
    now: datetime,
) -> IssuedDelegation:
    """Sign a token for one agent of the tenant, and audit it; raises the errors of `delegation`.

    `parent` is the verified token that is handed on, if any.
    """
    return issue_alone(
        TokenApplication(
            tenant_id=tenant_id,
            agent_id=parse_id(str(agent_id)),
            grant_to=lambda _: grant,
            parent=parent,
            actor=actor,
            now=now,
        )
    )


def verify(*, token: str, now: datetime) -> TokenVerification:
    """Verify a token of either environment: signature, issuer and times, in that order; reads no row.

    Raises `KeyRingUnavailable` for an unknown key while the keys can't be read.
    """
    try:
        return TokenVerification(delegation=_verified(token, now))
    except errors.TokenRejected as rejected:
        return TokenVerification(reason=rejected.reason)


def verify_for(*, token: str, audience: str | None, now: datetime) -> TokenVerification:
    """As `verify`; with an `audience`, a token that is for another one, or for none, is invalid too."""
    found = verify(token=token, now=now)
    if audience is None or found.delegation is None or found.delegation.audience == audience:
        return found
    return TokenVerification(reason=errors.RejectionReason.INVALID_AUDIENCE)


def introspect(*, token: str, now: datetime) -> Introspection | None:
    """The delegation of a token of the current environment that stands now, and how; None for others.

    Reads one statement. Raises `KeyRingUnavailable` as `verify`.
    """
    delegation = verify(token=token, now=now).delegation
    if delegation is None or delegation.environment != environments.current().value:
        return None
    (standing,) = standings([delegation], now=now)
    return Introspection(delegation, standing) if standing.stands else None


def revoke_token(*, tenant_id: UUID, token: str, actor: Actor, now: datetime) -> None:
    """Revoke a token by its text, and with it every token handed on from it; ignore an invalid token.

    Raises `IssuedByAnother`, and `KeyRingUnavailable` as `verify`.
    """
    delegation = verify(token=token, now=now).delegation
    if delegation is not None and delegation.environment == environments.current().value:
        revocation.revoke_presented(
            tenant_id=tenant_id,
            delegation=delegation,
            reason=OAUTH_REVOCATION,
            actor=actor,
            now=now,
        )


def _verified(token: str, now: datetime) -> Delegation:
    known = recent_tokens.find(token)
    if known is None:
        delegation = _authentic(token)
    else:
        environment, _ = keyring.find(known.kid)
        delegation = known.delegation
        _check_issuer(delegation.issuer, delegation.environment, environment)
    tokens.check_time(delegation, now=now)
    return delegation


def _authentic(token: str) -> Delegation:
    """The delegation of a token with a valid signature, by a key that counts, from this issuer."""
    parsed = jws.parse(token)
    environment, key = keyring.find(parsed.kid)
    claims = jws.verify(parsed, key)
    _check_issuer(claims.get("iss"), claims.get("env"), environment)
    delegation = tokens.from_claims(claims)
    recent_tokens.keep(token, AuthenticToken(parsed.kid, delegation))
    return delegation


def _check_issuer(issuer: object, named: object, environment: Environment) -> None:
    if issuer != settings.TOKEN_ISSUER or named != environment.value:
        raise errors.TokenRejected(errors.RejectionReason.INVALID_ISSUER)


def read_parent(*, token: str | None, now: datetime) -> Delegation | None:
    """The delegation of a token that is to be handed on in the current environment; None without one.

    Raises: ParentTokenMalformed, ParentTokenRejected, KeyRingUnavailable.
    """
    if token is None:
        return None
    found = verify(token=token, now=now)
    if found.reason is errors.RejectionReason.MALFORMED:
        raise errors.ParentTokenMalformed()
    if found.delegation is None or found.delegation.environment != environments.current().value:
        reason = found.reason or errors.RejectionReason.UNKNOWN_KEY
        raise errors.ParentTokenRejected(f"The parent token doesn't count: {reason}")
    return found.delegation
