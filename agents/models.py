"""Agents: identity, permitted actions, status and rolling risk."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q

from agents.querysets import AgentQuerySet
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id, parse_id
from compliance.stores.tenant_keys import TenantRow
from tenancy.alarm_budgets import LEAST_BUDGET, MOST_BUDGET
from tenancy.models import Enforcement, Tenant


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


class Agent(TenantRow):
    """A registered AI agent. `risk_score` is its rolling score over 30 days, written by `events`.

    `stopped_by_strikes`: how many stopped it; None unless the service did. `reinstated_at`: when that was
    last undone; earlier strikes do not count. `enforcement` or `alarm_budget` None: the tenant's counts.
    `would_have_stopped_at`: the last strike that found the agent over the risk threshold while it was only
    observed. `agent_card`: what its public A2A card is made of; without it there is none.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="agents")
    name = models.CharField(max_length=255)
    description = models.TextField(null=True)  # noqa: DJ001  (null and "" differ in the API)
    model = models.CharField(max_length=255, null=True)  # noqa: DJ001
    model_hash = models.CharField(max_length=512)
    version = models.CharField(max_length=255, null=True)  # noqa: DJ001
    status = models.CharField(max_length=16, choices=AgentStatus.choices, default=AgentStatus.PENDING)
    status_reason = models.CharField(max_length=500, blank=True)
    status_changed_at = models.DateTimeField()
    stopped_by_strikes = models.PositiveIntegerField(null=True)
    reinstated_at = models.DateTimeField(null=True)
    enforcement = models.CharField(max_length=16, choices=Enforcement.choices, null=True)  # noqa: DJ001
    alarm_budget = models.FloatField(null=True)
    inbox_address = models.CharField(max_length=320, null=True)  # noqa: DJ001
    metadata = models.JSONField(null=True)
    financial_scope = models.JSONField(null=True)
    agent_card = models.JSONField(null=True)
    risk_score = models.FloatField(default=0.0)
    risk_updated_at = models.DateTimeField(null=True)
    last_high_risk_at = models.DateTimeField(null=True)
    would_have_stopped_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["tenant", "-created_at", "-id"], name="agents_tenant_time")]
        constraints = [
            CheckConstraint(condition=Q(status__in=AgentStatus.values), name="agents_status_known"),
            CheckConstraint(condition=Q(enforcement__in=Enforcement.values), name="agents_enforcement_known"),
            CheckConstraint(condition=~Q(name=""), name="agents_name_present"),
            CheckConstraint(condition=~Q(model_hash=""), name="agents_model_hash_present"),
            CheckConstraint(condition=Q(risk_score__gte=0, risk_score__lte=1), name="agents_risk_in_range"),
            CheckConstraint(
                condition=Q(alarm_budget__gte=LEAST_BUDGET, alarm_budget__lte=MOST_BUDGET),
                name="agents_alarm_budget_in_range",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def permitted_actions(self) -> list[str] | None:
        """The scope in the metadata, for the certificate."""
        return declared_actions(self.metadata)

    @property
    def effective_enforcement(self) -> str:
        """The mode that counts: the agent's own, else its tenant's. `with_mode()` reads both in one query."""
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
