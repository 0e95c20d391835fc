"""Whether an agent may delegate, what, and for how long: its state, certificate, scope and parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.models import Agent, AgentStatus
from certificates.models import Certificate, CertificateStatus
from certificates.scope import certified_actions
from delegation.errors import (
    AgentMayNotDelegate,
    CertificateDoesNotCount,
    ParentExceeded,
    ParentTokenRejected,
    ScopeEmpty,
    ScopeNotPermitted,
)
from delegation.tokens import Chain, Delegation, Delegator

STOPPED = (AgentStatus.SUSPENDED, AgentStatus.RETIRED)


@dataclass(frozen=True)
class Authority:
    """What an agent in good standing lends to its tokens; no certificate: it was never certified.

    `permitted_actions` as in `certificates.scope`.
    """

    permitted_actions: Sequence[str] | None = None
    certificate_serial: str | None = None
    certificate_expires_at: datetime | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is a declared scope to check against."""
        return self.permitted_actions is not None

    def cap(self, moment: datetime) -> datetime:
        """`moment`, or the certificate's end if that is sooner."""
        return min(filter(None, (moment, self.certificate_expires_at)))


def authority_of(agent: Agent, *, now: datetime) -> Authority:
    """What `agent` can lend; raises `AgentMayNotDelegate` or `CertificateDoesNotCount`."""
    if agent.status in STOPPED:
        raise AgentMayNotDelegate()
    certificate = Certificate.objects.latest_of(agent)
    permitted = certified_actions(agent, certificate)
    if certificate is None:
        return Authority(permitted)
    if certificate.status_at(now) is not CertificateStatus.ACTIVE:
        raise CertificateDoesNotCount()
    return Authority(permitted, certificate.serial_number, certificate.expires_at)


def check_scope(authority: Authority, scope: str) -> None:
    """Raise `ScopeEmpty` or `ScopeNotPermitted` unless each scope token is permitted, letter by letter."""
    if authority.permitted_actions is None:
        return
    if not authority.permitted_actions:
        raise ScopeEmpty()
    beyond = [token for token in scope.split() if token not in authority.permitted_actions]
    if beyond:
        raise ScopeNotPermitted(f"The scope exceeds the agent's permitted actions: {beyond[0]}")


def check_certificate(authority: Authority, serial_number: str | None) -> None:
    """Raise `CertificateDoesNotCount` unless the agent holds this certificate now; None: none as yet."""
    if authority.certificate_serial != serial_number:
        raise CertificateDoesNotCount()


def check_extends(parent: Delegation, *, chain: Chain, scope: str, audience: str | None) -> None:
    """Raise `ParentExceeded` unless the chain adds to the parent's, within its scope and audience."""
    if len(chain) <= len(parent.chain) or chain[: len(parent.chain)] != parent.chain:
        raise ParentExceeded("The chain must begin with the parent token's chain and add to it")
    beyond = [token for token in scope.split() if token not in parent.scopes]
    if beyond:
        raise ParentExceeded(f"The scope exceeds the parent token's: {beyond[0]}")
    if parent.audience is not None and audience != parent.audience:
        raise ParentExceeded("The audience must be the parent token's")


def check_lineage(lineage: Sequence[Delegator], *, scope: str, now: datetime) -> None:
    """Raise `ParentTokenRejected` unless every agent behind the parent token stands as when it issued.

    It must be in good standing under the certificate of that time (still without one, if it had none then):
    what was issued under a certificate that was revoked or superseded is not handed on, whatever the agent
    obtained since. Its scope must still hold what is handed on. The agents' tenants may be others: who holds
    a token may be told that it doesn't count any more.
    """
    found = Agent.objects.in_bulk([delegator.agent_id for delegator in lineage])
    try:
        for delegator in lineage:
            authority = authority_of(found[delegator.agent_id], now=now)
            check_certificate(authority, delegator.certificate_serial)
            check_scope(authority, scope)
    except (KeyError, AgentMayNotDelegate, CertificateDoesNotCount, ScopeEmpty, ScopeNotPermitted) as error:
        raise ParentTokenRejected("An agent behind the parent token can't delegate this any more") from error
