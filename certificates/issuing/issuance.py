"""Issuing certificates: commit the intent, then build, lint, sign and announce under the agent's lock.

What may take long (a key generation) happens before the lock, and every check is repeated under it. A crash
at any point leaves either a certificate or an unfinished `Issuance`.
"""

import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ReasonFlags
from django.conf import settings

from agents import services as agents
from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus
from agents.risk import band_of
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import errors
from certificates.authorities import base_url, issuer_info, profile, signing_key
from certificates.issuing import key_pool
from certificates.models import Certificate, CertificateAuthority, CertificateStatus, Issuance, IssuanceState
from certificates.pki.identity_extension import IdentityClaims
from certificates.pki.lint import MAX_LIFETIME, LeafExpectation, LintError, sign_leaf
from certificates.pki.serials import format_serial, new_serial, shard_of
from certificates.pki.x509 import CertifiedAgent, Validity, leaf_builder, read_claims
from certificates.querysets import issuing_among
from certificates.revocation import mark_expired, publish_webhook, revoke_locked
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.keys import KeyRef
from compliance.stores import sql
from compliance.stores.hash_ranges import bucket_of
from compliance.tenancy.models import Tenant
from webhooks.vocabulary import EventName

log = logging.getLogger(__name__)

_HELD: Final = "WHERE tenant_id = %s AND agent_id = %s AND status = 'active' ORDER BY id FOR NO KEY UPDATE"
CERTIFIABLE: Final = (AgentStatus.PENDING, AgentStatus.ACTIVE)


@dataclass(frozen=True)
class Prepared:
    """What an issuance has before the agent is locked: the CA, the committed intent and the key."""

    authority: CertificateAuthority
    intent: Issuance
    key: KeyRef


def issue(*, tenant_id: UUID, agent_id: Any, actor: Actor, now: datetime) -> Certificate:
    """Certify an agent; raises `AgentNotFound`, `CannotCertify`, `AlreadyCertified`."""
    agent, authority = _read(tenant_id, agent_id, now)
    return _issue_locked(agent, _prepare(agent, authority, now), actor, now)


def renew(*, tenant_id: UUID, certificate_id: Any, actor: Actor, now: datetime) -> Certificate:
    """Supersede a certificate by one with a new key, for the agent's profile of today."""
    old = Certificate.objects.for_tenant(tenant_id).select_related("agent").find(certificate_id)
    _check_renewable(old, old.agent, now)
    prepared = _prepare(old.agent, CertificateAuthority.objects.issuing_at(now), now)
    return _issue_locked(old.agent, prepared, actor, now, old=old)


def renew_of_agent(*, tenant_id: UUID, agent_id: Any, actor: Actor, now: datetime) -> Certificate:
    """`renew` for the agent's active certificate; raises `AgentNotFound` and `NothingToRenew` besides."""
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    _check_status(agent)
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None:
        raise errors.NothingToRenew()
    return renew(tenant_id=tenant_id, certificate_id=certificate.id, actor=actor, now=now)


def _issue_locked(
    agent: Agent, prepared: Prepared, actor: Actor, now: datetime, *, old: Certificate | None = None
) -> Certificate:
    try:
        with environments.atomic():
            agent, held = _locked(agent.tenant_id, agent.id)
            if old is None:
                _check_status(agent)
                _make_room(held, now)
            else:
                _supersede(old, agent, actor, now)
            certificate = _certified(agent, prepared, now)
            with sql.pipelined():
                sql.insert(certificate)
                _finish(prepared.intent, IssuanceState.COMPLETED, now)
                agents.activate(agent=agent, actor=actor, now=now)
                _announce(certificate, old, actor, now)
    except (ServiceError, LintError) as error:
        _abandon(prepared, error, now)
        raise
    return certificate


def _supersede(old: Certificate, agent: Agent, actor: Actor, now: datetime) -> None:
    locked = Certificate.objects.for_tenant(old.tenant_id).locked().find(old.id)
    _check_renewable(locked, agent, now)
    code = ReasonFlags.superseded
    revoke_locked(certificate=locked, reason=code.value, code=code, actor=actor, now=now)


def _read(tenant_id: UUID, agent_id: Any, now: datetime) -> tuple[Agent, CertificateAuthority]:
    """The agent and the CA, if the agent may be certified as far as can be seen without its lock."""
    parsed = agent_id if isinstance(agent_id, UUID) else parse_id(agent_id)
    agents_found, active, issuing = sql.read_together(
        (Agent, "WHERE id = %s AND tenant_id = %s", [parsed, tenant_id]),
        (
            Certificate,
            "WHERE tenant_id = %s AND agent_id = %s AND status = 'active' AND expires_at >= %s LIMIT 1",
            [tenant_id, parsed, now],
        ),
        (CertificateAuthority, "WHERE role = 'issuing' AND retired_at IS NULL", []),
    )
    if not agents_found:
        raise AgentNotFound()
    _check_status(agents_found[0])
    if active:
        raise errors.AlreadyCertified()
    return agents_found[0], issuing_among(issuing, now)


def _check_status(agent: Agent) -> None:
    if agent.status not in CERTIFIABLE:
        raise errors.CannotCertify(f"Cannot certify a {agent.status} agent")


def _check_renewable(certificate: Certificate, agent: Agent, now: datetime) -> None:
    _check_status(agent)
    status = certificate.status_at(now)
    if status == CertificateStatus.REVOKED:
        raise errors.AlreadyRevoked()
    if status == CertificateStatus.EXPIRED:
        raise errors.CertificateExpired()


def _prepare(agent: Agent, authority: CertificateAuthority, now: datetime) -> Prepared:
    intent = Issuance(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        serial_number=format_serial(new_serial(environments.current(), bucket=bucket_of(agent.tenant_id))),
        created_at=now,
    )
    key = key_pool.take_for(intent)
    if key is not None:
        return Prepared(authority, intent, key)
    key = key_pool.generate(now=now)
    intent.key_uri = key.uri
    sql.insert(intent)
    # The CA may have been rotated during the seconds that a key generation takes.
    return Prepared(CertificateAuthority.objects.issuing_at(now), intent, key)


def _locked(tenant_id: UUID, agent_id: UUID) -> tuple[Agent, list[Certificate]]:
    """Lock the agent, then read its active certificates, so that all committed ones are among them."""
    found, held, tenants = sql.read_together(
        (Agent, "WHERE id = %s AND tenant_id = %s FOR NO KEY UPDATE", [agent_id, tenant_id]),
        (Certificate, _HELD, [tenant_id, agent_id]),
        (Tenant, "WHERE id = %s", [tenant_id]),
    )
    if not found:
        raise AgentNotFound()
    agent: Agent = found[0]
    agent.tenant = tenants[0]
    return agent, held


def _make_room(held: list[Certificate], now: datetime) -> None:
    """Mark expired certificates, which count as active for the constraint; raises `AlreadyCertified`."""
    for certificate in held:
        if certificate.status_at(now) == CertificateStatus.ACTIVE:
            raise errors.AlreadyCertified()
        mark_expired(certificate=certificate, now=now)


def _certified(agent: Agent, prepared: Prepared, now: datetime) -> Certificate:
    """Build, lint and sign under the agent's lock: the one place that calls the HSM under a lock."""
    authority, key = prepared.authority, prepared.key
    serial = int(prepared.intent.serial_number, 16)
    shard = shard_of(serial, authority.crl_shards)
    issuer = issuer_info(authority).for_shard(shard)
    expected = LeafExpectation(certified_agent(agent), key.public_key, serial, issuer, profile())
    builder = leaf_builder(
        agent=expected.agent,
        public_key=key.public_key,
        serial=serial,
        validity=Validity.lasting(lifetime_of(agent), now=now, within=Validity.of(issuer.certificate)),
        issuer=issuer,
        profile=expected.profile,
    )
    signed = sign_leaf(builder, key=signing_key(authority), expected=expected)
    return _row(agent, prepared, signed, shard, now)


def _row(
    agent: Agent, prepared: Prepared, signed: x509.Certificate, shard: int | None, now: datetime
) -> Certificate:
    return Certificate(
        tenant_id=agent.tenant_id,
        agent=agent,
        authority=prepared.authority,
        serial_number=prepared.intent.serial_number,
        kms_key_arn=prepared.key.uri,
        key_storage=prepared.key.storage.value,
        certificate_pem=signed.public_bytes(Encoding.PEM).decode("ascii"),
        claims=asdict(read_claims(signed, profile())),
        crl_shard=shard,
        not_before=signed.not_valid_before_utc,
        issued_at=now,
        expires_at=signed.not_valid_after_utc,
    )


def certified_agent(agent: Agent) -> CertifiedAgent:
    """The agent as a certificate issued today would describe it."""
    actions = agent.permitted_actions
    claims = IdentityClaims(
        operator=agent.tenant.name,
        did=agent.did,
        environment=environments.current().value,
        model=agent.model,
        model_version=agent.version,
        model_hash=agent.model_hash,
        permitted_actions=None if actions is None else tuple(actions),
    )
    resolver_url = f"{base_url()}/1.0/identifiers/{agent.did}"
    return CertifiedAgent(agent.id, agent.name, resolver_url, claims)


def lifetime_of(agent: Agent) -> timedelta:
    """How long a certificate lasts; a setting shortens it for agents whose rolling risk is high."""
    is_high = band_of(agent.risk_score) == "high"
    wanted = settings.HIGH_RISK_CERTIFICATE_VALIDITY if is_high else settings.CERTIFICATE_VALIDITY
    return min(wanted, MAX_LIFETIME)


def _abandon(prepared: Prepared, error: Exception, now: datetime) -> None:
    """Record a failure and put the key back into the pool: no certificate of it has left the service."""
    log.warning("issuance %s failed: %s", prepared.intent.serial_number, type(error).__name__)
    with environments.atomic():
        _finish(prepared.intent, IssuanceState.FAILED, now, error=str(error)[:1_000])
        key_pool.put_back(key=prepared.key, now=now)


def _finish(intent: Issuance, state: IssuanceState, now: datetime, *, error: str = "") -> None:
    intent.state, intent.finished_at, intent.error = state, now, error
    sql.update(intent, "state", "finished_at", "error")


def _announce(certificate: Certificate, old: Certificate | None, actor: Actor, now: datetime) -> None:
    auditlog.record(
        tenant_id=certificate.tenant_id,
        action=AuditAction.CERTIFICATE_RENEWED if old else AuditAction.CERTIFICATE_ISSUED,
        affected_id=certificate.id,
        description=f"Certificate {certificate.serial_number} issued",
        metadata={
            "agent_id": str(certificate.agent_id),
            "serial_number": certificate.serial_number,
            "expires_at": certificate.expires_at.isoformat(),
            **({"replaces": old.serial_number} if old else {}),
        },
        actor=actor,
        now=now,
    )
    dates = {"issued_at": certificate.issued_at, "expires_at": certificate.expires_at}
    announced = {"certificate_id": certificate.id, **dates}
    publish_webhook(certificate, EventName.CERTIFICATE_ISSUED, announced, now)
