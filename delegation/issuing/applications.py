"""A request for a token, the check of what it asks for, and the delegation it is granted; reads no row."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.observing import correlation
from compliance.observing.correlation import Correlation
from delegation import errors
from delegation.issued import rows, status_entries
from delegation.issuing.authority import (
    Authority,
    authority_of,
    check_extends,
    check_lineage,
    check_possession,
    check_scope,
    check_subject,
)
from delegation.issuing.decision_rows import AgentAndCertificate, RequestRows
from delegation.jose import tokens
from delegation.jose.tokens import Chain, Confirmation, Delegation, SubjectIdentifier

DEFAULT_TTL = timedelta(hours=1)


@dataclass(frozen=True)
class Grant:
    """What the new token is to say. `scope` is normalised; "" grants no action, only a chain.

    `proven_key` is the thumbprint of the key whose possession the caller has just proven. The token is bound
    to the key `bound_to`, without one to the proven key. `subject` is the root as a trusted issuer named it.
    """

    chain: Chain
    scope: str = ""
    audience: str | None = None
    ttl: timedelta = DEFAULT_TTL
    bound_to: str | None = None
    proven_key: str | None = None
    subject: SubjectIdentifier | None = None

    @property
    def confirmation(self) -> Confirmation | None:
        """What binds the new token, if anything. A bound parent's key is proven, so its child is bound."""
        key = self.bound_to or self.proven_key
        return Confirmation(key) if key else None


@dataclass(frozen=True)
class TokenApplication:
    """A request for a token of one of the tenant's agents.

    `grant_to` makes the grant from the rows of the issuing agent, or raises a ServiceError. `parent` is the
    verified token that is handed on, if any. `ids` are the request's own, for its audit entry.
    """

    tenant_id: UUID
    agent_id: UUID | None
    grant_to: Callable[[AgentAndCertificate], Grant]
    parent: Delegation | None
    actor: Actor
    now: datetime
    ids: Correlation | None = field(default_factory=correlation.current)


def check(asked: TokenApplication, grant: Grant, found: RequestRows) -> Authority:
    """Return the agent's authority, which covers the grant. Raises: the errors of `delegation` if not."""
    parent, now = asked.parent, asked.now
    authority = authority_of(found.issuer, now=now)
    check_scope(authority, grant.scope)
    if parent is not None:
        rows.check_unrevoked(parent, found.tokens)
        check_possession(parent, proven_key=grant.proven_key)
        check_subject(parent, grant.subject)
        audience = grant.audience or parent.audience
        check_extends(parent, chain=grant.chain, scope=grant.scope, audience=audience)
        check_lineage(parent.lineage, found.behind, scope=grant.scope, now=now)
    _end(asked, grant, authority)
    return authority


def delegation_for(
    asked: TokenApplication, grant: Grant, agent_id: UUID, authority: Authority, *, status_index: int
) -> Delegation:
    """The delegation for a checked grant; it ends no later than the agent's certificate and its parent."""
    parent, issued_at = asked.parent, int(asked.now.timestamp())
    expires_at = _end(asked, grant, authority)
    return Delegation.of(
        grant.chain,
        issuer=settings.TOKEN_ISSUER,
        environment=environments.current().value,
        token_id=new_id(),
        agent_id=agent_id,
        issued_at=issued_at,
        not_before=issued_at,
        expires_at=min(expires_at, parent.expires_at) if parent else expires_at,
        scope=grant.scope,
        audience=grant.audience or (parent.audience if parent else None),
        certificate_serial=authority.certificate_serial,
        via=parent.lineage if parent else (),
        confirmation=grant.confirmation,
        subject_identifier=parent.subject_identifier if parent else grant.subject,
        status=status_entries.status_at(status_index),
    )


def _end(asked: TokenApplication, grant: Grant, authority: Authority) -> int:
    """When the token ends, in Unix seconds, by ttl and certificate. Raises: CertificateDoesNotCount."""
    ends = [asked.now + grant.ttl, authority.certificate_expires_at]
    end = int(min(filter(None, ends)).timestamp())
    if end <= int(asked.now.timestamp()):
        raise errors.CertificateDoesNotCount()
    return end


def audited(
    asked: TokenApplication, delegation: Delegation, authority: Authority, *, key_id: str
) -> dict[str, Any]:
    """The metadata of an issued token's audit entry."""
    subject = delegation.subject_identifier
    return {
        "agent_id": str(delegation.agent_id),
        "principal": delegation.principal,
        "chain": tokens.shown_chain(delegation.chain),
        "scope": delegation.scope,
        "scope_checked": authority.permitted_actions is not None,
        "audience": delegation.audience,
        "token_id": str(delegation.token_id),
        "key_id": key_id,
        "certificate_serial": delegation.certificate_serial,
        "expires_at": delegation.expires.isoformat(),
        "parent_token_id": str(asked.parent.token_id) if asked.parent else None,
        "root_assurance": delegation.root_assurance.value,
        "root_issuer": subject.issuer if subject else None,
        "root_subject": subject.subject if subject else None,
        "bound_to": delegation.bound_to,
    }
