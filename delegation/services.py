"""Issuing and verifying delegation tokens."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.stores import sql
from delegation import errors
from delegation.authority import (
    Authority,
    Ground,
    authority_of,
    check_certificate,
    check_extends,
    check_lineage,
    check_possession,
    check_scope,
    check_subject,
    ground,
)
from delegation.issued import revocation, rows, status_entries
from delegation.jose import jws, keyring, keys, tokens
from delegation.jose.tokens import Chain, Confirmation, Delegation, SubjectIdentifier
from delegation.models import TokenKey
from delegation.standing import Introspection, standings

DEFAULT_TTL = timedelta(hours=1)
PRESENTED = "Revoked at /oauth/revoke"
"""The reason of a revocation by the token itself, which has no field for one (RFC 7009 §2.1)."""


@dataclass(frozen=True)
class Grant:
    """A request for a token. `scope` is normalised; "" grants no action, only a chain.

    `proven_key` is the thumbprint of the key whose possession the caller has just proven. The token is bound
    to the key `bound_to`, without one to the proven key. `subject` is the root as a trusted issuer named it.
    """

    chain: Chain
    scope: str = ""
    audience: str | None = None
    ttl: timedelta = DEFAULT_TTL
    parent_token: str | None = None
    bound_to: str | None = None
    proven_key: str | None = None
    subject: SubjectIdentifier | None = None

    @property
    def confirmation(self) -> Confirmation | None:
        """What binds the new token; a child of a bound token has it, since its parent's key is proven."""
        key = self.bound_to or self.proven_key
        return Confirmation(key) if key else None


@dataclass(frozen=True)
class IssuedDelegation:
    token: str
    delegation: Delegation


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


def issue(*, tenant_id: UUID, agent_id: Any, grant: Grant, actor: Actor, now: datetime) -> IssuedDelegation:
    """Sign a token for one agent of the tenant, and audit it; raises the errors of `delegation`.

    The HSM signs before the transaction, and so does not hold up the lock on the agent. All checks are
    repeated under that lock, so that no token is issued after a revocation.
    """
    parent = _read_parent(grant.parent_token, now)
    found = ground(tenant_id=tenant_id, agent_id=agent_id, parent=parent)
    delegation = _authorised(found, grant, parent, now)
    key = keys.signing_key()
    token = jws.sign(tokens.to_claims(delegation), kid=key.kid, key=keys.private_half(key))
    with environments.atomic():
        agent = found.issuer.agent
        found = ground(tenant_id=tenant_id, agent_id=agent.id, parent=parent, locked=True)
        authority = _check(found, grant, parent, now)
        check_certificate(authority, delegation.certificate_serial)
        with sql.pipelined():
            rows.write(agent, delegation)
            _record(agent, delegation, authority, key, parent, actor, now)
    keyring.add(key)
    return IssuedDelegation(token, delegation)


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
            tenant_id=tenant_id, delegation=delegation, reason=PRESENTED, actor=actor, now=now
        )


def _verified(token: str, now: datetime) -> Delegation:
    parsed = jws.parse(token)
    environment, key = keyring.find(parsed.kid)
    claims = jws.verify(parsed, key)
    if claims.get("iss") != settings.TOKEN_ISSUER or claims.get("env") != environment.value:
        raise errors.TokenRejected(errors.RejectionReason.INVALID_ISSUER)
    delegation = tokens.from_claims(claims)
    tokens.check_time(delegation, now=now)
    return delegation


def _read_parent(token: str | None, now: datetime) -> Delegation | None:
    if token is None:
        return None
    found = verify(token=token, now=now)
    if found.reason is errors.RejectionReason.MALFORMED:
        raise errors.ParentTokenMalformed()
    if found.delegation is None or found.delegation.environment != environments.current().value:
        reason = found.reason or errors.RejectionReason.UNKNOWN_KEY
        raise errors.ParentTokenRejected(f"The parent token doesn't count: {reason}")
    return found.delegation


def _check(found: Ground, grant: Grant, parent: Delegation | None, now: datetime) -> Authority:
    authority = authority_of(found.issuer, now=now)
    check_scope(authority, grant.scope)
    if parent is not None:
        rows.check_unrevoked(parent, found.tokens)
        check_possession(parent, proven_key=grant.proven_key)
        check_subject(parent, grant.subject)
        check_lineage(parent.lineage, found.behind, scope=grant.scope, now=now)
        audience = grant.audience or parent.audience
        check_extends(parent, chain=grant.chain, scope=grant.scope, audience=audience)
    return authority


def _authorised(found: Ground, grant: Grant, parent: Delegation | None, now: datetime) -> Delegation:
    """The delegation for a grant; it ends no later than the agent's certificate and its parent."""
    authority = _check(found, grant, parent, now)
    issued_at = int(now.timestamp())
    expires_at = int(min(filter(None, (now + grant.ttl, authority.certificate_expires_at))).timestamp())
    if expires_at <= issued_at:
        raise errors.CertificateDoesNotCount()
    return Delegation.of(
        grant.chain,
        issuer=settings.TOKEN_ISSUER,
        environment=environments.current().value,
        token_id=new_id(),
        agent_id=found.issuer.agent.id,
        issued_at=issued_at,
        not_before=issued_at,
        expires_at=min(expires_at, parent.expires_at) if parent else expires_at,
        scope=grant.scope,
        audience=grant.audience or (parent.audience if parent else None),
        certificate_serial=authority.certificate_serial,
        via=parent.lineage if parent else (),
        confirmation=grant.confirmation,
        subject_identifier=parent.subject_identifier if parent else grant.subject,
        status=status_entries.status_at(status_entries.next_index()),
    )


def _record(
    agent: Agent,
    delegation: Delegation,
    authority: Authority,
    key: TokenKey,
    parent: Delegation | None,
    actor: Actor,
    now: datetime,
) -> None:
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=AuditAction.DELEGATION_ISSUED,
        affected_id=agent.id,
        description=f"Delegation to {delegation.principal} issued by agent {agent.name}",
        metadata={
            "agent_id": str(agent.id),
            "principal": delegation.principal,
            "chain": tokens.shown_chain(delegation.chain),
            "scope": delegation.scope,
            "scope_checked": authority.permitted_actions is not None,
            "audience": delegation.audience,
            "token_id": str(delegation.token_id),
            "key_id": key.kid,
            "certificate_serial": delegation.certificate_serial,
            "expires_at": delegation.expires.isoformat(),
            "parent_token_id": str(parent.token_id) if parent else None,
            "root_assurance": delegation.root_assurance.value,
            "root_issuer": delegation.subject_identifier.issuer if delegation.subject_identifier else None,
            "root_subject": delegation.subject_identifier.subject if delegation.subject_identifier else None,
            "bound_to": delegation.bound_to,
        },
        actor=actor,
        now=now,
    )
