"""Issue and renew certificates, and settle issuances that a crash left between intent and certificate.

Issuing commits the intent, then builds, lints, signs and announces under the agent's lock. What may take long
(a key generation) happens before the lock, and every check is repeated under it. A crash at any point leaves
either a certificate or an unfinished `Issuance`.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings

from agents import services as agents
from agents.models import MOST_DAYS, Agent, AgentStatus
from agents.risk import band_of
from auditlog.vocabulary import Actor, AuditAction
from certificates import errors
from certificates.issuing import key_pool
from certificates.models import (
    Certificate,
    CertificateAuthority,
    CertificateStatus,
    Issuance,
    IssuanceState,
    WrappedAgentKey,
)
from certificates.pki import MAX_LIFETIME
from certificates.pki.identity_extension import IdentityClaims
from certificates.pki.lint import LintError, leaf_findings, sign_linted
from certificates.pki.names import certificate_base_url
from certificates.pki.serials import format_serial, new_serial, shard_of
from certificates.pki.x509 import (
    CertificateProfile,
    CertifiedAgent,
    LeafExpectation,
    Validity,
    leaf_builder,
    read_claims,
)
from certificates.services import announce, mark_expired, record, supersede_from
from compliance.api.rate_limits import refusal
from compliance.core import environments
from compliance.core.errors import InvalidState, ServiceError
from compliance.keys.base import KeyNotFound, KeyRef, KeyStorage
from compliance.keys.registry import backend_for, rsa_private_key
from compliance.stores.sweeps import each
from webhooks.vocabulary import EventName

log = logging.getLogger(__name__)

UNFINISHED_AFTER: Final = timedelta(minutes=10)
"""Longer than any request: the time limits of HSM and database end it before."""
BATCH: Final = 100
RENEWAL_PAUSE: Final = timedelta(seconds=60)
OWNER_REQUIRED: Final = (
    "The tenant certifies only agents with an owner: set `owner` with PATCH /v1/agents/{id}"
)
CERTIFIABLE: Final = (AgentStatus.PENDING, AgentStatus.ACTIVE)


Prepared = tuple[CertificateAuthority, Issuance, KeyRef]
"""An issuance before the agent is locked: the CA, the committed intent and the key."""


def issue(*, tenant_id: UUID, agent_id: Any, actor: Actor, now: datetime) -> Certificate:
    """Certify an agent; raises `AgentNotFound`, `CannotCertify`, `AlreadyCertified`, `KeysTaken`."""
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    _check_certifiable(agent)
    if Certificate.objects.for_tenant(tenant_id).of_agent(agent.id).active(now).exists():
        raise errors.AlreadyCertified()
    return _issue_locked(_prepare(agent, now), agent, actor, now)


def renew(
    *,
    tenant_id: UUID,
    certificate_id: Any,
    overlap: timedelta = timedelta(0),
    adjust: Callable[[Agent], Agent] | None = None,
    actor: Actor,
    now: datetime,
) -> Certificate:
    """Supersede a certificate by one with a new key, for the agent's profile of today.

    The old one stays valid for the `overlap`; one that still overlaps with it ends at once. `adjust` changes
    the locked agent first, in the same transaction. Raises: `RenewedRecently`, and `KeysTaken` as `issue`.
    """
    old = Certificate.objects.for_tenant(tenant_id).select_related("agent").find(certificate_id)
    _check_renewable(old, old.agent, now)
    _check_pause(old.agent, now)
    prepared = _prepare(old.agent, now)
    return _issue_locked(prepared, old.agent, actor, now, old=old, overlap=overlap, adjust=adjust)


def renew_of_agent(
    *, tenant_id: UUID, agent_id: Any, overlap: timedelta = timedelta(0), actor: Actor, now: datetime
) -> Certificate:
    """`renew` for the agent's active certificate; raises `AgentNotFound` and `InvalidState` besides."""
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    _check_status(agent)
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None:
        raise InvalidState("Agent has no active certificate")
    return renew(tenant_id=tenant_id, certificate_id=certificate.id, overlap=overlap, actor=actor, now=now)


def _prepare(agent: Agent, now: datetime) -> Prepared:
    """Commit the intent to issue, with a key of the pool or a new one."""
    # No key is taken without a CA.
    CertificateAuthority.objects.issuing_at(now)
    intent = Issuance(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        serial_number=format_serial(new_serial(environments.current())),
        created_at=now,
    )
    key = key_pool.take_for(intent)
    if key is None:
        key = key_pool.generate_for(agent.tenant_id, now=now)
        intent.key_uri = key.uri
        intent.save(force_insert=True)
    # Read only now: the CA may have been rotated during the seconds that a key generation takes.
    return CertificateAuthority.objects.issuing_at(now), intent, key


def _issue_locked(
    prepared: Prepared,
    agent: Agent,
    actor: Actor,
    now: datetime,
    *,
    old: Certificate | None = None,
    overlap: timedelta = timedelta(0),
    adjust: Callable[[Agent], Agent] | None = None,
) -> Certificate:
    authority, intent, key = prepared
    try:
        with environments.atomic():
            own = Certificate.objects.for_tenant(agent.tenant_id)
            agent = Agent.objects.for_tenant(agent.tenant_id).locked().find(agent.id)
            (_check_status if old else _check_certifiable)(agent)
            for held in own.filter(agent=agent, status="active").order_by("id").locked():
                # Expired certificates count as active for the constraints until they are marked.
                if held.status_at(now) == CertificateStatus.EXPIRED:
                    mark_expired(held, now)
                elif old is None:
                    raise errors.AlreadyCertified()
                elif held.id != old.id:
                    supersede_from(held, now, actor=actor, now=now)
            if old is not None:
                old = own.locked().find(old.id)
                _check_renewable(old, agent, now)
            if adjust is not None:
                agent = adjust(agent)
            certificate = _certified(agent, authority, intent, key, now)
            replaced = {}
            if old is not None:  # beyond the new one's end the old one would keep the agent from a third
                supersede_from(old, min(now + overlap, certificate.expires_at), actor=actor, now=now)
                replaced["replaces"] = old.serial_number
                if old.superseded_at and not old.revoked_at:
                    replaced["valid_until"] = old.superseded_at.isoformat()
            certificate.save(force_insert=True)
            _finish(intent, IssuanceState.COMPLETED, now)
            agents.activate(agent=agent, actor=actor, now=now)
            record(
                certificate,
                AuditAction.CERTIFICATE_RENEWED if old else AuditAction.CERTIFICATE_ISSUED,
                actor,
                now,
                verb="issued",
                expires_at=certificate.expires_at.isoformat(),
                **replaced,
            )
            announced = {
                "certificate_id": certificate.id,
                "issued_at": certificate.issued_at,
                "expires_at": certificate.expires_at,
            }
            announce(certificate, EventName.CERTIFICATE_ISSUED, announced, now)
    except (ServiceError, LintError) as error:
        # No certificate of the key has left the service, so it goes back into the pool.
        log.warning("issuance %s failed: %s", intent.serial_number, type(error).__name__)
        with environments.atomic():
            _finish(intent, IssuanceState.FAILED, now, error=str(error)[:1_000])
            key_pool.put_back(key=key, now=now)
        raise
    return certificate


def _check_certifiable(agent: Agent) -> None:
    _check_status(agent)
    if agent.owner_email is None and agent.tenant.owner_required:
        raise errors.CannotCertify(OWNER_REQUIRED)


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
    if certificate.superseded_at is not None:
        raise errors.AlreadySuperseded()


def _check_pause(agent: Agent, now: datetime) -> None:
    own = Certificate.objects.for_tenant(agent.tenant_id).of_agent(agent.id)
    newest = own.filter(issued_at__gt=now - RENEWAL_PAUSE).first()
    if newest is None:
        return
    replaced = own.filter(superseded_at__gte=newest.issued_at).exclude(revoked_at__lt=newest.issued_at)
    if replaced.exists():
        seconds = math.ceil((newest.issued_at + RENEWAL_PAUSE - now).total_seconds())
        raise errors.RenewedRecently(headers=refusal(1, seconds, now=now).headers())


def _certified(
    agent: Agent, authority: CertificateAuthority, intent: Issuance, key: KeyRef, now: datetime
) -> Certificate:
    """Build, lint and sign under the agent's lock: the one place that calls the HSM under a lock."""
    serial = int(intent.serial_number, 16)
    shard = shard_of(serial, authority.crl_shards)
    issuer = authority.as_issuer.for_shard(shard)
    profile = CertificateProfile(settings.OID_ARC)
    expected = LeafExpectation(certified_agent(agent), key.public_key, serial, issuer, profile)
    is_high = band_of(agent.risk_score) == "high"
    lifetime = settings.HIGH_RISK_CERTIFICATE_VALIDITY if is_high else settings.CERTIFICATE_VALIDITY
    lifetime = min(lifetime, timedelta(days=agent.validity_days or MOST_DAYS))
    within = Validity.of(issuer.certificate)
    validity = Validity.lasting(min(lifetime, MAX_LIFETIME), now=now, within=within)
    builder = leaf_builder(expected, validity=validity)
    judge = partial(leaf_findings, expected=expected)
    signed = sign_linted(builder, rsa_private_key(authority.key_uri), issuer, judge)
    return Certificate(
        tenant_id=agent.tenant_id,
        agent=agent,
        authority=authority,
        serial_number=intent.serial_number,
        kms_key_arn=key.uri,
        key_storage=key.storage.value,
        certificate_pem=signed.public_bytes(Encoding.PEM).decode("ascii"),
        claims=asdict(read_claims(signed, profile)),
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
    resolver_url = f"{certificate_base_url(settings.BASE_URL)}/1.0/identifiers/{agent.did}"
    return CertifiedAgent(agent.id, agent.name, resolver_url, claims)


def _finish(intent: Issuance, state: IssuanceState, now: datetime, *, error: str = "") -> None:
    intent.state, intent.finished_at, intent.error = state, now, error
    intent.save(update_fields=["state", "finished_at", "error"])


def settle(*, now: datetime) -> int:
    """Mark old unfinished issuances as failed and put their keys back into the pool; return how many."""
    stale = Issuance.objects.filter(state=IssuanceState.STARTED, created_at__lt=now - UNFINISHED_AFTER)
    found = list(stale.order_by("created_at", "id").values_list("id", "tenant_id")[:BATCH])
    return each(found, lambda row: _settle(*row, now))


def _settle(issuance_id: UUID, tenant_id: UUID, now: datetime) -> bool:
    with environments.atomic():
        own = Issuance.objects.filter(tenant_id=tenant_id)
        rows = own.select_for_update(of=("self",), skip_locked=True)
        intent = rows.filter(id=issuance_id, state=IssuanceState.STARTED).first()
        if intent is None:
            return False
        log.warning("issuance %s was never finished", intent.serial_number)
        if not Certificate.objects.filter(kms_key_arn=intent.key_uri).exists():
            wrapped = WrappedAgentKey.objects.filter(key_uri=intent.key_uri).first()
            try:
                if wrapped is not None:
                    key = KeyRef(intent.key_uri, bytes(wrapped.spki), KeyStorage.WRAPPED)
                else:
                    backend = backend_for(environments.current())
                    key = KeyRef.of(intent.key_uri, backend.public_key(intent.key_uri))
                key_pool.put_back(key=key, now=now)
            except KeyNotFound:
                log.warning("the key of an unfinished issuance is not in its token")
        _finish(intent, IssuanceState.FAILED, now, error="never finished")
    return True
