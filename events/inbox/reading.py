"""What the inbox shows: the agents whose events wait, and all that a verdict on one of them needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, Value

from agents.models import Agent
from agents.querysets import AgentQuerySet
from certificates.models import Certificate
from compliance.core.identifiers import first_id_at, parse_id
from events.inbox import reviewing
from events.inbox.filters import MINE, NOBODY, SNOOZED, InboxFilters
from events.inbox.models import AgentQueue, InboxComment, OpenEvent
from events.inbox.querysets import Group, OpenEventQuerySet
from events.models import BehaviorEvent, EventReview
from events.querysets import BehaviorEventQuerySet

GROUPS, WINDOW, STORY, COMMENTS = 20, 25, 5, 10
AROUND = timedelta(days=1)  # how far before and after an event its agent's other events are looked for


@dataclass(frozen=True)
class QueuedAgent:
    """An agent whose events wait, with who reviews them."""

    group: Group
    agent: Agent
    queue: AgentQueue | None


@dataclass(frozen=True)
class Dossier:
    """All that a verdict on one event needs.

    `strikes`: its agent's high-risk events in the window that ended with it; `strikes_now`: those in the
    window that ends now. `marks`: the places that confirming it marks.
    """

    event: BehaviorEvent
    certificate: Certificate | None
    strikes: int
    strikes_now: int
    marks: Sequence[str]
    before: Sequence[BehaviorEvent]
    after: Sequence[BehaviorEvent]
    comments: Sequence[InboxComment]


@dataclass(frozen=True)
class InboxPage:
    """A page of the inbox.

    `window`: some of the events that wait of the selected one's agent, the oldest first. `is_more`: whether
    later ones wait behind the window.
    """

    high: int
    medium: int
    queued: Sequence[QueuedAgent]
    has_next_page: bool
    selected: OpenEvent | None = None
    window: Sequence[OpenEvent] = field(default_factory=list)
    is_more: bool = False

    @property
    def following(self) -> OpenEvent | None:
        """The next event of the window after the selected one."""
        return self._neighbour(1)

    @property
    def preceding(self) -> OpenEvent | None:
        return self._neighbour(-1)

    @property
    def next_agent(self) -> QueuedAgent | None:
        """The agent after the selected one's on the page."""
        if self.selected is None:
            return None
        ids = [one.agent.id for one in self.queued]
        at = ids.index(self.selected.agent_id) + 1 if self.selected.agent_id in ids else 0
        return self.queued[at] if at < len(ids) else None

    def _neighbour(self, step: int) -> OpenEvent | None:
        ids = [row.event_id for row in self.window]
        if self.selected is None or self.selected.event_id not in ids:
            return None
        at = ids.index(self.selected.event_id) + step
        return self.window[at] if 0 <= at < len(ids) else None


def filtered(
    opened: OpenEventQuerySet, filters: InboxFilters, *, actor_id: str, now: datetime
) -> OpenEventQuerySet:
    """Return the open events that the filters show to the person `actor_id`."""
    queues = AgentQueue.objects.all()
    snoozed = queues.snoozed(now)
    rows = opened.in_band(filters.band)
    if filters.tenant:
        rows = rows.for_tenant(filters.tenant)
    if filters.search:
        rows = rows.of_agents(_named(filters.search))
    if filters.shown == SNOOZED:
        return rows.of_agents(snoozed)
    if filters.shown == MINE:
        rows = rows.of_agents(queues.assigned_to(actor_id))
    elif filters.shown == NOBODY:
        rows = rows.except_agents(queues.assigned())
    return rows.except_agents(snoozed)


def _named(search: str) -> AgentQuerySet:
    agent_id = parse_id(search)
    return Agent.objects.filter(Q(id=agent_id) if agent_id else Q(name__icontains=search))


def read_inbox(
    rows: OpenEventQuerySet,
    filters: InboxFilters,
    *,
    event_id: UUID | None,
    agent_id: UUID | None,
    after: UUID | None,
) -> InboxPage:
    """Return a page of `rows`, with one event selected.

    That is `event_id` if it waits; else the first of `agent_id` received after `after`; else its first; else
    the oldest agent's first.
    """
    found = rows.groups(offset=(filters.page - 1) * GROUPS, most=GROUPS + 1)
    high, medium = rows.counts()
    window = _window(rows, event_id, agent_id, after)
    if not window and found:
        window = _window(rows, None, found[0].agent_id, None)
    selected = _selected(window, event_id, after)
    shown = found[:GROUPS]
    if selected is not None and selected.agent_id not in {group.agent_id for group in shown}:
        shown = [*rows.of_agent(selected.agent_id).groups(offset=0, most=1), *shown]
    return InboxPage(
        high=high,
        medium=medium,
        queued=_queued(shown),
        has_next_page=len(found) > GROUPS,
        selected=selected,
        window=window[:WINDOW],
        is_more=len(window) > WINDOW,
    )


def _window(
    rows: OpenEventQuerySet, event_id: UUID | None, agent_id: UUID | None, after: UUID | None
) -> list[OpenEvent]:
    """Return the agent's first events if the one to select is among them, else those from it on.

    One more than is shown. Empty if neither the event nor one of the agent waits.
    """
    if event_id is not None and (found := rows.filter(event_id=event_id).first()):
        agent_id, after = found.agent_id, None
    elif agent_id is None:
        return []
    else:
        event_id = None
    of_agent = rows.of_agent(agent_id)
    first = list(of_agent[: WINDOW + 1])
    wanted = event_id or after
    if wanted is None or len(first) <= WINDOW or first[WINDOW].event_id > wanted:
        return first
    from_there = of_agent.filter(event_id__gte=event_id) if event_id else of_agent.filter(event_id__gt=after)
    return list(from_there[: WINDOW + 1]) or first


def _selected(window: list[OpenEvent], event_id: UUID | None, after: UUID | None) -> OpenEvent | None:
    """Return the event of the window that is asked for, else the one after `after`, else the first."""
    ids = [row.event_id for row in window[:WINDOW]]
    if event_id in ids:
        return window[ids.index(event_id)]
    later = [row for row in window[:WINDOW] if after is not None and row.event_id > after]
    return next(iter(later or window), None)


def _queued(groups: Sequence[Group]) -> list[QueuedAgent]:
    ids = [group.agent_id for group in groups]
    agents = Agent.objects.with_mode().select_related("inbox_queue").in_bulk(ids)
    return [
        QueuedAgent(group, agent, getattr(agent, "inbox_queue", None))
        for group in groups
        if (agent := agents.get(group.agent_id))
    ]


def dossier_of(opened: OpenEvent, *, now: datetime) -> Dossier | None:
    """Return what a verdict on the event needs; None if its partition was dropped meanwhile."""
    event = BehaviorEvent.objects.select_related("agent__tenant").filter(id=opened.event_id).first()
    if event is None:
        return None
    before, after = _story(event)
    strikes, strikes_now = _strikes(event, now)
    certificate = Certificate.objects.latest_of(event.agent)
    return Dossier(
        event=event,
        certificate=certificate,
        strikes=strikes,
        strikes_now=strikes_now,
        marks=reviewing.places_if_confirmed(event, said=None, certificate=certificate, now=now),
        before=before,
        after=after,
        comments=list(InboxComment.objects.of_agent(event.agent_id)[:COMMENTS]),
    )


def _strikes(event: BehaviorEvent, now: datetime) -> tuple[int, int]:
    """Return how many strikes the agent had when the event was received, it included, and how many now."""
    window, reinstated_at = settings.HIGH_RISK_WINDOW, event.agent.reinstated_at
    high = BehaviorEvent.objects.of_agent(event.agent_id).high_risk()
    then = high.since(event.received_at - window).filter(id__lte=event.id, received_at__lte=event.received_at)
    if reinstated_at is not None and reinstated_at < event.received_at:
        then = then.since_reinstatement(reinstated_at)
    present = high.since(now - window).since_reinstatement(reinstated_at)
    found = dict(_count(then, "then").union(_count(present, "now"), all=True))
    return found.get("then", 0), found.get("now", 0)


def _count(rows: BehaviorEventQuerySet, name: str) -> Any:
    """Return a query of how many rows there are, named; of none it returns no row."""
    return rows.order_by().annotate(which=Value(name)).values_list("which").annotate(count=Count("*"))


def _story(event: BehaviorEvent) -> tuple[list[BehaviorEvent], list[BehaviorEvent]]:
    """Return the agent's events just before and after, in the order of receipt, each with its verdict."""
    of_agent = BehaviorEvent.objects.of_agent(event.agent_id).with_verdict(EventReview.objects.all())
    start, end = first_id_at(event.received_at - AROUND), first_id_at(event.received_at + AROUND)
    earlier = of_agent.filter(id__lt=event.id, id__gte=start).order_by("-id")[:STORY]
    later = of_agent.filter(id__gt=event.id, id__lt=end).order_by("id")[:STORY]
    found = sorted(earlier.union(later, all=True), key=lambda row: row.id)
    return [row for row in found if row.id < event.id], [row for row in found if row.id > event.id]
