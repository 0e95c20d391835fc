"""Whether an agent may delegate, what, and for how long: by status, certificate, scope and parent token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Model

from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus
from certificates.models import Certificate, CertificateStatus, certified_actions
from compliance.core.identifiers import parse_id
from compliance.stores import sql
from delegation import errors
from delegation.jose.tokens import Chain, Delegation, Delegator, SubjectIdentifier
from delegation.models import IssuedToken

_AGENT: Final = "WHERE tenant_id = %s AND id = %s"
_LATEST: Final = "WHERE agent_id = %s ORDER BY issued_at DESC, id DESC LIMIT 1"
_TOKENS: Final = "WHERE id = ANY(%s::uuid[]) ORDER BY id"
_AGENTS: Final = "WHERE id = ANY(%s::uuid[])"
_LATEST_OF_EACH: Final = f"""
WHERE id = ANY(ARRAY(
    SELECT (SELECT id FROM {Certificate._meta.db_table} AS certificate
        WHERE certificate.agent_id = asked.id ORDER BY issued_at DESC, id DESC LIMIT 1)
    FROM unnest(%s::uuid[]) AS asked (id)))
"""  # noqa: S608  (a name of ours)


class Party(NamedTuple):
    """An agent, and its latest certificate in any state, if it ever had one."""

    agent: Agent
    certificate: Certificate | None


class Ground(NamedTuple):
    """What issuing rests on: the agent, and behind a parent token the agents of any tenant and the tokens."""

    issuer: Party
    behind: Mapping[UUID, Party]
    tokens: Mapping[UUID, IssuedToken]


def party(*, tenant_id: UUID, agent_id: Any) -> Party:
    """The agent with an id from a client; raises `AgentNotFound`, also if malformed."""
    return ground(tenant_id=tenant_id, agent_id=agent_id).issuer


def ground(
    *, tenant_id: UUID, agent_id: Any, parent: Delegation | None = None, locked: bool = False
) -> Ground:
    """The agent with an id from a client, and what is behind a parent token, in one round trip.

    `locked`: the agent is locked until the transaction ends, the rest is as it was when the lock was
    acquired, and nobody revokes the tokens before. Raises `AgentNotFound`, also for a malformed id.
    """
    parsed = parse_id(str(agent_id))
    lineage = parent.lineage if parent else ()
    behind = sql.array({one.agent_id for one in lineage})
    tokens = sql.array(sorted(one.token_id for one in lineage if one.token_id is not None))
    of_parent: list[tuple[type[Model], str, Sequence[Any]]] = [
        (IssuedToken, f"{_TOKENS} FOR SHARE" if locked else _TOKENS, (tokens,)),
        (Agent, _AGENTS, (behind,)),
        (Certificate, _LATEST_OF_EACH, (behind,)),
    ]
    agents, certificates, *found = sql.read_together(
        (Agent, f"{_AGENT} FOR NO KEY UPDATE" if locked else _AGENT, (tenant_id, parsed)),
        (Certificate, _LATEST, (parsed,)),
        *(of_parent if parent else ()),
    )
    if not agents:
        raise AgentNotFound()
    issuer = Party(agents[0], certificates[0] if certificates else None)
    return Ground(issuer, *_of_parent(*found)) if parent else Ground(issuer, {}, {})


def _of_parent(
    tokens: list[IssuedToken], agents: list[Agent], certificates: list[Certificate]
) -> tuple[dict[UUID, Party], dict[UUID, IssuedToken]]:
    latest = {certificate.agent_id: certificate for certificate in certificates}
    behind = {agent.id: Party(agent, latest.get(agent.id)) for agent in agents}
    return behind, {token.id: token for token in tokens}


@dataclass(frozen=True)
class Authority:
    """What an agent may delegate, as in `certified_actions()`; without certificate if it never had one."""

    permitted_actions: Sequence[str] | None = None
    certificate_serial: str | None = None
    certificate_expires_at: datetime | None = None


def authority_of(party: Party, *, now: datetime) -> Authority:
    """What an agent may delegate; raises `AgentMayNotDelegate` or `CertificateDoesNotCount`."""
    agent, certificate = party
    if agent.status in (AgentStatus.SUSPENDED, AgentStatus.RETIRED):
        raise errors.AgentMayNotDelegate()
    permitted = certified_actions(agent, certificate)
    if certificate is None:
        return Authority(permitted)
    if certificate.status_at(now) is not CertificateStatus.ACTIVE:
        raise errors.CertificateDoesNotCount()
    return Authority(permitted, certificate.serial_number, certificate.expires_at)


def check_scope(authority: Authority, scope: str) -> None:
    """Raise `ScopeEmpty` or `ScopeNotPermitted` unless each scope token is a permitted action."""
    if authority.permitted_actions is None:
        return
    if not authority.permitted_actions:
        raise errors.ScopeEmpty()
    beyond = [token for token in scope.split() if token not in authority.permitted_actions]
    if beyond:
        raise errors.ScopeNotPermitted(f"The scope exceeds the agent's permitted actions: {beyond[0]}")


def check_certificate(authority: Authority, serial_number: str | None) -> None:
    """Raise `CertificateDoesNotCount` unless this is the agent's certificate now (None: it has none)."""
    if authority.certificate_serial != serial_number:
        raise errors.CertificateDoesNotCount()


def check_extends(parent: Delegation, *, chain: Chain, scope: str, audience: str | None) -> None:
    """Raise `ParentExceeded` unless the chain extends the parent's, within its scope and audience."""
    if len(chain) <= len(parent.chain) or chain[: len(parent.chain)] != parent.chain:
        raise errors.ParentExceeded("The chain must begin with the parent token's chain and add to it")
    beyond = [token for token in scope.split() if token not in parent.scope.split()]
    if beyond:
        raise errors.ParentExceeded(f"The scope exceeds the parent token's: {beyond[0]}")
    if parent.audience is not None and audience != parent.audience:
        raise errors.ParentExceeded("The audience must be the parent token's")


def check_possession(parent: Delegation, *, proven_key: str | None) -> None:
    """Raise `ParentKeyNotProven` unless the caller has proven the key that the parent is bound to, if any."""
    if parent.bound_to not in (None, proven_key):
        raise errors.ParentKeyNotProven()


def check_subject(parent: Delegation, subject: SubjectIdentifier | None) -> None:
    """Raise `ParentExceeded` for a verified root that is not the parent's: a child's root is its parent's."""
    if subject not in (None, parent.subject_identifier):
        raise errors.ParentExceeded("The verified root must be the parent token's")


def check_lineage(
    lineage: Sequence[Delegator], behind: Mapping[UUID, Party], *, scope: str, now: datetime
) -> None:
    """Raise `ParentTokenRejected` unless every agent behind the parent token could issue it today.

    Each must hold the certificate it had then, or still none, and its scope must permit what is delegated.
    The agents may belong to other tenants: the holder of a token may learn that it is no longer valid.
    """
    try:
        for delegator in lineage:
            authority = authority_of(behind[delegator.agent_id], now=now)
            check_certificate(authority, delegator.certificate_serial)
            check_scope(authority, scope)
    except (
        KeyError,
        errors.AgentMayNotDelegate,
        errors.CertificateDoesNotCount,
        errors.ScopeEmpty,
        errors.ScopeNotPermitted,
    ) as error:
        raise errors.ParentTokenRejected(
            "An agent behind the parent token can't delegate this any more"
        ) from error
