"""Events that wait for a verdict, the state of each agent's queue, and comments."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Count, Exists, F, Min, OuterRef, Q

from agents.models import Agent
from auditlog.vocabulary import ActorType
from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnlyRow
from compliance.stores.tenant_keys import TenantForeignKey, TenantOneToOneField, TenantRow
from events.models import UNCHECKED, ActionType, RiskBand
from tenancy.models import Tenant


class OpenEventQuerySet(models.QuerySet["OpenEvent"]):
    """Events of the current environment that wait for a verdict; their ids are in the order of receipt."""

    def for_tenant(self, tenant_id: UUID) -> "OpenEventQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_agents(self, agents: models.QuerySet[Any]) -> "OpenEventQuerySet":
        """Events of these agents, or of the agents of these queues."""
        return self.filter(_has_agent_in(agents))

    def except_agents(self, agents: models.QuerySet[Any]) -> "OpenEventQuerySet":
        return self.filter(~_has_agent_in(agents))

    def counts(self) -> tuple[int, int]:
        """Return how many high and how many medium events wait."""
        by_band = dict(self.order_by().values_list("risk_band").annotate(waiting=Count("*")))
        return by_band.get("high", 0), by_band.get("medium", 0)

    def groups(self) -> models.QuerySet[Any]:
        """Count each agent's events by band; the agents with the oldest event come first."""
        return (
            self.order_by()
            .values("agent_id")
            .annotate(
                high=Count("risk_band", filter=Q(risk_band="high")),
                medium=Count("risk_band", filter=Q(risk_band="medium")),
                oldest_at=Min("received_at"),
            )
            .order_by("oldest_at", "agent_id")
        )


def _has_agent_in(agents: models.QuerySet[Any]) -> Exists:
    """The condition that an event's agent is among these; tenants, by which tables divide, are compared."""
    return Exists(agents.order_by().filter(pk=OuterRef("agent_id"), tenant_id=OuterRef("tenant_id")))


class AgentQueueQuerySet(models.QuerySet["AgentQueue"]):
    def snoozed(self, now: datetime) -> "AgentQueueQuerySet":
        """Return the agents whose events wait for later, unless a high-risk event arrived since."""
        is_woken = Q(agent__last_high_risk_at__gt=F("snoozed_at"))
        return self.filter(snoozed_until__gt=now).exclude(is_woken)


class OpenEvent(models.Model):
    """A medium or high event without a verdict; the row is written with the event and goes with the verdict.

    It repeats what a list shows of the event, so that the inbox reads no partition of the events' table.
    """

    event_id = models.UUIDField(primary_key=True, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="open_events", **UNCHECKED)
    action_type = models.CharField(max_length=32, choices=ActionType.choices)
    risk_band = models.CharField(max_length=8, choices=RiskBand.choices)
    risk_score = models.FloatField()
    received_at = models.DateTimeField()

    objects = OpenEventQuerySet.as_manager()

    class Meta:
        verbose_name = "event to review"
        verbose_name_plural = "review inbox"
        ordering = ["event_id"]
        indexes = [
            models.Index(fields=["agent", "event_id"], name="inbox_open_of_agent"),
            # Groups and counts are read from this index alone.
            models.Index(fields=["tenant", "risk_band", "agent", "received_at"], name="inbox_open_groups"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(risk_band__in=["medium", "high"]), name="inbox_open_not_low")
        ]

    def __str__(self) -> str:
        return f"{self.action_type.replace('_', ' ')} {self.risk_score:.2f}"


class AgentQueue(TenantRow):
    """The reviewer of an agent's events, and the end of their snooze.

    `assignee`: the actor id of a person. A high-risk event received after `snoozed_at` ends the snooze.
    """

    agent = TenantOneToOneField(
        Agent,
        primary_key=True,
        on_delete=models.PROTECT,
        related_name="inbox_queue",
        db_constraint=False,
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    assignee = models.CharField(max_length=255, null=True)  # noqa: DJ001  (null: nobody)
    snoozed_at = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()

    objects = AgentQueueQuerySet.as_manager()

    class Meta:
        ordering = ["agent_id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(snoozed_at=None, snoozed_until=None)
                | Q(snoozed_at__isnull=False, snoozed_until__gt=models.F("snoozed_at")),
                name="inbox_snooze_ends",
            )
        ]

    def __str__(self) -> str:
        return str(self.agent_id)


class CommentKind(models.TextChoices):
    """A remark, or why a person stopped the agent from the inbox."""

    COMMENT = "comment"
    SUSPENDED = "suspended"
    REVOKED = "revoked"


class InboxComment(AppendOnlyRow):
    """A person's note on an agent in the inbox, of the event that was open then; append-only."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    event_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=16, choices=CommentKind.choices, default=CommentKind.COMMENT)
    text = models.CharField(max_length=1000)
    case_number = models.CharField(max_length=64, null=True)  # noqa: DJ001  (null: none)
    actor_type = models.CharField(max_length=16, choices=ActorType.choices)
    actor_id = models.CharField(max_length=255)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "comment"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="inbox_comment_list"),
            models.Index(fields=["agent", "-created_at", "-id"], name="inbox_comment_of_agent"),
            models.Index(
                fields=["tenant", "case_number"],
                condition=Q(case_number__isnull=False),
                name="inbox_comment_case",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=CommentKind.values), name="inbox_comment_kind_known"),
            models.CheckConstraint(condition=~Q(text=""), name="inbox_comment_not_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.created_at:%Y-%m-%d %H:%M:%S}"
