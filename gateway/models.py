"""Routes of gateways, when people are asked before an act, and the scope violations that are on record."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from agents.models import DEFAULT_TTL, LONGEST_TTL, MAX_ACTION_NAME, MOST_ALWAYS, SHORTEST_TTL, AskFrom
from agents.risk import BANDS
from compliance.core.errors import NotFound
from compliance.core.identifiers import new_id
from compliance.stores.rows import TenantRows
from delegation.jose.tokens import MAX_NAME_LENGTH
from tenancy.models import Tenant


class RouteNotFound(NotFound):
    message = "Gateway route not found"


class GatewayRouteQuerySet(TenantRows["GatewayRoute"]):
    missing = RouteNotFound


MAX_ROUTE_NAME = 63


class GatewayCredential(models.TextChoices):
    """Credentials of clients: a certificate's serial number proves nothing, a DPoP proof shows its key.

    A signature of the request (RFC 9421) is by the agent's own key.
    """

    SERIAL = "serial", "serial number"
    BEARER = "bearer", "bearer token"
    DPOP = "dpop", "bound token"
    HTTPSIG = "httpsig", "signed request"

    @property
    def is_proven(self) -> bool:
        """Return whether it shows that the client has a key."""
        return self in (GatewayCredential.DPOP, GatewayCredential.HTTPSIG)


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
    action = models.CharField(max_length=MAX_ACTION_NAME, null=True)  # noqa: DJ001  (null in the API)
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
                condition=Q(root="any") | ~Q(credentials__contains=["httpsig"]),
                name="gateway_signature_verifies_no_root",
            ),
            CheckConstraint(
                condition=Q(nonce_required=False) | Q(credentials__contains=["dpop"]),
                name="gateway_nonce_needs_proofs",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AskPolicy(models.Model):
    """When a person is asked before an agent acts: of one gateway route, one agent, or a whole tenant.

    `always_ask`: names of actions for which a person is asked whatever their score. `ttl_seconds`: how long
    an approval waits for its decision and its use.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="ask_policies")
    agent_id = models.UUIDField(null=True)
    route = models.ForeignKey(GatewayRoute, on_delete=models.CASCADE, null=True, related_name="ask_policies")
    ask_from = models.CharField(max_length=8, choices=AskFrom.choices, default=AskFrom.NEVER)
    always_ask = ArrayField(models.CharField(max_length=MAX_ACTION_NAME), default=list)
    ttl_seconds = models.PositiveIntegerField(default=DEFAULT_TTL)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = TenantRows["AskPolicy"].as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        verbose_name_plural = "ask policies"
        constraints = [
            UniqueConstraint(
                fields=["tenant", "agent_id", "route"],
                nulls_distinct=False,
                name="ask_policy_once",
            ),
            CheckConstraint(condition=Q(agent_id=None) | Q(route=None), name="ask_policy_of_one"),
            CheckConstraint(condition=Q(ask_from__in=AskFrom.values), name="ask_policy_from_known"),
            CheckConstraint(condition=Q(always_ask__len__lte=MOST_ALWAYS), name="ask_policy_few_names"),
            CheckConstraint(
                condition=Q(ttl_seconds__gte=SHORTEST_TTL, ttl_seconds__lte=LONGEST_TTL),
                name="ask_policy_ttl_sane",
            ),
        ]

    def __str__(self) -> str:
        return self.applies_to

    @property
    def applies_to(self) -> str:
        """What the API calls the policy: `tenant`, `agent:<id>` or `route:<id>`."""
        if self.agent_id is not None:
            return f"agent:{self.agent_id}"
        return "tenant" if self.route_id is None else f"route:{self.route_id}"

    def asks(self, action: str, band: str) -> bool:
        """Return whether a person is asked before an act of this name whose score is in this band."""
        if action in self.always_ask:
            return True
        return self.ask_from != AskFrom.NEVER and BANDS.index(band) >= BANDS.index(self.ask_from)


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
