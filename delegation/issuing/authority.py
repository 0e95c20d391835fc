"""Whether an agent may delegate, what, and for how long: by status, certificate, scope and parent token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from certificates.models import certified_actions
from delegation import errors
from delegation.issuing.decision_rows import AgentAndCertificate
from delegation.jose.tokens import Chain, Delegation, Delegator, SubjectIdentifier
from delegation.standing_rule import agent_fault, certificate_fault


@dataclass(frozen=True)
class Authority:
    """What an agent may delegate.

    `permitted_actions` is as in `certified_actions()`: None permits any. The other fields are None for an
    agent that never had a certificate.
    """

    permitted_actions: Sequence[str] | None = None
    certificate_serial: str | None = None
    certificate_expires_at: datetime | None = None


def authority_of(delegator: AgentAndCertificate, *, now: datetime) -> Authority:
    """What an agent may delegate; raises `AgentMayNotDelegate` or `CertificateDoesNotCount`."""
    agent, certificate = delegator
    if agent_fault(agent.status):
        raise errors.AgentMayNotDelegate()
    permitted = certified_actions(agent, certificate)
    if certificate is None:
        return Authority(permitted)
    if certificate_fault(certificate.status_at(now)):
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
        raise errors.ParentScopeExceeded(f"The scope exceeds the parent token's: {beyond[0]}")
    if parent.audience is not None and audience != parent.audience:
        raise errors.ParentAudienceExceeded("The audience must be the parent token's")


def check_possession(parent: Delegation, *, proven_key: str | None) -> None:
    """Raise `ParentKeyNotProven` unless the caller has proven the key that the parent is bound to, if any."""
    if parent.bound_to not in (None, proven_key):
        raise errors.ParentKeyNotProven()


def check_subject(parent: Delegation, subject: SubjectIdentifier | None) -> None:
    """Raise `ParentExceeded` for a verified root that is not the parent's: a child's root is its parent's."""
    if subject not in (None, parent.subject_identifier):
        raise errors.ParentExceeded("The verified root must be the parent token's")


def check_lineage(
    lineage: Sequence[Delegator], behind: Mapping[UUID, AgentAndCertificate], *, scope: str, now: datetime
) -> None:
    """Raise `ParentTokenRejected` unless every agent behind the parent token could issue it today.

    Each must hold the certificate it had then, or still none, and its scope must permit what is delegated.
    The agents may belong to other tenants: the holder of a token may learn that it is no longer valid.
    """
    for delegator in lineage:
        today = behind.get(delegator.agent_id)
        if today is None or today.fault(delegator.certificate_serial, now) or not _permits(today, scope):
            raise errors.ParentTokenRejected("An agent behind the parent token can't delegate this any more")


def _permits(delegator: AgentAndCertificate, scope: str) -> bool:
    """Whether the agent may delegate this scope, by what it is certified for."""
    try:
        check_scope(Authority(certified_actions(*delegator)), scope)
    except (errors.ScopeEmpty, errors.ScopeNotPermitted):
        return False
    return True
