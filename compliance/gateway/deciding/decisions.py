"""Whether a credential suffices on a route, from what is known of its agent now; reads no row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from agents.did import AgentDid
from agents.models import Agent, AgentStatus
from agents.risk import band_of
from certificates.models import Certificate
from certificates.public.verification import Verification
from compliance.core.environments import Environment
from compliance.gateway.deciding.refusals import (
    SCOPE_VIOLATION,
    SERIAL_CHALLENGE,
    GatewayRefused,
    ScopeViolated,
    insufficient_scope,
    invalid_token,
)
from compliance.gateway.deciding.rules import RouteRules
from compliance.gateway.models import GatewayCredential
from delegation.jose.tokens import Chain, ChainActor, ChainActorType, Delegation, RootAssurance
from delegation.standing import Standing
from delegation.standing_rule import NotStanding, agent_fault, certificate_fault

_OF_TOKEN: Final = {
    NotStanding.UNKNOWN: "The token is unknown",
    NotStanding.EXPIRED: "The token has expired",
    NotStanding.REVOKED: "The token is revoked",
    NotStanding.PARENT_REVOKED: "A token behind this one is revoked",
}
_OF_AGENT: Final = {
    NotStanding.AGENT_SUSPENDED: "Agent is suspended",
    NotStanding.AGENT_RETIRED: "Agent is retired",
    NotStanding.CERTIFICATE_REPLACED: "Certificate was replaced",
    NotStanding.CERTIFICATE_REVOKED: "Certificate is revoked",
    NotStanding.CERTIFICATE_EXPIRED: "Certificate has expired",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """Who may pass, and how sure that is; `serial` None for an agent that was never certified.

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


def of_serial(rules: RouteRules, action: str, found: Verification | None, *, tenant_id: UUID) -> Passage:
    """The passage of the agent that a serial number names. Raises: GatewayRefused."""
    if found is None or not (rules.takes_any_tenant or found.certificate.tenant_id == tenant_id):
        # Another tenant's certificate is answered as one that does not exist.
        unknown = {"WWW-Authenticate": SERIAL_CHALLENGE}
        raise GatewayRefused(401, "Certificate not found", "certificate_unknown", headers=unknown)
    agent: Agent = found.certificate.agent
    _check_certificate(agent, found)
    permitted = _permitted(found.certificate)
    if permitted is None:
        # Nothing was exceeded where nothing is stated: no strike.
        raise GatewayRefused(403, SCOPE_VIOLATION, "scope_undeclared")
    if action not in permitted:
        raise ScopeViolated(agent.id, found.certificate.tenant_id)
    band = _check_band(rules, agent.risk_score)
    return Passage(
        credential=GatewayCredential.SERIAL,
        route=rules.name,
        action=action,
        agent_id=agent.id,
        did=agent.did,
        tenant_id=found.certificate.tenant_id,
        principal=agent.did,
        chain=(ChainActor(agent.did, ChainActorType.AGENT),),
        scope=permitted,
        risk_band=band,
        serial=found.certificate.serial_number,
        environment=found.environment.value,
        assurance=RootAssurance.ASSERTED,
    )


def of_token(
    rules: RouteRules,
    action: str,
    kind: GatewayCredential,
    delegation: Delegation,
    standing: Standing,
    *,
    tenant_id: UUID,
) -> Passage:
    """The passage of an authentic token's holder, by how the token stands. Raises: GatewayRefused."""
    owner = standing.tenant_id
    _check_standing(rules, kind, standing)
    if owner is None or not (rules.takes_any_tenant or owner == tenant_id):
        raise GatewayRefused(403, "The agent belongs to another tenant", "foreign_agent")
    permitted = standing.permitted_actions
    refused = insufficient_scope(rules, kind, action)
    if permitted is not None and action not in permitted:
        raise ScopeViolated(delegation.agent_id, owner, headers=refused)
    if action not in delegation.scope.split() or not standing.is_permitted_before(action):
        raise GatewayRefused(403, SCOPE_VIOLATION, "insufficient_scope", headers=refused)
    assurance = _assurance(delegation, standing, tenant_id)
    if rules.is_root_verified and assurance is not RootAssurance.VERIFIED:
        raise GatewayRefused(403, "The root of the chain is not verified", "root_not_verified")
    return Passage(
        credential=kind,
        route=rules.name,
        action=action,
        agent_id=delegation.agent_id,
        did=str(AgentDid(Environment(delegation.environment), delegation.agent_id)),
        tenant_id=owner,
        principal=delegation.principal,
        chain=delegation.chain,
        scope=delegation.scope.split(),
        risk_band=_check_band(rules, standing.highest_risk_score),
        serial=standing.certificate_serial,
        environment=delegation.environment,
        assurance=assurance,
    )


def _assurance(delegation: Delegation, standing: Standing, tenant_id: UUID) -> RootAssurance:
    """How sure the gateway's tenant can be of the root.

    Each tenant chooses its issuers and their keys itself, so what another one verified is its assertion.
    """
    return delegation.root_assurance if standing.root_tenant_id == tenant_id else RootAssurance.ASSERTED


def _check_certificate(agent: Agent, found: Verification) -> None:
    reason = agent_fault(agent.status) or certificate_fault(found.status)
    if reason is not None:
        raise GatewayRefused(403, _OF_AGENT[reason], reason.value)
    if agent.status != AgentStatus.ACTIVE:
        raise GatewayRefused(403, "Agent is not active", "agent_not_active")


def _permitted(certificate: Certificate) -> list[str] | None:
    found: list[str] | None = certificate.claims["permitted_actions"]
    return found


def _check_standing(rules: RouteRules, kind: GatewayCredential, standing: Standing) -> None:
    reason = standing.reason
    if reason in _OF_TOKEN:
        raise invalid_token(rules, _OF_TOKEN[reason], kind, reason.value)
    if reason is not None:
        raise GatewayRefused(403, _OF_AGENT[reason], reason.value)


def _check_band(rules: RouteRules, risk_score: float) -> str:
    band = band_of(risk_score)
    if not rules.admits_band(band):
        raise GatewayRefused(403, f"The agent's risk is {band}, above what this route admits", "risk_band")
    return band
