"""Agents: identity, permitted actions, status and rolling risk."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Count, F, Index, Q, UniqueConstraint

from agents.querysets import AgentQuerySet, BlueprintQuerySet, BlueprintRenewalQuerySet
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id, parse_id
from compliance.stores.tenant_keys import TenantForeignKey, TenantRow
from tenancy.alarm_budgets import LEAST_BUDGET, MOST_BUDGET
from tenancy.jobs import AgentOfJob, TenantJob
from tenancy.models import Enforcement, Tenant

MAX_EMAIL_LENGTH = 254
MOST_DAYS = 365  # of a certificate's life
OWNER_ROLES = ("owner", "backup_owner")
MAX_ACTION_NAME = 256
MOST_UNRENEWED = 100
"""Agents that a renewal shows of those it skipped, or failed at."""
MOST_ALWAYS = 100
DEFAULT_TTL, SHORTEST_TTL, LONGEST_TTL = 900, 60, 86_400
"""How long an approval may wait for its decision and its use, in seconds."""


class AskFrom(models.TextChoices):
    """The lowest band of a score from which a person is asked."""

    NEVER = "never"
    MEDIUM = "medium"
    HIGH = "high"


class AgentStatus(models.TextChoices):
    PENDING = "pending"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    RETIRED = "retired"


def declared_actions(metadata: Mapping[str, Any] | None) -> list[str] | None:
    """The scope that an agent's metadata states, None for no scope; [] if it has only the older `scopes`."""
    stated = metadata or {}
    if stated.get("permitted_actions") is not None:
        return list(stated["permitted_actions"])
    return [] if "scopes" in stated else None


@dataclass(frozen=True)
class AgentDid:
    """An agent's decentralized identifier, `did:<service>:<live|test>:<agent uuid>`, as `str()` gives it."""

    environment: Environment
    agent_id: UUID

    def __str__(self) -> str:
        return f"did:{settings.SERVICE_NAME}:{self.environment.value}:{self.agent_id}"


def parse_did(text: str) -> AgentDid | None:
    """Return the DID that `text` spells; None for anything else."""
    for environment in Environment:
        prefix = f"did:{settings.SERVICE_NAME}:{environment.value}:"
        agent_id = parse_id(text.removeprefix(prefix))
        if agent_id is not None and text == f"{prefix}{agent_id}":
            return AgentDid(environment, agent_id)
    return None


def _person(role: str) -> property:
    """The person, `{name, email}`, whom two columns hold; None: nobody."""
    columns = {"name": f"{role}_name", "email": f"{role}_email"}

    def read(row: Any) -> dict[str, str] | None:
        person = {part: getattr(row, column) for part, column in columns.items()}
        return None if None in person.values() else person

    def write(row: Any, person: Mapping[str, str] | None) -> None:
        for part, column in columns.items():
            setattr(row, column, person and person[part])

    return property(read, write)


class ProfileRow(TenantRow):
    """A row that states what an agent is and may do, and who answers for it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=255)
    model = models.CharField(max_length=255, null=True)  # noqa: DJ001  (null and "" differ in the API)
    version = models.CharField(max_length=255, null=True)  # noqa: DJ001
    financial_scope = models.JSONField(null=True)
    validity_days = models.PositiveSmallIntegerField(null=True)
    alarm_budget = models.FloatField(null=True)
    owner_name = models.CharField(max_length=255, null=True)  # noqa: DJ001
    owner_email = models.CharField(max_length=MAX_EMAIL_LENGTH, null=True)  # noqa: DJ001
    backup_owner_name = models.CharField(max_length=255, null=True)  # noqa: DJ001
    backup_owner_email = models.CharField(max_length=MAX_EMAIL_LENGTH, null=True)  # noqa: DJ001
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    owner = _person("owner")
    backup_owner = _person("backup_owner")

    class Meta:
        abstract = True
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name


def _of_profile(table: str) -> list[models.BaseConstraint]:
    """Return the constraints of a `ProfileRow`; a person has both a name and an address."""
    conditions = {
        "name_present": ~Q(name=""),
        "model_hash_present": ~Q(model_hash=""),
        "alarm_budget_in_range": Q(alarm_budget__gte=LEAST_BUDGET, alarm_budget__lte=MOST_BUDGET),
        "validity_in_range": Q(validity_days__gte=1, validity_days__lte=MOST_DAYS),
    }
    for role in OWNER_ROLES:
        columns = (f"{role}_name", f"{role}_email")
        somebody = Q(**{f"{column}__isnull": False for column in columns})
        conditions[f"{role}_whole"] = Q(**dict.fromkeys(columns)) | somebody
    return [CheckConstraint(condition=each, name=f"{table}_{name}") for name, each in conditions.items()]


class Agent(ProfileRow):
    """A registered AI agent. `risk_score` is its rolling score over 30 days, written by `events`.

    `stopped_by_strikes`: how many stopped it; None unless the service did. `reinstated_at`: when that was
    last undone; earlier strikes do not count. `enforcement` or `alarm_budget` None: the tenant's counts.
    `would_have_stopped_at`: the last strike that found the agent over the risk threshold while it was only
    observed. `agent_card`: what its public A2A card is made of; without it there is none. `owner_*`: the
    person who answers for it; certificates do not name people. `dormant_at`: when the service found it active
    without an event for too long; None once it reports again, or changes status. `own_fields`: what it states
    itself of that which it could have from its blueprint. `validity_days`: the longest life of its
    certificates.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="agents")
    description = models.TextField(null=True)  # noqa: DJ001
    model_hash = models.CharField(max_length=512)
    status = models.CharField(max_length=16, choices=AgentStatus.choices, default=AgentStatus.PENDING)
    status_reason = models.CharField(max_length=500, blank=True)
    status_changed_at = models.DateTimeField()
    stopped_by_strikes = models.PositiveIntegerField(null=True)
    reinstated_at = models.DateTimeField(null=True)
    enforcement = models.CharField(max_length=16, choices=Enforcement.choices, null=True)  # noqa: DJ001
    inbox_address = models.CharField(max_length=320, null=True)  # noqa: DJ001
    metadata = models.JSONField(null=True)
    agent_card = models.JSONField(null=True)
    blueprint_id = models.UUIDField(null=True)
    own_fields = ArrayField(models.CharField(max_length=32), default=list, db_default=[])
    risk_score = models.FloatField(default=0.0)
    risk_updated_at = models.DateTimeField(null=True)
    last_high_risk_at = models.DateTimeField(null=True)
    would_have_stopped_at = models.DateTimeField(null=True)
    dormant_at = models.DateTimeField(null=True)

    objects = AgentQuerySet.as_manager()

    class Meta(ProfileRow.Meta):
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="agents_tenant_time"),
            models.Index(fields=["tenant", "model_hash", "-created_at", "-id"], name="agents_model_hash"),
            models.Index(
                fields=["tenant", "-created_at", "-id"],
                condition=Q(dormant_at__isnull=False),
                name="agents_dormant",
            ),
            models.Index(
                fields=["tenant", "blueprint_id", "-created_at", "-id"],
                condition=Q(blueprint_id__isnull=False),
                name="agents_of_blueprint",
            ),
        ]
        constraints = [
            CheckConstraint(condition=Q(status__in=AgentStatus.values), name="agents_status_known"),
            CheckConstraint(condition=Q(enforcement__in=Enforcement.values), name="agents_enforcement_known"),
            CheckConstraint(condition=Q(risk_score__gte=0, risk_score__lte=1), name="agents_risk_in_range"),
            *_of_profile("agents"),
        ]

    @property
    def is_stopped(self) -> bool:
        return self.status in (AgentStatus.SUSPENDED, AgentStatus.RETIRED)

    @property
    def permitted_actions(self) -> list[str] | None:
        """The scope in the metadata, for the certificate."""
        return declared_actions(self.metadata)

    @permitted_actions.setter
    def permitted_actions(self, names: list[str] | None) -> None:
        self.metadata = {**(self.metadata or {}), "permitted_actions": names}

    @property
    def effective_enforcement(self) -> str:
        """The mode that counts: the agent's own, else its tenant's. `with_tenant()` reads both at once."""
        return self.enforcement or self.tenant.enforcement

    @property
    def effective_alarm_budget(self) -> float:
        """The budget that counts: the agent's own, else its tenant's."""
        return self.tenant.alarm_budget if self.alarm_budget is None else self.alarm_budget

    @property
    def is_observed(self) -> bool:
        """Return whether the service only puts on record that it would have stopped the agent."""
        return self.effective_enforcement == Enforcement.OBSERVE

    def certified_profile(self) -> dict[str, Any]:
        """Return the fields of the profile that a certificate states."""
        names = ("name", "model", "model_hash", "version", "permitted_actions")
        return {name: getattr(self, name) for name in names}

    @property
    def did(self) -> str:
        """The agent's decentralized identifier."""
        is_live = self._state.db in (None, "default")
        return str(AgentDid(Environment.LIVE if is_live else Environment.TEST, self.id))


class OwnerMail(models.Model):
    """A message to the owners of an agent that waits to be sent; `sealed` holds it, encrypted."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    sealed = models.BinaryField()
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["next_attempt_at", "id"]

    def __str__(self) -> str:
        return f"mail {self.id}"


class Blueprint(ProfileRow):
    """What agents of a kind have in common; None: it says nothing of that.

    Agents hold copies of what they inherit, and may state narrower limits. `ask_policy`: when a person is
    asked before their acts, read as it is now.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="blueprints")
    model_hash = models.CharField(max_length=512, null=True)  # noqa: DJ001
    permitted_actions = models.JSONField(null=True)
    ask_policy = models.JSONField(null=True)

    objects = BlueprintQuerySet.as_manager()

    class Meta(ProfileRow.Meta):
        indexes = [Index(fields=["tenant", "-created_at", "-id"], name="blueprints_tenant_time")]
        constraints = _of_profile("blueprints")


class BlueprintRenewal(TenantJob):
    """Picked agents of a blueprint that are brought up to date; `certificates` works on them.

    `matched` counts its rows. `worked_at`: when something was last done of them.
    """

    blueprint = models.ForeignKey(Blueprint, on_delete=models.PROTECT, related_name="renewals")
    matched = models.PositiveIntegerField()
    worked_at = models.DateTimeField()

    objects = BlueprintRenewalQuerySet.as_manager()

    class Meta(TenantJob.Meta):
        indexes = [
            Index(fields=["tenant", "-started_at", "-id"], name="blueprints_renewals"),
            Index(fields=["worked_at"], condition=Q(ended_at=None), name="blueprints_renewals_running"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")), name="blueprints_renewal_ends"
            )
        ]

    def __str__(self) -> str:
        return f"{self.matched} agents of {self.blueprint}"

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many agents have each outcome."""
        found = self.rows.order_by().values_list("outcome").annotate(Count("id"))
        return {**dict.fromkeys(RenewalOutcome.values, 0), **dict(found)}

    @property
    def unrenewed(self) -> models.QuerySet["RenewedAgent"]:
        """The first of the agents that were skipped, or at which the renewal failed."""
        return self.rows.exclude(error="")[:MOST_UNRENEWED]


class RenewalOutcome(models.TextChoices):
    """What a renewal did to an agent; `updated`: its certificate states nothing of what changed."""

    PENDING = "pending"
    RENEWED = "renewed"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"


class RenewedAgent(AgentOfJob):
    """An agent of a renewal; `error` says why it was skipped, or failed."""

    id = models.BigAutoField(primary_key=True)
    renewal = TenantForeignKey(BlueprintRenewal, on_delete=models.PROTECT, related_name="agents")
    outcome = models.CharField(max_length=16, choices=RenewalOutcome.choices, default=RenewalOutcome.PENDING)
    error = models.CharField(max_length=255, blank=True)

    class Meta(AgentOfJob.Meta):
        indexes = [
            Index(fields=["renewal", "id"], condition=Q(outcome="pending"), name="blueprints_agents_due")
        ]
        constraints = [
            UniqueConstraint(fields=["renewal", "agent_id"], name="blueprints_agent_once"),
            CheckConstraint(condition=Q(outcome__in=RenewalOutcome.values), name="blueprints_outcome_known"),
        ]
