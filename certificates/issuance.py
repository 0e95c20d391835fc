"""Issuing: the intent is committed first, the certificate linted, then signed, then told.

What can fail slowly (a key generation) happens before the agent is locked; what must be decided again is
decided again under the lock. A crash at any point leaves a certificate or an unfinished `Issuance`.
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
from certificates import key_pool
from certificates.authorities import base_url, issuer_info, profile, signing_key
from certificates.errors import (
    AlreadyCertified,
    AlreadyRevoked,
    CannotCertify,
    CertificateExpired,
    NothingToRenew,
)
from certificates.lint import MAX_LIFETIME, LeafExpectation, LintError, sign_linted
from certificates.models import (
    Certificate,
    CertificateAuthority,
    CertificateStatus,
    Issuance,
    IssuanceState,
)
from certificates.querysets import issuing_among
from certificates.revocation import mark_expired, revoke_locked
from certificates.serials import format_serial, new_serial, shard_of
from certificates.x509 import AgentIdentity, IssuerInfo, PrivateKey, Validity, leaf_builder, read_claims
from compliance import environments, sql
from compliance.errors import ServiceError
from compliance.identifiers import parse_id
from compliance.keys import KeyRef
from compliance.tenancy.models import Tenant
from webhooks import services as webhooks
from webhooks.vocabulary import EventName

log = logging.getLogger(__name__)

CERTIFIABLE: Final = (AgentStatus.PENDING, AgentStatus.ACTIVE)


@dataclass(frozen=True)
class Prepared:
    """What an issuance needs before its agent is locked."""

    authority: CertificateAuthority
    intent: Issuance
    key: KeyRef


def issue(*, tenant_id: UUID, agent_id: Any, actor: Actor, now: datetime) -> Certificate:
    """Certify an agent; a pending one becomes active.

    Raises `AgentNotFound`, `CannotCertify`, `AlreadyCertified`, and 503 errors of the HSM.
    """
    agent, authority = _look(tenant_id, agent_id, now)
    prepared = _prepare(agent, authority, now)
    try:
        with environments.atomic():
            agent, held = _locked(tenant_id, agent.id)
            _check_status(agent)
            _make_room(held, now)
            certificate = _certified(agent, prepared, now)
            with sql.pipelined():
                _store(certificate, agent, prepared.intent, actor, now)
                _tell(certificate, AuditAction.CERTIFICATE_ISSUED, actor, now)
    except (ServiceError, LintError) as error:
        _abandon(prepared, error, now)
        raise
    return certificate


def renew(*, tenant_id: UUID, certificate_id: Any, actor: Actor, now: datetime) -> Certificate:
    """A successor with a new key and serial for the agent's profile of today; the old one is superseded.

    Raises `CertificateNotFound`, `AlreadyRevoked`, `CertificateExpired`, `CannotCertify`, and 503 errors.
    """
    old = Certificate.objects.for_tenant(tenant_id).select_related("agent").find(certificate_id)
    _check_renewable(old, old.agent, now)
    prepared = _prepare(old.agent, CertificateAuthority.objects.issuing_at(now), now)
    try:
        with environments.atomic():
            agent, _ = _locked(tenant_id, old.agent_id)
            old = Certificate.objects.locked().find(old.id)
            _check_renewable(old, agent, now)
            revoke_locked(
                certificate=old, reason="superseded", code=ReasonFlags.superseded, actor=actor, now=now
            )
            certificate = _certified(agent, prepared, now)
            with sql.pipelined():
                _store(certificate, agent, prepared.intent, actor, now)
                _tell(certificate, AuditAction.CERTIFICATE_RENEWED, actor, now, replaces=old.serial_number)
    except (ServiceError, LintError) as error:
        _abandon(prepared, error, now)
        raise
    return certificate


def renew_of_agent(*, tenant_id: UUID, agent_id: Any, actor: Actor, now: datetime) -> Certificate:
    """`renew` for the agent's active certificate; raises `AgentNotFound` and `NothingToRenew` besides."""
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    _check_status(agent)
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None:
        raise NothingToRenew()
    return renew(tenant_id=tenant_id, certificate_id=certificate.id, actor=actor, now=now)


def _check_status(agent: Agent) -> None:
    if agent.status not in CERTIFIABLE:
        raise CannotCertify(f"Cannot certify a {agent.status} agent")


def _look(tenant_id: UUID, agent_id: Any, now: datetime) -> tuple[Agent, CertificateAuthority]:
    """The agent, which may be certified, and the CA to do it; decided again where it counts."""
    parsed = agent_id if isinstance(agent_id, UUID) else parse_id(agent_id)
    agents_found, active, issuing = sql.read_together(
        (Agent, "WHERE id = %s AND tenant_id = %s", [parsed, tenant_id]),
        (
            Certificate,
            "WHERE agent_id = %s AND status = 'active' AND expires_at >= %s LIMIT 1",
            [parsed, now],
        ),
        (CertificateAuthority, "WHERE role = 'issuing' AND retired_at IS NULL", []),
    )
    if not agents_found:
        raise AgentNotFound()
    _check_status(agents_found[0])
    if active:
        raise AlreadyCertified()
    return agents_found[0], issuing_among(issuing, now)


def _check_renewable(certificate: Certificate, agent: Agent, now: datetime) -> None:
    _check_status(agent)
    status = certificate.status_at(now)
    if status == CertificateStatus.REVOKED:
        raise AlreadyRevoked()
    if status == CertificateStatus.EXPIRED:
        raise CertificateExpired()


def _prepare(agent: Agent, authority: CertificateAuthority, now: datetime) -> Prepared:
    """A key of the pool, else a new one, and the committed intent to certify it under a serial number."""
    intent = Issuance(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        serial_number=format_serial(new_serial(environments.current())),
        created_at=now,
    )
    key = key_pool.take_for(intent)
    if key is not None:
        return Prepared(authority, intent, key)
    key = key_pool.generate()
    intent.key_uri = key.uri
    sql.insert(intent)
    # That may have taken seconds, in which another CA may have taken over.
    return Prepared(CertificateAuthority.objects.issuing_at(now), intent, key)


def _locked(tenant_id: UUID, agent_id: UUID) -> tuple[Agent, list[Certificate]]:
    """The agent under its lock, and what it holds that is not marked as ended, locked as well.

    The certificates are read after the lock is had, so that what another issuance committed is among them.
    """
    found, held, tenants = sql.read_together(
        (Agent, "WHERE id = %s AND tenant_id = %s FOR NO KEY UPDATE", [agent_id, tenant_id]),
        (Certificate, "WHERE agent_id = %s AND status = 'active' ORDER BY id FOR NO KEY UPDATE", [agent_id]),
        (Tenant, "WHERE id = %s", [tenant_id]),
    )
    if not found:
        raise AgentNotFound()
    agent: Agent = found[0]
    agent.tenant = tenants[0]
    return agent, held


def _make_room(held: list[Certificate], now: datetime) -> None:
    """A certificate past its end counts as active for the constraint until it is marked; another stays."""
    for certificate in held:
        if certificate.status_at(now) == CertificateStatus.ACTIVE:
            raise AlreadyCertified()
        mark_expired(certificate=certificate, now=now)


def _certified(agent: Agent, prepared: Prepared, now: datetime) -> Certificate:
    """Build, lint and sign under the agent's lock (the one place where the HSM is called under a lock)."""
    authority, intent, key = prepared.authority, prepared.intent, prepared.key
    serial = int(intent.serial_number, 16)
    shard = shard_of(serial, authority.crl_shards)
    signed = _sign(agent, issuer_info(authority).for_shard(shard), signing_key(authority), serial, key, now)
    claims = asdict(read_claims(signed, profile()))
    return Certificate(
        tenant_id=agent.tenant_id,
        agent=agent,
        authority=authority,
        serial_number=intent.serial_number,
        kms_key_arn=key.uri,
        certificate_pem=signed.public_bytes(Encoding.PEM).decode("ascii"),
        claims=claims,
        crl_shard=shard,
        not_before=signed.not_valid_before_utc,
        issued_at=now,
        expires_at=signed.not_valid_after_utc,
    )


def _store(certificate: Certificate, agent: Agent, intent: Issuance, actor: Actor, now: datetime) -> None:
    """The certificate, the end of its issuance and the agent's activation: they commit together."""
    sql.insert(certificate)
    intent.state, intent.finished_at = IssuanceState.COMPLETED, now
    sql.update(intent, "state", "finished_at")
    agents.activate(agent=agent, actor=actor, now=now)


def _sign(
    agent: Agent, issuer: IssuerInfo, issuer_key: PrivateKey, serial: int, key: KeyRef, now: datetime
) -> x509.Certificate:
    expected = LeafExpectation(identity_of(agent), key.public_key, serial, issuer, profile())
    builder = leaf_builder(
        identity=expected.identity,
        public_key=key.public_key,
        serial=serial,
        validity=Validity.lasting(lifetime_of(agent), now=now, within=Validity.of(issuer.certificate)),
        issuer=issuer,
        profile=expected.profile,
    )
    return sign_linted(builder, key=issuer_key, expected=expected)


def identity_of(agent: Agent) -> AgentIdentity:
    """What an agent's certificate says of it today."""
    actions = agent.permitted_actions
    return AgentIdentity(
        agent_id=agent.id,
        name=agent.name,
        operator=agent.tenant.name,
        did=agent.did,
        environment=environments.current(),
        resolver_url=f"{base_url()}/1.0/identifiers/{agent.did}",
        model=agent.model,
        model_version=agent.version,
        model_hash=agent.model_hash,
        permitted_actions=None if actions is None else tuple(actions),
    )


def lifetime_of(agent: Agent) -> timedelta:
    """How long a certificate lasts: shorter, by setting, for an agent whose rolling risk is high."""
    is_high = band_of(agent.risk_score) == "high"
    wanted = settings.HIGH_RISK_CERTIFICATE_VALIDITY if is_high else settings.CERTIFICATE_VALIDITY
    return min(wanted, MAX_LIFETIME)


def _abandon(prepared: Prepared, error: Exception, now: datetime) -> None:
    """Record the failure; the key goes back to the pool, since no certificate of it has left the service."""
    intent = prepared.intent
    log.warning("issuance %s failed: %s", intent.serial_number, type(error).__name__)
    with environments.atomic():
        intent.state, intent.finished_at, intent.error = IssuanceState.FAILED, now, str(error)[:1_000]
        intent.save(update_fields=["state", "finished_at", "error"])
        key_pool.put_back(key=prepared.key, now=now)


def _tell(
    certificate: Certificate, action: AuditAction, actor: Actor, now: datetime, **metadata: Any
) -> None:
    auditlog.record(
        tenant_id=certificate.tenant_id,
        action=action,
        affected_id=certificate.id,
        description=f"Certificate {certificate.serial_number} issued",
        metadata={
            "agent_id": str(certificate.agent_id),
            "serial_number": certificate.serial_number,
            "expires_at": certificate.expires_at.isoformat(),
            **metadata,
        },
        actor=actor,
        now=now,
    )
    webhooks.publish(
        tenant_id=certificate.tenant_id,
        name=EventName.CERTIFICATE_ISSUED,
        data={
            "certificate_id": certificate.id,
            "agent_id": certificate.agent_id,
            "serial_number": certificate.serial_number,
            "issued_at": certificate.issued_at,
            "expires_at": certificate.expires_at,
        },
        now=now,
    )
