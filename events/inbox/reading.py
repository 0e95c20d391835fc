"""Queries of the inbox: the agents whose events wait, and what surrounds the event to decide on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q

from agents.models import Agent
from compliance.core.identifiers import first_id_at, parse_id
from events.inbox.forms import MINE, NOBODY, SNOOZED, InboxFilters
from events.inbox.models import AgentQueue, OpenEvent, OpenEventQuerySet
from events.models import BehaviorEvent, EventReview

GROUPS, WINDOW, STORY = 20, 25, 5
AROUND = timedelta(days=1)  # how far before and after an event its agent's other events are looked for


@dataclass(frozen=True)
class Group:
    """An agent's events that wait: how many of each band, since when the oldest does, who reviews them."""

    agent: Agent
    queue: AgentQueue | None
    high: int
    medium: int
    oldest_at: datetime


@dataclass(frozen=True)
class InboxPage:
    """A page of the inbox.

    `window`: some of the events that wait of the selected one's agent, the oldest first. `is_more`: whether
    later ones wait behind the window. `events`: the window's, but for those whose partition was dropped.
    """

    high: int
    medium: int
    groups: Sequence[Group]
    has_next_page: bool
    selected: OpenEvent | None
    window: Sequence[OpenEvent]
    is_more: bool
    events: Mapping[UUID, BehaviorEvent]

    @property
    def event(self) -> BehaviorEvent | None:
        return self.events.get(self.selected.pk) if self.selected else None

    @property
    def group(self) -> Group | None:
        """The group of the selected event's agent."""
        agent_id = self.selected.agent_id if self.selected else None
        return next((one for one in self.groups if one.agent.id == agent_id), None)

    @property
    def alike(self) -> list[list[OpenEvent]]:
        """The window's events in their order, each beside the first that did and said the same."""
        found: dict[tuple[str, str, str], list[OpenEvent]] = {}
        for row in self.window:
            said = self.events[row.pk].details if row.pk in self.events else str(row.pk)
            key = row.action_type, f"{row.risk_score:.2f}", json.dumps(said, sort_keys=True)
            found.setdefault(key, []).append(row)
        return list(found.values())


def filtered(
    opened: OpenEventQuerySet, filters: InboxFilters, *, actor_id: str, now: datetime
) -> OpenEventQuerySet:
    """Return the open events that the filters show to the person `actor_id`."""
    rows, queues = opened, AgentQueue.objects.all()
    if filters.band:
        rows = rows.filter(risk_band=filters.band)
    if filters.tenant:
        rows = rows.for_tenant(filters.tenant)
    if filters.search:
        agent_id = parse_id(filters.search)
        searched = Q(id=agent_id) if agent_id else Q(name__icontains=filters.search)
        rows = rows.of_agents(Agent.objects.filter(searched))
    if filters.shown == SNOOZED:
        return rows.of_agents(queues.snoozed(now))
    if filters.shown == MINE:
        rows = rows.of_agents(queues.filter(assignee=actor_id))
    elif filters.shown == NOBODY:
        rows = rows.except_agents(queues.filter(assignee__isnull=False))
    return rows.except_agents(queues.snoozed(now))


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
    start = (filters.page - 1) * GROUPS
    found = list(rows.groups()[start : start + GROUPS + 1])
    high, medium = rows.counts()
    window = _window(rows, event_id, agent_id, after)
    if not window and found:
        window = _window(rows, None, found[0]["agent_id"], None)
    named = [row for row in window[:WINDOW] if row.event_id == event_id]
    later = [row for row in window[:WINDOW] if after is not None and row.event_id > after]
    selected = next(iter(named or later or window), None)
    shown = found[:GROUPS]
    if selected is not None and selected.agent_id not in {group["agent_id"] for group in shown}:
        shown = [*rows.filter(agent_id=selected.agent_id).groups(), *shown]
    agents = Agent.objects.with_tenant().select_related("inbox_queue")
    known = agents.in_bulk([group["agent_id"] for group in shown])
    return InboxPage(
        high=high,
        medium=medium,
        groups=[
            Group(agent, getattr(agent, "inbox_queue", None), one["high"], one["medium"], one["oldest_at"])
            for one in shown
            if (agent := known.get(one["agent_id"]))
        ],
        has_next_page=len(found) > GROUPS,
        selected=selected,
        window=window[:WINDOW],
        is_more=len(window) > WINDOW,
        events=BehaviorEvent.objects.select_related("agent__tenant").in_bulk([row.pk for row in window]),
    )


def _window(
    rows: OpenEventQuerySet, event_id: UUID | None, agent_id: UUID | None, after: UUID | None
) -> list[OpenEvent]:
    """Return the agent's first events if the one to select is among them, else those from it on.

    One more than is shown. Empty if neither the event nor one of the agent waits.
    """
    opened = rows.filter(event_id=event_id).first() if event_id else None
    if opened is not None:
        of_agent = rows.filter(agent_id=opened.agent_id)
        wanted, from_there = event_id, of_agent.filter(event_id__gte=event_id)
    elif agent_id is None:
        return []
    else:
        of_agent = rows.filter(agent_id=agent_id)
        wanted, from_there = after, of_agent.filter(event_id__gt=after) if after else of_agent
    first = list(of_agent[: WINDOW + 1])
    if wanted is None or len(first) <= WINDOW or first[WINDOW].event_id > wanted:
        return first
    return list(from_there[: WINDOW + 1]) or first


def strikes_of(event: BehaviorEvent, *, now: datetime) -> tuple[int, int]:
    """Return how many strikes the agent had when the event was received, it included, and how many now."""
    at, reinstated_at, window = event.received_at, event.agent.reinstated_at, settings.HIGH_RISK_WINDOW
    then = Q(received_at__gte=at - window, received_at__lte=at, id__lte=event.id)
    present = Q(received_at__gte=now - window)
    if reinstated_at is not None:
        present &= Q(received_at__gt=reinstated_at)
        if reinstated_at < at:
            then &= Q(received_at__gt=reinstated_at)
    high = BehaviorEvent.objects.of_agent(event.agent_id).high_risk().since(min(at, now) - window)
    found = high.aggregate(then=Count("id", filter=then), now=Count("id", filter=present))
    return found["then"], found["now"]


def story_of(event: BehaviorEvent) -> tuple[list[BehaviorEvent], list[BehaviorEvent]]:
    """Return the agent's events just before and after, in the order of receipt, each with its verdict."""
    of_agent = BehaviorEvent.objects.of_agent(event.agent_id).with_verdict(EventReview.objects.all())
    start, end = first_id_at(event.received_at - AROUND), first_id_at(event.received_at + AROUND)
    earlier = of_agent.filter(id__lt=event.id, id__gte=start).order_by("-id")[:STORY]
    later = of_agent.filter(id__gt=event.id, id__lt=end).order_by("id")[:STORY]
    found = sorted(earlier.union(later, all=True), key=lambda row: row.id)
    return [row for row in found if row.id < event.id], [row for row in found if row.id > event.id]
