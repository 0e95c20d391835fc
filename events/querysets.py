"""Reads of behavioural events."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery

from compliance.core.identifiers import first_id_at
from compliance.stores.rows import TenantRows
from events.errors import EventNotFound

if TYPE_CHECKING:
    from events.models import BehaviorEvent, EventReview, Simulation


LEASE = timedelta(minutes=5)  # time after which another worker may take over a step of a simulation
MADE_WITHIN = timedelta(minutes=1)  # most time between an event's receipt and the making of its id


class BehaviorEventQuerySet(TenantRows["BehaviorEvent"]):
    """Events of the current environment.

    `since` and `received_before` filter by ids as well, so that only the partitions of that time are read.
    """

    missing = EventNotFound

    def of_agent(self, agent_id: UUID | str | None) -> "BehaviorEventQuerySet":
        return self.filter(agent_id=agent_id) if agent_id else self

    def high_risk(self) -> "BehaviorEventQuerySet":
        return self.filter(risk_band="high")

    def id_after(self, count: int, *, low: UUID, high: UUID) -> UUID | None:
        """Return the id that follows the first `count` ones from `low` up to `high`, if any."""
        found = self.filter(id__gte=low, id__lt=high).order_by("id").values_list("id", flat=True)
        return found[count : count + 1].first()

    def since(self, moment: datetime) -> "BehaviorEventQuerySet":
        return self.filter(received_at__gte=moment, id__gte=first_id_at(moment - MADE_WITHIN))

    def received_before(self, moment: datetime) -> "BehaviorEventQuerySet":
        return self.filter(received_at__lt=moment, id__lt=first_id_at(moment + MADE_WITHIN))

    def latest_received(self, count: int) -> "BehaviorEventQuerySet":
        return self.order_by("-id")[:count]

    def with_verdict(self, reviews: "EventReviewQuerySet") -> "BehaviorEventQuerySet":
        """Annotate each event with `said`, the verdict of `reviews` that counts, if any."""
        of_it = reviews.filter(event_id=OuterRef("pk"), tenant_id=OuterRef("tenant_id")).order_by("-number")
        return self.annotate(said=Subquery(of_it.values("verdict")[:1]))

    def strikes(self, at: datetime, reinstated_at: datetime | None) -> "BehaviorEventQuerySet":
        """High events of an agent that count at a moment: of the window, since its last reinstatement."""
        high = self.high_risk().since(at - settings.HIGH_RISK_WINDOW)
        return high.filter(received_at__gt=reinstated_at) if reinstated_at else high

    def agents_over(self, strikes: int) -> list[tuple[UUID, UUID]]:
        """Return (tenant, agent) of agents with at least so many of these events since reinstatement."""
        counted = (
            self.filter(Q(agent__reinstated_at=None) | Q(received_at__gt=F("agent__reinstated_at")))
            .order_by()
            .values_list("tenant_id", "agent_id")
            .annotate(strikes=Count("id"))
            .filter(strikes__gte=strikes)
        )
        return [(tenant_id, agent_id) for tenant_id, agent_id, _ in counted]


class EventReviewQuerySet(models.QuerySet["EventReview"]):
    def of_tenants(self, tenant_ids: Collection[UUID] | None) -> "EventReviewQuerySet":
        """Reviews of these tenants; None means of all."""
        return self if tenant_ids is None else self.filter(tenant_id__in=tenant_ids)

    def of_event(self, event_id: UUID) -> "EventReviewQuerySet":
        return self.filter(event_id=event_id).order_by("-number")

    def that_counts(self, event_id: UUID) -> "EventReview | None":
        """Return the last review of the event, if any."""
        return self.of_event(event_id).first()


class SimulationQuerySet(models.QuerySet["Simulation"]):
    def unfinished(self) -> "SimulationQuerySet":
        return self.filter(status__in=["pending", "running"])

    def claimable(self, now: datetime) -> "SimulationQuerySet":
        """Return the simulations that wait for a step, or whose worker exceeded the lease."""
        return self.unfinished().filter(Q(leased_until=None) | Q(leased_until__lt=now))

    def claim(self, simulation_id: Any, now: datetime) -> "Simulation | None":
        """Claim the next step of a simulation for this worker; return None if it is not claimable."""
        taken = (
            self.claimable(now)
            .filter(id=simulation_id)
            .update(
                status="running",
                leased_until=now + LEASE,
                claims=F("claims") + 1,
                attempts=F("attempts") + 1,
            )
        )
        return self.get(id=simulation_id) if taken else None
