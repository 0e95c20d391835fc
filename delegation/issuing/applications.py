"""A request for a token, the check of what it asks for, and the delegation it is granted; reads no row."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import unquote
from uuid import UUID

from django.conf import settings

from agents.models import Agent, AgentDid
from auditlog.vocabulary import Actor
from certificates.models import Certificate, CertificateStatus, certified_actions
from compliance.core import environments
from compliance.core.identifiers import new_id
from delegation import errors
from delegation.issued import status_lists
from delegation.jose.tokens import Chain, Confirmation, Delegation, SubjectIdentifier
from delegation.models import TokenKey
from delegation.standing import NotStanding, Standing

DEFAULT_TTL = timedelta(hours=1)


@dataclass(frozen=True)
class Grant:
    """What the new token is to say.

    `scope` is normalised; "" grants no action, only a chain, and None what the agent is permitted of its
    parent's. `proven_key` is the thumbprint of the key whose possession the caller has just proven. The token
    is bound to the key `bound_to`, without one to the proven key. `subject` is the root as a trusted issuer
    named it.
    """

    chain: Chain
    scope: str | None = ""
    audience: str | None = None
    ttl: timedelta = DEFAULT_TTL
    bound_to: str | None = None
    proven_key: str | None = None
    subject: SubjectIdentifier | None = None


@dataclass(frozen=True)
class TokenApplication:
    """A request for a token of an agent; `parent` is the verified token handed on, if any."""

    tenant_id: UUID
    agent_id: UUID
    grant: Grant
    parent: Delegation | None
    actor: Actor
    now: datetime


@dataclass(frozen=True)
class RequestRows:
    """What one request is granted or refused by.

    `certificate` is the agent's latest in any state, if it ever had one. `standing` is that of the parent
    token. `active_keys` holds the token key that signs, if there is one.
    """

    agent: Agent
    certificate: Certificate | None
    standing: Standing | None
    active_keys: Sequence[TokenKey]

    @property
    def serial_number(self) -> str | None:
        return self.certificate.serial_number if self.certificate else None

    @property
    def permitted_actions(self) -> Sequence[str] | None:
        """As `certified_actions()`: None permits any."""
        return certified_actions(self.agent, self.certificate)


def with_scope(asked: TokenApplication, found: RequestRows) -> TokenApplication:
    """Return the request with the scope it gets; raises `ScopeNotPermitted` if nothing is left of it."""
    if asked.grant.scope is not None:
        return asked
    offered, permitted = asked.parent.scope if asked.parent else "", found.permitted_actions
    kept = [name for name in offered.split() if permitted is None or name in permitted]
    if offered and not kept:
        raise errors.ScopeNotPermitted("The agent may do nothing of the subject token's scope")
    return replace(asked, grant=replace(asked.grant, scope=" ".join(kept)))


def check(asked: TokenApplication, found: RequestRows) -> None:
    """Raise an error of `delegation` unless the agent may delegate what is asked for."""
    grant, parent, scope = asked.grant, asked.parent, (asked.grant.scope or "").split()
    if found.agent.is_stopped:
        raise errors.AgentMayNotDelegate()
    if found.certificate and found.certificate.status_at(asked.now) != CertificateStatus.ACTIVE:
        raise errors.CertificateDoesNotCount()
    permitted = found.permitted_actions
    if permitted is not None:
        if not permitted:
            raise errors.ScopeNotPermitted("The agent has an empty scope and can't delegate")
        for action in scope:
            if action not in permitted:
                raise errors.ScopeNotPermitted(f"The scope exceeds the agent's permitted actions: {action}")
    check_actors(grant.chain[len(parent.chain) if parent else 0 :], asked.agent_id)
    if parent is not None:
        if found.standing is None:
            raise errors.ParentTokenRejected()
        _check_parent(grant, scope, parent, found.standing)
    if _end(asked, found) <= int(asked.now.timestamp()):
        raise errors.CertificateDoesNotCount()


def check_actors(added: Chain, agent_id: UUID) -> None:
    """Raise `ActorNotProven` for an added actor that a DID of the service names, but for the issuing agent.

    Gateways hand these names on: what nobody has proven must not look like an agent of the service.
    """
    own = str(AgentDid(environments.current(), agent_id))
    for actor in added:
        read = unicodedata.normalize("NFKC", unquote(actor.sub)).casefold()
        if actor.sub != own and f"did:{settings.SERVICE_NAME}:" in read:
            raise errors.ActorNotProven(
                f"{actor.sub} is not the issuing agent, and joins only by a token of its own"
            )


def _check_parent(grant: Grant, scope: Sequence[str], parent: Delegation, standing: Standing) -> None:
    """Raise unless the grant extends a parent that stands, within what it and the agents behind it permit.

    The agents may belong to other tenants: the holder of a token may learn that it is no longer valid.
    """
    if standing.reason in (NotStanding.REVOKED, NotStanding.PARENT_REVOKED):
        raise errors.ParentTokenRevoked()
    if standing.reason is NotStanding.UNKNOWN:
        raise errors.ParentTokenRejected()
    if parent.bound_to not in (None, grant.proven_key):
        raise errors.ParentKeyNotProven()
    if grant.subject not in (None, parent.subject_identifier):
        raise errors.ParentExceeded("The verified root must be the parent token's")
    if len(grant.chain) <= len(parent.chain) or grant.chain[: len(parent.chain)] != parent.chain:
        raise errors.ParentExceeded("The chain must begin with the parent token's chain and add to it")
    for action in scope:
        if action not in parent.scope.split():
            raise errors.ParentScopeExceeded(f"The scope exceeds the parent token's: {action}")
    if parent.audience is not None and grant.audience not in (None, parent.audience):
        raise errors.ParentAudienceExceeded("The audience must be the parent token's")
    # A scope that permits nothing delegates not even a chain.
    is_permitted = all(
        known is None or (known and all(action in known for action in scope)) for known in standing.permitted
    )
    if not standing.stands or not is_permitted:
        raise errors.ParentTokenRejected("An agent behind the parent token can't delegate this any more")


def delegation_for(asked: TokenApplication, found: RequestRows, *, status_index: int) -> Delegation:
    """The delegation for a checked grant; it ends no later than the agent's certificate and its parent."""
    grant, parent, issued_at = asked.grant, asked.parent, int(asked.now.timestamp())
    # A bound parent's key is proven, so its child is bound too.
    key = grant.bound_to or grant.proven_key
    return Delegation.of(
        grant.chain,
        issuer=settings.TOKEN_ISSUER,
        environment=environments.current().value,
        token_id=new_id(),
        agent_id=asked.agent_id,
        issued_at=issued_at,
        not_before=issued_at,
        expires_at=min(_end(asked, found), parent.expires_at) if parent else _end(asked, found),
        scope=grant.scope,
        audience=grant.audience or (parent.audience if parent else None),
        certificate_serial=found.serial_number,
        via=parent.lineage if parent else (),
        confirmation=Confirmation(key) if key else None,
        subject_identifier=parent.subject_identifier if parent else grant.subject,
        status=status_lists.status_at(status_index),
    )


def _end(asked: TokenApplication, found: RequestRows) -> int:
    """When the token ends, in Unix seconds, by ttl and certificate."""
    end = asked.now + asked.grant.ttl
    return int((min(end, found.certificate.expires_at) if found.certificate else end).timestamp())
