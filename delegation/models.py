"""The keys that sign delegation tokens, and what was issued; no token's or credential's text is stored."""

from datetime import datetime
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint

from agents.models import Agent
from certificates.models import SERIAL_DIGITS
from compliance.core.identifiers import new_id
from compliance.stores.tenant_keys import TenantForeignKey, TenantRow
from delegation.jose.tokens import (
    MAX_NAME_LENGTH,
    MAX_SCOPE_LENGTH,
    MAX_SUBJECT_LENGTH,
    Delegator,
    RootAssurance,
    SubjectIdentifier,
)
from delegation.lifecycle import KeyStatus
from delegation.querysets import ExpiringQuerySet, IssuedTokenQuerySet, TokenKeyQuerySet
from tenancy.models import Tenant


class TokenKey(models.Model):
    """A P-256 key in the environment's HSM token. `active_from` is when it begins to sign."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kid = models.CharField(max_length=64, unique=True)
    uri = models.CharField(max_length=2000)
    public_jwk = models.JSONField()
    status = models.CharField(max_length=16, choices=KeyStatus.choices)
    published_at = models.DateTimeField()
    active_from = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    destroyed_at = models.DateTimeField(null=True)

    objects = TokenKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-published_at", "-id"]
        constraints = [
            UniqueConstraint(
                fields=["status"], condition=Q(status=KeyStatus.ACTIVE), name="delegation_one_active_key"
            ),
            UniqueConstraint(
                fields=["status"], condition=Q(status=KeyStatus.PUBLISHED), name="delegation_one_next_key"
            ),
            CheckConstraint(condition=Q(status__in=KeyStatus.values), name="delegation_key_status_known"),
            CheckConstraint(
                condition=Q(status__in=[KeyStatus.PUBLISHED, KeyStatus.ACTIVE], retired_at=None)
                | Q(status__in=[KeyStatus.RETIRED, KeyStatus.WITHDRAWN], retired_at__isnull=False),
                name="delegation_key_retired_at_with_status",
            ),
        ]

    def __str__(self) -> str:
        return self.kid


class IssuedToken(TenantRow):
    """An issued delegation token, by its `jti`; deleted some time after it has expired.

    `parent_token_id` and `ancestor_ids` (oldest first) are tokens of this table. `lineage_agent_ids` and
    `lineage_serials` name every agent behind the token, its own last, each with the certificate it then held.
    A revocation is written on the revoked token only: what came of it is found by `ancestor_ids`.
    Verification reads no row.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="issued_tokens", db_index=False)
    certificate_serial = models.CharField(max_length=SERIAL_DIGITS, null=True)  # noqa: DJ001
    parent_token_id = models.UUIDField(null=True)
    ancestor_ids = ArrayField(models.UUIDField())
    lineage_agent_ids = ArrayField(models.UUIDField())
    lineage_serials = ArrayField(models.CharField(max_length=SERIAL_DIGITS, null=True))
    chain = models.JSONField()
    principal = models.CharField(max_length=MAX_NAME_LENGTH)
    scope = models.CharField(max_length=MAX_SCOPE_LENGTH, blank=True)
    audience = models.CharField(max_length=MAX_NAME_LENGTH, null=True)  # noqa: DJ001
    root_issuer = models.CharField(max_length=MAX_SUBJECT_LENGTH, null=True)  # noqa: DJ001
    root_subject = models.CharField(max_length=MAX_SUBJECT_LENGTH, null=True)  # noqa: DJ001
    bound_to = models.CharField(max_length=43, null=True)  # noqa: DJ001
    status_index = models.BigIntegerField(unique=True)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=255, null=True)  # noqa: DJ001
    revocation_reason = models.CharField(max_length=500, null=True)  # noqa: DJ001

    objects = IssuedTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-issued_at", "-id"]
        indexes = [
            Index(fields=["tenant", "-issued_at", "-id"], name="delegation_issued_of_tenant"),
            Index(fields=["agent", "-issued_at", "-id"], name="delegation_issued_of_agent"),
            Index(fields=["expires_at"], name="delegation_issued_end"),
            GinIndex(
                fields=["ancestor_ids"],
                condition=Q(parent_token_id__isnull=False),
                name="delegation_issued_ancestors",
            ),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(revoked_at=None, revoked_by=None, revocation_reason=None)
                | Q(revoked_at__isnull=False, revoked_by__isnull=False, revocation_reason__isnull=False),
                name="delegation_revoked_says_when_who_and_why",
            ),
            CheckConstraint(
                condition=Q(root_issuer=None, root_subject=None)
                | Q(root_issuer__isnull=False, root_subject__isnull=False),
                name="delegation_root_issuer_with_subject",
            ),
            CheckConstraint(condition=Q(expires_at__gt=F("issued_at")), name="delegation_end_after_start"),
            CheckConstraint(condition=Q(status_index__gte=0), name="delegation_status_index_counts"),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def root_assurance(self) -> RootAssurance:
        return RootAssurance.VERIFIED if self.root_issuer else RootAssurance.ASSERTED

    @property
    def subject_identifier(self) -> SubjectIdentifier | None:
        return SubjectIdentifier(self.root_issuer, self.root_subject or "") if self.root_issuer else None

    @property
    def vouching_agent_id(self) -> UUID | None:
        """As `Delegation.vouching_agent_id`."""
        return self.lineage_agent_ids[0] if self.root_issuer else None

    @property
    def lineage(self) -> tuple[Delegator, ...]:
        """All issuers behind this token, oldest first, its own agent last."""
        return tuple(
            map(Delegator, self.lineage_agent_ids, [*self.ancestor_ids, self.id], self.lineage_serials)
        )

    def has_expired(self, now: datetime) -> bool:
        return now >= self.expires_at


class IssuedCredential(TenantRow):
    """The place in the status lists of an agent's credentials under a certificate; deleted after its end."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="+", db_index=False)
    certificate_serial = models.CharField(max_length=SERIAL_DIGITS, unique=True)
    status_index = models.BigIntegerField(unique=True)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    objects = ExpiringQuerySet.as_manager()

    class Meta:
        ordering = ["-issued_at", "-id"]
        indexes = [Index(fields=["expires_at"], name="delegation_credential_end")]
        constraints = [CheckConstraint(condition=Q(status_index__gte=0), name="delegation_credential_index")]

    def __str__(self) -> str:
        return self.certificate_serial
