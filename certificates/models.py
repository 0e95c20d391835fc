"""CAs, OCSP responders, certificates, holds, issuances, the key pool, lists and signed cards."""

from datetime import datetime
from typing import Final

from cryptography import x509
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint

from agents.models import Agent
from certificates import querysets
from certificates.pki.x509 import IssuerInfo
from compliance.core.identifiers import new_id
from compliance.keys.base import KeyStorage, WrapMechanism
from compliance.stores.tenant_keys import TenantForeignKey, TenantRow
from tenancy.models import Tenant

SERIAL_DIGITS = 40
MAX_URI_LENGTH = 2_000
STORAGES = [(storage.value, storage.value) for storage in KeyStorage]
MECHANISMS = [(mechanism.value, mechanism.value) for mechanism in WrapMechanism]


def storage_field() -> "models.CharField[str, str]":
    resident = KeyStorage.RESIDENT.value
    return models.CharField(max_length=16, choices=STORAGES, default=resident, db_default=resident)


class AuthorityRole(models.TextChoices):
    ROOT = "root"
    ISSUING = "issuing"


class AuthorityState(models.TextChoices):
    """Whether a CA issues, only signs revocation lists, or does nothing any more."""

    ACTIVE = "active"
    RETIRING = "retiring"
    RETIRED = "retired"
    EXPIRED = "expired"


class CertificateAuthority(models.Model):
    """A CA whose key is in the HSM. Its URLs and `crl_shards` never change: certificates carry them.

    `crl_shards` is the number of partial lists besides the full list. `crl_number` is the number of the last
    round of lists begun, `crl_completed` of the last one finished.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    role = models.CharField(max_length=16, choices=AuthorityRole.choices)
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    common_name = models.CharField(max_length=64)
    serial_number = models.CharField(max_length=SERIAL_DIGITS, unique=True)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    certificate_der = models.BinaryField()
    certificate_url = models.CharField(max_length=MAX_URI_LENGTH)
    crl_url = models.CharField(max_length=MAX_URI_LENGTH)
    ocsp_url = models.CharField(max_length=MAX_URI_LENGTH, blank=True)
    crl_shards = models.PositiveSmallIntegerField(default=0)
    crl_number = models.PositiveBigIntegerField(default=0)
    crl_completed = models.PositiveBigIntegerField(default=0)
    not_before = models.DateTimeField()
    not_after = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    objects = querysets.AuthorityQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "certificate authorities"
        ordering = ["-created_at", "-id"]
        constraints = [
            UniqueConstraint(
                fields=["role"], condition=Q(retired_at=None), name="certificates_one_ca_in_service"
            ),
            CheckConstraint(
                condition=Q(role="root", parent=None) | Q(role="issuing", parent__isnull=False),
                name="certificates_only_roots_have_no_parent",
            ),
        ]

    def __str__(self) -> str:
        return self.common_name

    @property
    def as_issuer(self) -> IssuerInfo:
        certificate = x509.load_der_x509_certificate(bytes(self.certificate_der))
        return IssuerInfo(certificate, self.certificate_url, self.crl_url, self.ocsp_url)

    def state_at(self, now: datetime) -> AuthorityState:
        """The state by the clock: a rotated CA signs lists until all that it issued has expired."""
        if now > self.not_after:
            return AuthorityState.EXPIRED
        if self.retired_at is None:
            return AuthorityState.ACTIVE
        signs = self.role == AuthorityRole.ROOT or now <= self.retired_at + querysets.LISTS_AFTER_RETIREMENT
        return AuthorityState.RETIRING if signs else AuthorityState.RETIRED


class OcspResponder(models.Model):
    """A key in the HSM that signs OCSP responses for one CA, and its short-lived certificate."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    authority = models.ForeignKey(
        CertificateAuthority, on_delete=models.PROTECT, related_name="ocsp_responders"
    )
    serial_number = models.CharField(max_length=SERIAL_DIGITS, unique=True)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    certificate_der = models.BinaryField()
    not_before = models.DateTimeField()
    not_after = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [Index(fields=["authority", "-created_at"], name="certificates_responder_of_ca")]

    def __str__(self) -> str:
        return self.serial_number


class CertificateStatus(models.TextChoices):
    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


def status_by_clock(status: str, expires_at: datetime, now: datetime) -> CertificateStatus:
    """The status of a certificate by the clock: expired after its end, even if the row is not marked yet."""
    if status == CertificateStatus.ACTIVE and now > expires_at:
        return CertificateStatus.EXPIRED
    return CertificateStatus(status)


class ValidityStatus(models.TextChoices):
    """The status of a certificate at a moment in the past, as known now."""

    NOT_YET_VALID = "not_yet_valid"
    VALID = "valid"
    REVOKED = "revoked"
    EXPIRED = "expired"


class Certificate(TenantRow):
    """An agent's certificate; `claims` copies its identity extension, so that reads need no parsing.

    While its agent is suspended it is on hold: revoked as `certificateHold`, until released or revoked for
    good. `crl_shard` is its CDP's, `crl_entry` its entry in DER; without a `first_crl_number` a revocation
    makes a round due. Renewed, it is superseded at `superseded_at`. `end_announced`: of the numbers of days
    before its end (1, 7, 30), the last announced.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="certificates")
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="certificates")
    authority = models.ForeignKey(CertificateAuthority, on_delete=models.PROTECT, related_name="certificates")
    serial_number = models.CharField(max_length=SERIAL_DIGITS, unique=True)
    kms_key_arn = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    key_storage = storage_field()
    certificate_pem = models.TextField()
    claims = models.JSONField()
    status = models.CharField(
        max_length=16, choices=CertificateStatus.choices, default=CertificateStatus.ACTIVE
    )
    not_before = models.DateTimeField()
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    revocation_reason = models.CharField(max_length=500, null=True)  # noqa: DJ001  (null in the API)
    revocation_code = models.CharField(max_length=32, blank=True)
    superseded_at = models.DateTimeField(null=True)
    end_announced = models.PositiveSmallIntegerField(null=True)
    crl_shard = models.PositiveSmallIntegerField(null=True)
    crl_entry = models.BinaryField(null=True)
    first_crl_number = models.PositiveBigIntegerField(null=True)

    objects = querysets.CertificateQuerySet.as_manager()

    class Meta:
        ordering = ["-issued_at", "-id"]
        indexes = [
            Index(fields=["tenant", "-issued_at", "-id"], name="certificates_tenant_time"),
            Index(fields=["agent", "-issued_at", "-id"], name="certificates_agent_time"),
            Index(fields=["tenant", "expires_at"], name="certificates_tenant_end"),
            Index(fields=["expires_at"], condition=Q(status="active"), name="certificates_due"),
            Index(
                fields=["superseded_at"],
                condition=Q(superseded_at__isnull=False)
                & (Q(status="active") | Q(revocation_code="certificateHold")),
                name="certificates_overlapping",
            ),
            Index(
                fields=["authority", "expires_at"], condition=Q(status="revoked"), name="certificates_revoked"
            ),
            Index(
                fields=["authority"],
                condition=Q(status="revoked", first_crl_number=None),
                name="certificates_unpublished",
            ),
            Index(
                fields=["authority", "crl_shard"], condition=Q(status="revoked"), name="certificates_of_shard"
            ),
            Index(
                fields=["authority", "first_crl_number"],
                include=["expires_at", "crl_shard", "crl_entry"],
                condition=Q(status="revoked"),
                name="certificates_by_round",
            ),
        ]
        constraints = [
            UniqueConstraint(
                fields=["agent", "tenant"],
                condition=Q(status="active", superseded_at=None),
                name="certificates_one_current_of_an_agent",
            ),
            UniqueConstraint(
                fields=["agent", "tenant"],
                condition=Q(status="active", superseded_at__isnull=False),
                name="certificates_one_overlapping_of_an_agent",
            ),
            CheckConstraint(
                condition=Q(status__in=CertificateStatus.values), name="certificates_status_known"
            ),
            CheckConstraint(
                condition=Q(status="revoked", revoked_at__isnull=False, revocation_reason__isnull=False)
                | (~Q(status="revoked") & Q(revoked_at=None, revocation_reason=None)),
                name="certificates_revoked_says_when_and_why",
            ),
            CheckConstraint(
                condition=Q(status="revoked", crl_entry__isnull=False)
                | (~Q(status="revoked") & Q(crl_entry=None)),
                name="certificates_revoked_has_its_entry",
            ),
            CheckConstraint(condition=Q(expires_at__gt=F("issued_at")), name="certificates_end_after_start"),
        ]

    def __str__(self) -> str:
        return self.serial_number

    def status_at(self, now: datetime) -> CertificateStatus:
        return status_by_clock(self.status, self.expires_at, now)

    def is_on_hold(self, now: datetime) -> bool:
        """Return whether the certificate could be released; after its end a hold is final."""
        is_held = self.status == CertificateStatus.REVOKED and self.revocation_code == querysets.HOLD
        return is_held and now <= self.expires_at

    def validity_at(self, moment: datetime) -> ValidityStatus:
        """The status at a past moment by this row; `verification.validity_at` knows ended holds too."""
        if moment < self.not_before:
            return ValidityStatus.NOT_YET_VALID
        if self.revoked_at is not None and self.revoked_at <= moment:
            return ValidityStatus.REVOKED
        return ValidityStatus.EXPIRED if moment > self.expires_at else ValidityStatus.VALID


def certified_actions(agent: Agent, latest: Certificate | None) -> list[str] | None:
    """An agent's scope by its latest certificate, else its profile; None: not declared, []: nothing."""
    if latest is None:
        return agent.permitted_actions
    certified: list[str] | None = latest.claims["permitted_actions"]
    return certified


AGENT_AND_LATEST: Final = f"""{Agent._meta.db_table} AS agent LEFT JOIN LATERAL (
    SELECT id, serial_number, status, expires_at, claims FROM {Certificate._meta.db_table} AS certificate
    WHERE certificate.tenant_id = agent.tenant_id AND certificate.agent_id = agent.id
    ORDER BY issued_at DESC, id DESC LIMIT 1
) AS latest ON true"""  # noqa: S608  (only names of tables are put into the text)
"""What SQL by hand reads of agents: `agent`, and as `latest` its latest certificate in any state, if any."""


class EndedHold(models.Model):
    """A hold that has ended by release or by revocation for good.

    `hold_crl_number` is the first round that listed the hold, if any; `end_crl_number` the first that shows
    its end, without which a listed hold makes a round due. `crl_entry` is the entry, in DER, by which deltas
    remove a released certificate (`removeFromCRL`, RFC 5280 §5.3.1).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    certificate = models.ForeignKey(Certificate, on_delete=models.PROTECT, related_name="ended_holds")
    authority = models.ForeignKey(CertificateAuthority, on_delete=models.PROTECT, related_name="+")
    held_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    crl_entry = models.BinaryField()
    hold_crl_number = models.PositiveBigIntegerField(null=True)
    end_crl_number = models.PositiveBigIntegerField(null=True)

    class Meta:
        ordering = ["-ended_at", "-id"]
        indexes = [
            Index(fields=["authority", "end_crl_number"], name="certificates_hold_ended_in"),
            Index(
                fields=["authority"],
                condition=Q(hold_crl_number__isnull=False, end_crl_number=None),
                name="certificates_hold_end_unlisted",
            ),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(ended_at__gte=F("held_at")), name="certificates_hold_ends_after_start"
            )
        ]

    def __str__(self) -> str:
        return f"{self.certificate_id} until {self.ended_at:%Y-%m-%d %H:%M}"


class IssuanceState(models.TextChoices):
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"


class Issuance(models.Model):
    """The intent to issue, committed before anything is signed, from which a crash is cleaned up."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    serial_number = models.CharField(max_length=SERIAL_DIGITS, unique=True)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH)
    state = models.CharField(max_length=16, choices=IssuanceState.choices, default=IssuanceState.STARTED)
    error = models.CharField(max_length=1_000, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            Index(fields=["created_at"], condition=~Q(state="completed"), name="certificates_unfinished")
        ]
        constraints = [
            CheckConstraint(
                condition=Q(state__in=IssuanceState.values), name="certificates_issuance_state_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.serial_number} {self.state}"


class PooledKey(models.Model):
    """A key made in advance for a future agent; taking it deletes the row."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    spki = models.BinaryField()
    storage = storage_field()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]


class WrappingKey(models.Model):
    """An AES key in the HSM. The one that is not retired wraps; retired ones only unwrap, until destroyed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    mechanism = models.CharField(max_length=32, choices=MECHANISMS)
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            UniqueConstraint(models.Value(1), condition=Q(retired_at=None), name="certificates_one_key_wraps")
        ]


class WrappedAgentKey(models.Model):
    """The private half of an agent's key, encrypted, under a `key_uri` that names no object of the token."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    spki = models.BinaryField()
    wrapping_key = models.ForeignKey(WrappingKey, on_delete=models.PROTECT, related_name="wrapped_keys")
    blob = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [Index(fields=["wrapping_key", "id"], name="certificates_wrapped_by")]


class RevocationList(models.Model):
    """A published revocation list; `scope` is a `ListScope.name`, `base_number` a delta's base."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    authority = models.ForeignKey(
        CertificateAuthority, on_delete=models.PROTECT, related_name="revocation_lists"
    )
    scope = models.CharField(max_length=16, default="full")
    number = models.PositiveBigIntegerField()
    base_number = models.PositiveBigIntegerField(null=True)
    this_update = models.DateTimeField()
    next_update = models.DateTimeField()
    entry_count = models.PositiveIntegerField()
    size = models.PositiveBigIntegerField(default=0)

    objects = querysets.RevocationListQuerySet.as_manager()

    class Meta:
        ordering = ["-this_update", "-id"]
        constraints = [
            UniqueConstraint(fields=["authority", "scope", "number"], name="certificates_list_number_unique")
        ]

    def __str__(self) -> str:
        return f"{self.authority_id} {self.scope} #{self.number}"

    @property
    def der(self) -> bytes:
        """The list in DER; empty once newer lists have replaced it."""
        return b"".join(bytes(body) for body in self.parts.values_list("body", flat=True))


class SignedCard(models.Model):
    """The signature, in base64url, of an agent's card; `digest` is the SHA-256 of what was signed."""

    agent = models.OneToOneField(Agent, primary_key=True, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    signature = models.CharField(max_length=1_024)
    signed_at = models.DateTimeField()

    class Meta:
        ordering = ["-signed_at", "agent_id"]


class RevocationListPart(models.Model):
    id = models.BigAutoField(primary_key=True)
    revocation_list = models.ForeignKey(RevocationList, on_delete=models.CASCADE, related_name="parts")
    position = models.PositiveIntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ["revocation_list_id", "position"]
        constraints = [
            UniqueConstraint(fields=["revocation_list", "position"], name="certificates_list_part_unique")
        ]
