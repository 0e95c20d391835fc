"""Issuers whose ID tokens a tenant trusts."""

from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from compliance.core.identifiers import new_id
from compliance.stores.rows import TenantRows
from delegation.issuers.errors import TrustedIssuerNotFound
from delegation.issuers.id_tokens import IssuerTrust
from delegation.jose.tokens import MAX_SUBJECT_LENGTH
from tenancy.models import Tenant


class TrustedIssuerQuerySet(TenantRows["TrustedIssuer"]):
    missing = TrustedIssuerNotFound

    def active(self) -> "TrustedIssuerQuerySet":
        return self.filter(active=True)

    def newest_first(self) -> "TrustedIssuerQuerySet":
        return self.order_by("-created_at", "-id")


MAX_URL_LENGTH = 2048
MAX_NAME_LENGTH = 255
SHORTEST_AGE = timedelta(minutes=1)
LONGEST_AGE = timedelta(days=1)
DEFAULT_AGE = timedelta(hours=1)


class TrustedIssuer(models.Model):
    """An issuer by its exact `iss`, and what its ID tokens must be.

    Its keys are those in `jwks`; else those at `jwks_uri`; else where its discovery document says.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="trusted_issuers")
    issuer = models.CharField(max_length=MAX_SUBJECT_LENGTH)
    jwks_uri = models.CharField(max_length=MAX_URL_LENGTH, null=True)  # noqa: DJ001
    jwks = models.JSONField(null=True)
    audiences = ArrayField(models.CharField(max_length=MAX_NAME_LENGTH))
    algorithms = ArrayField(models.CharField(max_length=16))
    subject_claim = models.CharField(max_length=MAX_NAME_LENGTH)
    required_claims = models.JSONField(default=dict)
    max_age_seconds = models.PositiveIntegerField(
        validators=[
            MinValueValidator(int(SHORTEST_AGE.total_seconds())),
            MaxValueValidator(int(LONGEST_AGE.total_seconds())),
        ]
    )
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = TrustedIssuerQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            UniqueConstraint(fields=["tenant", "issuer"], name="issuers_one_of_a_tenant"),
            CheckConstraint(condition=~Q(issuer=""), name="issuers_issuer_present"),
            CheckConstraint(condition=~Q(audiences=[]), name="issuers_audiences_present"),
            CheckConstraint(condition=~Q(algorithms=[]), name="issuers_algorithms_present"),
            CheckConstraint(condition=~Q(subject_claim=""), name="issuers_subject_claim_present"),
            CheckConstraint(condition=Q(jwks=None) | Q(jwks_uri=None), name="issuers_one_source_of_keys"),
        ]

    def __str__(self) -> str:
        return self.issuer

    @property
    def trust(self) -> IssuerTrust:
        return IssuerTrust(
            issuer=self.issuer,
            audiences=frozenset(self.audiences),
            algorithms=frozenset(self.algorithms),
            subject_claim=self.subject_claim,
            required_claims=self.required_claims,
            max_age=timedelta(seconds=self.max_age_seconds),
        )
