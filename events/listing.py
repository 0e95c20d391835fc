"""The console's list of events: what finds rows by an index, however many events there are."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.utils import parse_datetime_str

from agents.models import Agent
from compliance.core.identifiers import parse_id
from events.models import BehaviorEvent, EventReview, RiskBand
from events.querysets import BehaviorEventQuerySet

NEWEST: Final = 100_000
"""Of so many of the newest events, a search reads sessions and chains: no index has them."""
MOST_NAMED: Final = 10_000
LATEST: Final = datetime(9000, 1, 1)  # noqa: DTZ001  (made aware with the moment)


def found(
    rows: BehaviorEventQuerySet, text: str, *, tenants: Collection[UUID] | None
) -> BehaviorEventQuerySet:
    """Return the events that a search finds: by ID, or by their agent's name.

    If that is nothing's ID and nobody's name: by chain, or by session, among the newest events.
    `tenants`: those whose rows may be found; None means all.
    """
    agents = Agent.objects.all() if tenants is None else Agent.objects.filter(tenant_id__in=tenants)
    identifier = parse_id(text)
    if identifier is None:
        # A list, not a subquery: PostgreSQL plans by how many they are, and how busy.
        newest = agents.filter(name__icontains=text).order_by("-pk")
        named = list(newest.values_list("pk", flat=True)[:MOST_NAMED])
        return rows.filter(agent_id__in=named) if named else _newest(rows).filter(session_id=text)
    if BehaviorEvent.objects.filter(pk=identifier).exists():
        return rows.filter(pk=identifier)
    if agents.filter(pk=identifier).exists():
        return rows.filter(agent_id=identifier)
    return _newest(rows).filter(chain_id=identifier)


def _newest(rows: BehaviorEventQuerySet) -> BehaviorEventQuerySet:
    ids = BehaviorEvent.objects.order_by("-id").values_list("id", flat=True)
    oldest = ids[NEWEST : NEWEST + 1].first()
    return rows if oldest is None else rows.filter(id__gt=oldest)


def waiting(rows: BehaviorEventQuerySet) -> BehaviorEventQuerySet:
    """Return the events that wait for a verdict: above low, and without one."""
    return rows.exclude(risk_band=RiskBand.LOW).filter(
        ~Exists(EventReview.objects.filter(event_id=OuterRef("pk"), tenant_id=OuterRef("tenant_id")))
    )


def judged(rows: BehaviorEventQuerySet, verdict: str) -> BehaviorEventQuerySet:
    """Return the events whose verdict that counts, the last one, is `verdict`."""
    of_it = EventReview.objects.filter(event_id=OuterRef("event_id"), tenant_id=OuterRef("tenant_id"))
    later = of_it.filter(number__gt=OuterRef("number"))
    given = EventReview.objects.filter(event_id=OuterRef("pk"), tenant_id=OuterRef("tenant_id"))
    return rows.filter(Exists(given.filter(~Exists(later), verdict=verdict)))


class ReceivedFilter(RangeDateTimeFilter):
    """Filters by the time of receipt through the ids, which are in its order."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        start, end = self._moment("from"), self._moment("to")
        if start is not None:
            queryset = queryset.since(start)
        return queryset if end is None else queryset.received_before(end)

    def _moment(self, side: str) -> datetime | None:
        """Return one end of the range, in UTC; None if it is not given or nonsense."""
        parts = [self.used_parameters.get(f"{self.parameter_name}_{side}_{part}") for part in (0, 1)]
        moment = parse_datetime_str(" ".join(part or "" for part in parts))
        return None if moment is None else min(moment, LATEST).replace(tzinfo=UTC)
