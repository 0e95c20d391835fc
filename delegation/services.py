"""Issuing, verifying and revoking delegation tokens."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from agents.errors import AgentNotFound
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id
from delegation import errors
from delegation.issuing import issuance
from delegation.issuing.applications import Grant, TokenApplication
from delegation.issuing.issuance import IssuedDelegation
from delegation.jose import jws, tokens
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken, TokenKey
from delegation.standing import Standing, standings
from delegation.token_keys import keyring, keys

OAUTH_REVOCATION = "Revoked at /oauth/revoke"
"""The reason of a revocation by the token itself, which has no field for one (RFC 7009 §2.1)."""

KEPT_TOKENS = 1_000

_recent: BoundedCache[bytes, tuple[str, Delegation]] = BoundedCache(KEPT_TOKENS)
"""Key ids and delegations by digests, of tokens with a verified signature: a forger can't fill it."""


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
    agent_id: UUID | str,
    grant: Grant,
    parent: Delegation | None = None,
    actor: Actor,
    now: datetime,
) -> IssuedDelegation:
    """Sign a token for one agent of the tenant, and audit it; raises the errors of `delegation`.

    `parent` is the verified token that is handed on, if any.
    """
    parsed = parse_id(str(agent_id))
    if parsed is None:
        raise AgentNotFound()
    return issuance.issue(TokenApplication(tenant_id, parsed, grant, parent, actor, now))


def verify(*, token: str, now: datetime, audience: str | None = None) -> TokenVerification:
    """Verify a token of either environment: signature, issuer, times, audience, in that order; reads no row.

    With an `audience`, a token that is for another one, or for none, is invalid too. Raises
    `KeyRingUnavailable` for an unknown key while the keys can't be read.
    """
    try:
        delegation = _verified(token, now)
    except errors.TokenRejected as rejected:
        return TokenVerification(reason=rejected.reason)
    if audience not in (None, delegation.audience):
        return TokenVerification(reason=errors.RejectionReason.INVALID_AUDIENCE)
    return TokenVerification(delegation)


def verify_here(*, token: str, now: datetime) -> TokenVerification:
    """As `verify`; a token of the other environment counts as signed by an unknown key."""
    found = verify(token=token, now=now)
    if found.delegation is not None and found.delegation.environment != environments.current().value:
        return TokenVerification(reason=errors.RejectionReason.UNKNOWN_KEY)
    return found


def introspect(*, token: str, now: datetime) -> tuple[Delegation, Standing] | None:
    """The delegation of a token of the current environment that stands now, and how; None for others.

    Reads one statement. Raises `KeyRingUnavailable` as `verify`.
    """
    delegation = verify_here(token=token, now=now).delegation
    if delegation is None:
        return None
    (standing,) = standings([delegation], now=now)
    return (delegation, standing) if standing.stands else None


def revoke(*, tenant_id: UUID, token_id: Any, reason: str, actor: Actor, now: datetime) -> IssuedToken:
    """Revoke a token that an agent of the tenant issued; once revoked it stays as it is.

    Nothing is written on the tokens that came of it, of whatever tenant: they name it among their ancestors.
    Raises `IssuedTokenNotFound`.
    """
    with environments.atomic():
        row = IssuedToken.objects.for_tenant(tenant_id).locked().find(token_id)
        if row.revoked_at is not None:
            return row
        row.revoked_at, row.revoked_by, row.revocation_reason = now, actor.id, reason
        row.save(update_fields=["revoked_at", "revoked_by", "revocation_reason"])
        descendants = (
            IssuedToken.objects.unexpired(now)
            .filter(parent_token_id__isnull=False, ancestor_ids__contains=[row.id])
            .count()
        )
        auditlog.record(
            tenant_id=row.tenant_id,
            action=AuditAction.DELEGATION_REVOKED,
            affected_id=row.agent_id,
            description=f"Delegation to {row.principal} revoked, and {descendants} that came of it",
            metadata={
                "token_id": str(row.id),
                "agent_id": str(row.agent_id),
                "principal": row.principal,
                "reason": reason,
                "descendants": descendants,
                "expires_at": row.expires_at.isoformat(),
            },
            actor=actor,
            now=now,
        )
    return row


def revoke_token(*, tenant_id: UUID, token: str, actor: Actor, now: datetime) -> None:
    """Revoke a token by its text, and with it every token handed on from it; ignore an invalid token.

    Raises `IssuedByAnother`, and `KeyRingUnavailable` as `verify`.
    """
    delegation = verify_here(token=token, now=now).delegation
    if delegation is None:
        return
    try:
        revoke(
            tenant_id=tenant_id, token_id=delegation.token_id, reason=OAUTH_REVOCATION, actor=actor, now=now
        )
    except errors.IssuedTokenNotFound as error:
        raise errors.IssuedByAnother() from error


def _verified(token: str, now: datetime) -> Delegation:
    digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
    if (known := _recent.get(digest)) is None:
        known = _authentic(token)
        _recent.put(digest, known)
    kid, delegation = known
    # What may have changed since: whether the key still counts, the issuer, and the time.
    environment, _ = keyring.find(kid)
    _check_issuer(delegation.issuer, delegation.environment, environment)
    tokens.check_time(delegation, now=now)
    return delegation


def _authentic(token: str) -> tuple[str, Delegation]:
    """The key id and delegation of a token with a valid signature, by a key that counts, from this issuer."""
    parsed = jws.parse(token)
    environment, key = keyring.find(parsed.header["kid"])
    claims = jws.verify(parsed, key)
    _check_issuer(claims.get("iss"), claims.get("env"), environment)
    return parsed.header["kid"], tokens.from_claims(claims)


def _check_issuer(issuer: object, named: object, environment: Environment) -> None:
    if issuer != settings.TOKEN_ISSUER or named != environment.value:
        raise errors.TokenRejected(errors.RejectionReason.INVALID_ISSUER)


def read_parent(*, token: str | None, now: datetime) -> Delegation | None:
    """The delegation of a token that is to be handed on in the current environment; None without one.

    Raises: ParentTokenMalformed, ParentTokenRejected, KeyRingUnavailable.
    """
    if token is None:
        return None
    found = verify_here(token=token, now=now)
    if found.reason is errors.RejectionReason.MALFORMED:
        raise errors.ParentTokenMalformed()
    if found.delegation is None:
        raise errors.ParentTokenRejected(f"The parent token doesn't count: {found.reason}")
    return found.delegation
