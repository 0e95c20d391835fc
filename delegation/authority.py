"""Whether an agent may delegate, what, and for how long: its state, certificate, scope and parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agents.models import Agent, AgentStatus
from certificates.models import Certificate, CertificateStatus
from delegation.errors import (
    AgentMayNotDelegate,
    CertificateDoesNotCount,
    ParentExceeded,
    ParentTokenRejected,
    ScopeEmpty,
    ScopeNotPermitted,
)
from delegation.tokens import Chain, Delegation

STOPPED = (AgentStatus.SUSPENDED, AgentStatus.RETIRED)


@dataclass(frozen=True)
class Authority:
    """What an agent in good standing lends to its tokens; no certificate: it was never certified."""

    certificate_serial: str | None = None
    certificate_expires_at: datetime | None = None

    def cap(self, moment: datetime) -> datetime:
        """`moment`, or the certificate's end if that is sooner."""
        return min(filter(None, (moment, self.certificate_expires_at)))


def authority_of(agent: Agent, *, now: datetime) -> Authority:
    """What `agent` can lend; raises `AgentMayNotDelegate` or `CertificateDoesNotCount`."""
    if agent.status in STOPPED:
        raise AgentMayNotDelegate()
    certificate = Certificate.objects.latest_of(agent)
    if certificate is None:
        return Authority()
    if certificate.status_at(now) is not CertificateStatus.ACTIVE:
        raise CertificateDoesNotCount()
    return Authority(certificate.serial_number, certificate.expires_at)


def check_scope(agent: Agent, scope: str) -> bool:
    """Raise `ScopeEmpty` or `ScopeNotPermitted`; True if there was a declared scope to check against.

    Every scope token must be one of the agent's permitted actions, letter by letter.
    """
    permitted = agent.permitted_actions
    if permitted is None:
        return False
    if not permitted:
        raise ScopeEmpty()
    beyond = [token for token in scope.split() if token not in permitted]
    if beyond:
        raise ScopeNotPermitted(f"The scope exceeds the agent's permitted actions: {beyond[0]}")
    return True


def check_extends(parent: Delegation, *, chain: Chain, scope: str, audience: str | None) -> None:
    """Raise `ParentExceeded` unless the chain adds to the parent's, within its scope and audience."""
    if len(chain) <= len(parent.chain) or chain[: len(parent.chain)] != parent.chain:
        raise ParentExceeded("The chain must begin with the parent token's chain and add to it")
    beyond = [token for token in scope.split() if token not in parent.scopes]
    if beyond:
        raise ParentExceeded(f"The scope exceeds the parent token's: {beyond[0]}")
    if parent.audience is not None and audience != parent.audience:
        raise ParentExceeded("The audience must be the parent token's")


def check_lineage(agent_ids: Sequence[UUID], *, now: datetime) -> None:
    """Raise `ParentTokenRejected` unless every agent behind the parent token is still in good standing.

    Their tenants may be others: who holds a token may be told that it doesn't count any more.
    """
    found = Agent.objects.in_bulk(agent_ids)
    try:
        for agent_id in agent_ids:
            authority_of(found[agent_id], now=now)
    except (KeyError, AgentMayNotDelegate, CertificateDoesNotCount) as error:
        raise ParentTokenRejected("An agent behind the parent token can't delegate any more") from error
