"""Routes of gateways, and the scope violations that were put on record."""

from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from agents.risk import BANDS
from compliance.core.identifiers import new_id, parse_id
from delegation.jose.tokens import MAX_NAME_LENGTH
from gateway.errors import RouteNotFound
from tenancy.models import Tenant


class GatewayRouteQuerySet(models.QuerySet["GatewayRoute"]):
    def for_tenant(self, tenant_id: UUID) -> "GatewayRouteQuerySet":
        return self.filter(tenant_id=tenant_id)

    def locked(self) -> "GatewayRouteQuerySet":
        return self.select_for_update(of=("self",))

    def find(self, route_id: Any) -> "GatewayRoute":
        """Return the route with an id from a client; raises `RouteNotFound`, also if malformed."""
        route = self.filter(id=parse_id(str(route_id))).first()
        if route is None:
            raise RouteNotFound()
        return route


MAX_ACTION_LENGTH = 256
MAX_ROUTE_NAME = 63


class GatewayCredential(models.TextChoices):
    """Credentials of clients: a certificate's serial number proves nothing, a DPoP proof shows its key."""

    SERIAL = "serial", "serial number"
    BEARER = "bearer", "bearer token"
    DPOP = "dpop", "bound token"


class GatewayRoot(models.TextChoices):
    """Assurance a chain's root must have."""

    ANY = "any"
    VERIFIED = "verified"


class GatewayAgents(models.TextChoices):
    """Whose agents may pass: the tenant's own, or any tenant's."""

    OWN = "own"
    ANY = "any"


class GatewayRoute(models.Model):
    """The demands on one way through a tenant's gateway.

    `action` None: the gateway names it in each request. `audience`: what a token's `aud` must be; None: only
    tokens without one pass. `highest_band`: the highest risk band that passes. `uncertified_agents`: a token
    suffices whose agents are pending, were never certified or state no scope.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="gateway_routes")
    name = models.CharField(max_length=MAX_ROUTE_NAME)
    credentials = ArrayField(models.CharField(max_length=8, choices=GatewayCredential.choices))
    action = models.CharField(max_length=MAX_ACTION_LENGTH, null=True)  # noqa: DJ001  (null in the API)
    audience = models.CharField(max_length=MAX_NAME_LENGTH, null=True)  # noqa: DJ001
    highest_band = models.CharField(max_length=8, choices=[(band, band) for band in BANDS], default="high")
    root = models.CharField(max_length=16, choices=GatewayRoot.choices, default=GatewayRoot.ANY)
    agents = models.CharField(max_length=8, choices=GatewayAgents.choices, default=GatewayAgents.OWN)
    nonce_required = models.BooleanField(default=False)
    uncertified_agents = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = GatewayRouteQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            UniqueConstraint(fields=["tenant", "name"], name="gateway_route_name_once"),
            CheckConstraint(
                condition=Q(credentials__contained_by=GatewayCredential.values) & Q(credentials__len__gt=0),
                name="gateway_credentials_known",
            ),
            CheckConstraint(condition=Q(highest_band__in=BANDS), name="gateway_band_known"),
            CheckConstraint(condition=Q(root__in=GatewayRoot.values), name="gateway_root_known"),
            CheckConstraint(condition=Q(agents__in=GatewayAgents.values), name="gateway_agents_known"),
            CheckConstraint(
                condition=Q(root="any") | ~Q(credentials__contains=["serial"]),
                name="gateway_serial_verifies_no_root",
            ),
            CheckConstraint(
                condition=Q(nonce_required=False) | Q(credentials__contains=["dpop"]),
                name="gateway_nonce_needs_proofs",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class GatewayViolation(models.Model):
    """The last record of a scope violation; `digest` names whose it was, and where (`violations`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    digest = models.CharField(max_length=64, unique=True)
    recorded_at = models.DateTimeField()

    class Meta:
        ordering = ["-recorded_at", "-id"]
        indexes = [Index(fields=["recorded_at"], name="gateway_violation_age")]

    def __str__(self) -> str:
        return self.digest
