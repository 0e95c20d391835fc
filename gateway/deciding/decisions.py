"""Whether a credential suffices on a route, from what is known of its agent now; reads no row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from agents.models import AgentDid, AgentStatus
from agents.risk import BANDS, band_of
from certificates.models import CertificateStatus
from certificates.public.verification import Verification
from compliance.core.environments import Environment
from delegation.jose.tokens import Chain, ChainActor, ChainActorType, Delegation, RootAssurance
from delegation.standing import NotStanding, Shortcoming, Standing
from gateway.deciding.refusals import (
    SCOPE_VIOLATION,
    SERIAL_CHALLENGE,
    GatewayRefused,
    ScopeViolated,
    challenge,
    invalid_token,
)
from gateway.models import GatewayAgents, GatewayCredential, GatewayRoot, GatewayRoute

_OF_TOKEN: Final = {
    NotStanding.UNKNOWN: "The token is unknown",
    NotStanding.EXPIRED: "The token has expired",
    NotStanding.REVOKED: "The token is revoked",
    NotStanding.PARENT_REVOKED: "A token behind this one is revoked",
}
OF_AGENT: Final = {
    NotStanding.AGENT_SUSPENDED: "Agent is suspended",
    NotStanding.AGENT_RETIRED: "Agent is retired",
    NotStanding.CERTIFICATE_REPLACED: "Certificate was replaced",
    NotStanding.CERTIFICATE_REVOKED: "Certificate is revoked",
    NotStanding.CERTIFICATE_EXPIRED: "Certificate has expired",
}
_STOPPED: Final = {
    AgentStatus.SUSPENDED.value: NotStanding.AGENT_SUSPENDED,
    AgentStatus.RETIRED.value: NotStanding.AGENT_RETIRED,
    CertificateStatus.REVOKED.value: NotStanding.CERTIFICATE_REVOKED,
    CertificateStatus.EXPIRED.value: NotStanding.CERTIFICATE_EXPIRED,
}
OF_SHORTCOMING: Final = {
    Shortcoming.NOT_ACTIVE: "Agent is not active",
    Shortcoming.NOT_CERTIFIED: "Agent has no certificate",
    Shortcoming.SCOPE_UNDECLARED: SCOPE_VIOLATION,
}


@dataclass(frozen=True, slots=True)
class Passage:
    """The identity that may pass, with its assurance; `serial` None for an agent that was never certified.

    The chain of a serial number is its agent alone.
    """

    credential: GatewayCredential
    route: str
    action: str
    agent_id: UUID
    did: str
    tenant_id: UUID
    principal: str
    chain: Chain
    scope: Sequence[str]
    risk_band: str
    serial: str | None
    environment: str
    assurance: RootAssurance


def stopped_by(agent_status: str, certificate_status: str) -> NotStanding | None:
    """Why an agent may not act, if it or its latest certificate is stopped."""
    return _STOPPED.get(agent_status) or _STOPPED.get(certificate_status)


def of_serial(route: GatewayRoute, action: str, found: Verification | None, *, tenant_id: UUID) -> Passage:
    """The passage of the agent that a serial number names. Raises: GatewayRefused."""
    if found is None or not _is_admitted(route, found.certificate.tenant_id, tenant_id):
        # Another tenant's certificate is answered as one that does not exist.
        unknown = {"WWW-Authenticate": SERIAL_CHALLENGE}
        raise GatewayRefused(401, "Certificate not found", "certificate_unknown", headers=unknown)
    return _of_certificate(route, action, GatewayCredential.SERIAL, found)


def of_signature(
    route: GatewayRoute, action: str, found: Verification | None, *, owner: UUID, tenant_id: UUID
) -> Passage:
    """The passage of the agent of tenant `owner` whose key signed the request. Raises: GatewayRefused."""
    if not _is_admitted(route, owner, tenant_id):
        raise GatewayRefused(403, "The agent belongs to another tenant", "foreign_agent")
    if found is None:
        shortcoming = Shortcoming.NOT_CERTIFIED
        raise GatewayRefused(403, OF_SHORTCOMING[shortcoming], shortcoming.value)
    return _of_certificate(route, action, GatewayCredential.HTTPSIG, found)


def _of_certificate(
    route: GatewayRoute, action: str, kind: GatewayCredential, found: Verification
) -> Passage:
    certificate, agent = found.certificate, found.certificate.agent
    if fault := stopped_by(agent.status, found.status):
        raise GatewayRefused(403, OF_AGENT[fault], fault.value)
    if agent.status != AgentStatus.ACTIVE:
        raise GatewayRefused(403, "Agent is not active", "agent_not_active")
    permitted: list[str] | None = certificate.claims["permitted_actions"]
    if permitted is None:
        # Nothing was exceeded where nothing is stated: no strike.
        raise GatewayRefused(403, SCOPE_VIOLATION, "scope_undeclared")
    if action not in permitted:
        raise ScopeViolated(agent.id, certificate.tenant_id, is_proven=kind.is_proven)
    return Passage(
        credential=kind,
        route=route.name,
        action=action,
        agent_id=agent.id,
        did=agent.did,
        tenant_id=certificate.tenant_id,
        principal=agent.did,
        chain=(ChainActor(agent.did, ChainActorType.AGENT),),
        scope=permitted,
        risk_band=_admitted_band(route, agent.risk_score),
        serial=certificate.serial_number,
        environment=found.environment.value,
        assurance=RootAssurance.ASSERTED,
    )


def of_token(
    route: GatewayRoute,
    action: str,
    kind: GatewayCredential,
    delegation: Delegation,
    standing: Standing,
    *,
    tenant_id: UUID,
) -> Passage:
    """The passage of an authentic token's holder, by how the token stands. Raises: GatewayRefused.

    Each tenant chooses its issuers and their keys itself, so a root that another one verified is asserted.
    """
    reason, owner, shortcoming = standing.reason, standing.tenant_id, standing.shortcoming
    if reason in _OF_TOKEN:
        raise invalid_token(route, _OF_TOKEN[reason], kind, reason.value)
    if reason is not None:
        raise GatewayRefused(403, OF_AGENT[reason], reason.value)
    if owner is None or not _is_admitted(route, owner, tenant_id):
        raise GatewayRefused(403, "The agent belongs to another tenant", "foreign_agent")
    if shortcoming is not None and not route.uncertified_agents:
        raise GatewayRefused(403, OF_SHORTCOMING[shortcoming], shortcoming.value)
    did = str(AgentDid(Environment(delegation.environment), delegation.agent_id))
    _check_scope(route, action, kind, delegation, standing, owner, did)
    is_ours = standing.root_tenant_id == tenant_id
    assurance = delegation.root_assurance if is_ours else RootAssurance.ASSERTED
    if route.root == GatewayRoot.VERIFIED and assurance is not RootAssurance.VERIFIED:
        raise GatewayRefused(403, "The root of the chain is not verified", "root_not_verified")
    return Passage(
        credential=kind,
        route=route.name,
        action=action,
        agent_id=delegation.agent_id,
        did=did,
        tenant_id=owner,
        principal=delegation.principal,
        chain=delegation.chain,
        scope=delegation.scope.split(),
        risk_band=_admitted_band(route, standing.highest_risk_score),
        serial=standing.certificate_serial,
        environment=delegation.environment,
        assurance=assurance,
    )


def _check_scope(
    route: GatewayRoute,
    action: str,
    kind: GatewayCredential,
    delegation: Delegation,
    standing: Standing,
    owner: UUID,
    did: str,
) -> None:
    """Refuse an action that token or certificates do not permit.

    Anyone shown a bearer token can ask for anything with it, so only what the token permits counts against
    its agent, or what comes with the agent's own key. Another agent at the chain's end has a key of its own,
    and must not collect strikes for the issuing one. Raises: GatewayRefused.
    """
    refused = challenge(route, kind, error="insufficient_scope", scope=action)
    last = delegation.chain[-1]
    is_agents = last.sub == did or (last.type is ChainActorType.AGENT and last.sub == standing.agent_name)
    is_beyond = standing.permitted_actions is not None and action not in standing.permitted_actions
    is_granted = action in delegation.scope.split()
    if is_beyond and is_agents and (is_granted or kind is GatewayCredential.DPOP):
        raise ScopeViolated(delegation.agent_id, owner, is_proven=True, headers=refused)
    if not is_granted or not standing.is_permitted_before(action):
        raise GatewayRefused(403, SCOPE_VIOLATION, "insufficient_scope", headers=refused)
    if is_beyond:
        raise ScopeViolated(delegation.agent_id, owner, is_proven=False, headers=refused)


def _is_admitted(route: GatewayRoute, owner: UUID, tenant_id: UUID) -> bool:
    return route.agents == GatewayAgents.ANY or owner == tenant_id


def _admitted_band(route: GatewayRoute, risk_score: float) -> str:
    band = band_of(risk_score)
    if BANDS.index(band) > BANDS.index(route.highest_band):
        raise GatewayRefused(403, f"The agent's risk is {band}, above what this route admits", "risk_band")
    return band
