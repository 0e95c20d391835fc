"""Reads of the review inbox."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Count, Exists, F, Min, OuterRef, Q

if TYPE_CHECKING:
    from events.inbox.models import AgentQueue, InboxComment, OpenEvent  # noqa: F401


@dataclass(frozen=True)
class Group:
    """An agent's events that wait: how many of each band, and since when the oldest does."""

    agent_id: UUID
    high: int
    medium: int
    oldest_at: datetime

    @property
    def total(self) -> int:
        return self.high + self.medium


class OpenEventQuerySet(models.QuerySet["OpenEvent"]):
    """Events of the current environment that wait for a verdict; their ids are in the order of receipt."""

    def for_tenant(self, tenant_id: UUID) -> "OpenEventQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_tenants(self, tenant_ids: Collection[UUID] | None) -> "OpenEventQuerySet":
        """Events of these tenants; None means of all."""
        return self if tenant_ids is None else self.filter(tenant_id__in=tenant_ids)

    def of_agent(self, agent_id: UUID) -> "OpenEventQuerySet":
        return self.filter(agent_id=agent_id)

    def in_band(self, band: str | None) -> "OpenEventQuerySet":
        return self.filter(risk_band=band) if band else self

    def of_agents(self, agents: models.QuerySet[Any]) -> "OpenEventQuerySet":
        """Events of these agents, or of the agents of these queues."""
        return self.filter(_has_agent_in(agents))

    def except_agents(self, agents: models.QuerySet[Any]) -> "OpenEventQuerySet":
        return self.filter(~_has_agent_in(agents))

    def counts(self) -> tuple[int, int]:
        """Return how many high and how many medium events wait."""
        by_band = dict(self.order_by().values_list("risk_band").annotate(waiting=Count("*")))
        return by_band.get("high", 0), by_band.get("medium", 0)

    def groups(self, *, offset: int, most: int) -> list[Group]:
        """Return the agents whose events wait, those with the oldest event first."""
        grouped = (
            self.order_by()
            .values("agent_id")
            .annotate(
                high=Count("risk_band", filter=Q(risk_band="high")),
                medium=Count("risk_band", filter=Q(risk_band="medium")),
                oldest_at=Min("received_at"),
            )
            .order_by("oldest_at", "agent_id")
        )
        return [Group(**found) for found in grouped[offset : offset + most]]


def _has_agent_in(agents: models.QuerySet[Any]) -> Exists:
    """The condition that an event's agent is among these; tenants, by which tables divide, are compared."""
    return Exists(agents.order_by().filter(pk=OuterRef("agent_id"), tenant_id=OuterRef("tenant_id")))


class AgentQueueQuerySet(models.QuerySet["AgentQueue"]):
    def assigned_to(self, actor_id: str) -> "AgentQueueQuerySet":
        return self.filter(assignee=actor_id)

    def assigned(self) -> "AgentQueueQuerySet":
        return self.filter(assignee__isnull=False)

    def snoozed(self, now: datetime) -> "AgentQueueQuerySet":
        """Return the agents whose events wait for later, unless a high-risk event arrived since."""
        is_woken = Q(agent__last_high_risk_at__gt=F("snoozed_at"))
        return self.filter(snoozed_until__gt=now).exclude(is_woken)


class InboxCommentQuerySet(models.QuerySet["InboxComment"]):
    def for_tenant(self, tenant_id: UUID) -> "InboxCommentQuerySet":
        return self.filter(tenant_id=tenant_id)

    def of_agent(self, agent_id: UUID) -> "InboxCommentQuerySet":
        return self.filter(agent_id=agent_id).order_by("-created_at", "-id")
