"""The steps of an agent's trail: its events, their reviews, and the audit entries about it.

Delegations and interventions are audit entries. Each source gives at most a page of rows, by an index,
however much the agent has done.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate
from compliance.core import environments
from compliance.core.identifiers import first_id_at, moment_of, parse_id
from events.models import BehaviorEvent, EventReview

PAGE: Final = 50
MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, order=True)
class Place:
    """The place of a step in the trail: its time, and its id among the steps of that time."""

    moment: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.moment.isoformat()}_{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Place | None":
        """Return the place that `text` spells; None for nonsense."""
        moment, _, row_id = text.partition("_")
        parsed = parse_id(row_id)
        try:
            found = datetime.fromisoformat(moment)
            is_known = 1970 <= found.year < 9999 and found.utcoffset() == timedelta(0)
        except ValueError:
            return None
        return cls(found, parsed) if parsed and is_known else None


@dataclass(frozen=True)
class TrailStep:
    place: Place
    row: BehaviorEvent | EventReview | AuditEntry


@dataclass(frozen=True)
class TrailPage:
    """Steps, the newest first; `older` is the place that the next page begins before, if there is one."""

    steps: list[TrailStep]
    older: Place | None


def trail_of(agent: Agent, *, before: Place | None = None, size: int = PAGE) -> TrailPage:
    """Return the newest steps of the agent's trail, of those before a place if one is given."""
    sources: list[tuple[QuerySet[Any], str]] = [
        (EventReview.objects.filter(tenant_id=agent.tenant_id, agent=agent), "reviewed_at"),
        (_entries(agent, [agent.id]), "created_at"),
        (_entries(agent, Certificate.objects.of_agent(agent.id).values_list("id", flat=True)), "created_at"),
    ]
    found = list(_events(agent, before, size + 1))
    for rows, moment in sources:
        found += _newest(rows, moment, before, size + 1)
    found.sort(key=lambda step: step.place, reverse=True)
    steps = found[:size]
    # A signed message is an event as well.
    shown = [step for step in steps if getattr(step.row, "event_type", None) != AuditAction.MESSAGE_SIGNED]
    return TrailPage(shown, steps[-1].place if len(found) > size else None)


def _entries(agent: Agent, affected: Iterable[UUID]) -> QuerySet[AuditEntry]:
    entries = AuditEntry.objects.using(environments.current().auditor_alias).for_tenant(agent.tenant_id)
    return entries.filter(affected_id__in=[str(row_id) for row_id in affected])


def _newest(rows: QuerySet[Any], moment: str, before: Place | None, count: int) -> Iterator[TrailStep]:
    if before is not None:
        is_tied = Q(**{moment: before.moment, "id__lt": before.id})
        rows = rows.filter(
            Q(**{f"{moment}__lt": before.moment}) | is_tied, **{f"{moment}__lte": before.moment}
        )
    for row in rows.order_by(f"-{moment}", "-id")[:count]:
        yield TrailStep(Place(getattr(row, moment), row.id), row)


def _events(agent: Agent, before: Place | None, count: int) -> Iterator[TrailStep]:
    """Yield events in the order of their ids, as the index has them; the time of an id is its place."""
    events = BehaviorEvent.objects.of_agent(agent.id)
    if before is not None:
        # The bound between the ids of events that come before the place and those that do not.
        start, end = first_id_at(before.moment), first_id_at(before.moment + MILLISECOND)
        bound = min(max(start, before.id), end) if moment_of(start) == before.moment else end
        events = events.filter(id__lt=bound)
    for event in events.order_by("-id")[:count]:
        yield TrailStep(Place(moment_of(event.id), event.id), event)
