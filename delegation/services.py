"""Issuing and verifying delegation tokens."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments
from compliance.identifiers import new_id
from compliance.keys import HsmECPrivateKey, private_key
from delegation import jws, keyring, keys, tokens
from delegation.authority import (
    Authority,
    authority_of,
    check_certificate,
    check_extends,
    check_lineage,
    check_scope,
)
from delegation.errors import (
    CertificateDoesNotCount,
    ParentTokenMalformed,
    ParentTokenRejected,
    TokenKeysMissing,
)
from delegation.models import TokenKey
from delegation.rejections import Reason, TokenRejected
from delegation.tokens import Chain, Delegation

DEFAULT_TTL = timedelta(hours=1)


@dataclass(frozen=True)
class Grant:
    """What an agent is asked to delegate. `scope` is normalised; "" grants no action, only a chain."""

    chain: Chain
    scope: str = ""
    audience: str | None = None
    ttl: timedelta = DEFAULT_TTL
    parent_token: str | None = None


@dataclass(frozen=True)
class IssuedDelegation:
    """A signed token and what it says."""

    token: str
    delegation: Delegation


@dataclass(frozen=True)
class Verdict:
    """The outcome of verifying: the delegation of a token that counts, else the reason why it doesn't."""

    delegation: Delegation | None = None
    reason: Reason | None = None

    @property
    def valid(self) -> bool:
        return self.delegation is not None


def bootstrap(*, now: datetime) -> TokenKey:
    """Make the current environment's first token key, unless it has one; safe to repeat."""
    return keys.bootstrap(actor=Actor.system("bootstrap"), now=now)


def issue(*, tenant_id: UUID, agent_id: Any, grant: Grant, actor: Actor, now: datetime) -> IssuedDelegation:
    """Sign a token for one agent of the tenant, and audit it as `delegation.issued`.

    Raises `AgentNotFound`; the 422s of `delegation.authority`; `ParentTokenMalformed`; 503 without the HSM
    or a token key. The HSM signs before the transaction, so a slow one never holds the agent's lock; the
    agent's standing is then checked once more under that lock, so no token outruns a revocation.
    """
    parent = _read_parent(grant.parent_token, now)
    find = Agent.objects.for_tenant(tenant_id).find
    delegation = _authorised(find(agent_id), grant, parent, now)
    key = keys.signing_key()
    token = _sign(delegation, key)
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        authority = _check(agent, grant, parent, now)
        check_certificate(authority, delegation.certificate_serial)
        _record(agent, delegation, authority, key, parent, actor, now)
    keyring.learn(key)
    return IssuedDelegation(token, delegation)


def verify(*, token: str, now: datetime) -> Verdict:
    """Whether a token of either environment counts: signature, issuer and times, in that order; reads no row.

    Says nothing of revocation since the issue: that is what `certificate_serial` and the verify endpoint
    are for. Raises `KeyRingUnavailable` for an unknown key while the keys can't be read.
    """
    try:
        return Verdict(delegation=_verified(token, now))
    except TokenRejected as rejected:
        return Verdict(reason=rejected.reason)


def _verified(token: str, now: datetime) -> Delegation:
    parsed = jws.parse(token)
    entry = keyring.find(parsed.kid)
    claims = jws.verify(parsed, entry.key)
    if claims.get("iss") != settings.TOKEN_ISSUER or claims.get("env") != entry.environment.value:
        raise TokenRejected(Reason.INVALID_ISSUER)
    delegation = tokens.from_claims(claims)
    tokens.check_time(delegation, now=now)
    return delegation


def _read_parent(token: str | None, now: datetime) -> Delegation | None:
    if token is None:
        return None
    verdict = verify(token=token, now=now)
    if verdict.reason is Reason.MALFORMED:
        raise ParentTokenMalformed()
    if verdict.delegation is None or verdict.delegation.environment != environments.current().value:
        raise ParentTokenRejected(f"The parent token doesn't count: {verdict.reason or Reason.UNKNOWN_KEY}")
    return verdict.delegation


def _check(agent: Agent, grant: Grant, parent: Delegation | None, now: datetime) -> Authority:
    """What the agent lends to this grant; raises the 422s."""
    authority = authority_of(agent, now=now)
    check_scope(authority, grant.scope)
    if parent is not None:
        check_lineage(parent.lineage, scope=grant.scope, now=now)
        audience = grant.audience or parent.audience
        check_extends(parent, chain=grant.chain, scope=grant.scope, audience=audience)
    return authority


def _authorised(agent: Agent, grant: Grant, parent: Delegation | None, now: datetime) -> Delegation:
    """The delegation that `agent` may make; it ends no later than its certificate and its parent do."""
    authority = _check(agent, grant, parent, now)
    issued_at = int(now.timestamp())
    expires_at = int(authority.cap(now + grant.ttl).timestamp())
    if expires_at <= issued_at:
        raise CertificateDoesNotCount()
    return Delegation(
        issuer=settings.TOKEN_ISSUER,
        environment=environments.current().value,
        token_id=new_id(),
        agent_id=agent.id,
        chain=grant.chain,
        issued_at=issued_at,
        not_before=issued_at,
        expires_at=min(expires_at, parent.expires_at) if parent else expires_at,
        scope=grant.scope,
        audience=grant.audience or (parent.audience if parent else None),
        certificate_serial=authority.certificate_serial,
        via=parent.lineage if parent else (),
    )


def _sign(delegation: Delegation, key: TokenKey) -> str:
    signer = private_key(environments.current(), key.uri)
    if not isinstance(signer, HsmECPrivateKey):
        raise TokenKeysMissing()
    return jws.sign(tokens.to_claims(delegation), kid=key.kid, key=signer)


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
            "chain": [{"sub": link.sub, "type": link.type.value} for link in delegation.chain],
            "scope": delegation.scope,
            "scope_checked": authority.is_limited,
            "audience": delegation.audience,
            "token_id": str(delegation.token_id),
            "key_id": key.kid,
            "certificate_serial": delegation.certificate_serial,
            "expires_at": delegation.expires.isoformat(),
            "parent_token_id": str(parent.token_id) if parent else None,
        },
        actor=actor,
        now=now,
    )
