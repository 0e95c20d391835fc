"""The scorer's states from PostgreSQL: the last snapshot, and what the events since then and verdicts taught.

Events are learned again by the band that they were stored with, so a state comes out as it was, whatever was
held of the tenant at the time. One that an officer dismissed is taught, a confirmed one is not learned from.
A verdict that the memory still has to take in (`PendingReview`) is left to `events.reviewing`.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from compliance import sql
from compliance.identifiers import first_id_at
from events import snapshots
from events.memory import TRANSACTIONS, Memory
from events.models import BehaviorEvent, EventReview, PendingReview
from events.scoring import ORDINARY, AgentState, Event, note_taken_in, relearn, with_day_total

REPLAYED_EVENTS = 300
"""Most recent events a rebuild replays: enough for habits, some 20 ms of work."""
DAY_EVENTS = 5_000
"""Most transactions of the day that a rebuild adds up."""
REPLAYED_DAYS = timedelta(days=30)
IN_FLIGHT = timedelta(seconds=30)
"""What younger events taught may still be on its way to the memory: the state says that it holds them."""
MOST_IN_FLIGHT = 24
MOST_TOGETHER = 40
"""Agents that a group of events waits for: their snapshots and up to 300 events each."""

_EVENTS, _REVIEWS, _PENDING = (model._meta.db_table for model in (BehaviorEvent, EventReview, PendingReview))
# For each agent the last events past an id, in the order of ids, which is that of receipt.
_SINCE = f"""
SELECT given.id::text, event.id, event.action_type, event.received_at, event.details::text,
       CASE review.verdict
           WHEN 'confirmed' THEN 'high'
           WHEN 'dismissed' THEN CASE event.risk_band WHEN 'low' THEN 'low' ELSE '{ORDINARY}' END
           ELSE event.risk_band
       END
FROM unnest(%(ids)s::uuid[], %(after)s::uuid[]) AS given (id, after)
CROSS JOIN LATERAL (
    SELECT id, action_type, received_at, details, risk_band FROM {_EVENTS}
    WHERE agent_id = given.id AND id > given.after ORDER BY id DESC LIMIT %(most)s
) AS event
LEFT JOIN LATERAL (
    SELECT verdict FROM {_REVIEWS} AS said
    WHERE event_id = event.id AND NOT EXISTS (SELECT FROM {_PENDING} AS pending WHERE pending.id = said.id)
    ORDER BY number DESC LIMIT 1
) AS review ON true
ORDER BY given.id, event.id
"""  # noqa: S608  (only names of tables and a word of our own are put into the text)

_WITHOUT_HISTORY = f"""
SELECT given.id::text FROM unnest(%(ids)s::uuid[]) AS given (id)
WHERE NOT EXISTS (
    SELECT FROM {_EVENTS} WHERE agent_id = given.id AND id >= %(earliest)s
)
"""  # noqa: S608  (only a table's name is put into the text)


def without_history(agent_ids: Collection[str], *, now: datetime) -> set[str]:
    """Those of the agents that did nothing in the days a rebuild looks at: their state is a new one."""
    if not agent_ids:
        return set()
    asked = {"ids": sql.array(agent_ids), "earliest": first_id_at(now - REPLAYED_DAYS)}
    return {row[0] for row in sql.prepared(_WITHOUT_HISTORY, asked)}


def rebuild(*, agent_id: str, has_limits: bool, now: datetime) -> AgentState:
    """The state of one agent; with `has_limits` the whole day's transactions count."""
    agents = {agent_id: has_limits}
    return _states(agents, snapshots.held(agents), now)[agent_id]


def from_snapshots(agents: Mapping[str, bool], *, now: datetime) -> dict[str, AgentState]:
    """The states of those that have a sound snapshot, of the first `MOST_TOGETHER`.

    `agents` tells of each whether it has limits.
    """
    held = snapshots.held(list(agents)[:MOST_TOGETHER]) if agents else {}
    return _states({agent_id: agents[agent_id] for agent_id in held}, held, now) if held else {}


def _states(agents: Mapping[str, bool], held: Mapping[str, Memory], now: datetime) -> dict[str, AgentState]:
    """Each agent's state from its snapshot, if there is one, and its last events since."""
    earliest, settled = first_id_at(now - REPLAYED_DAYS), first_id_at(now - IN_FLIGHT)
    since = _since(
        {agent_id: UUID(bytes=held[agent_id].tag) if agent_id in held else earliest for agent_id in agents}
    )
    states = {}
    for agent_id, has_limits in agents.items():
        known = [(event, band) for _, event, band in since[agent_id]]
        state = relearn(known, start=held[agent_id].state if agent_id in held else None)
        note_taken_in(
            state, [name.bytes for name, _, _ in since[agent_id] if name >= settled][-MOST_IN_FLIGHT:]
        )
        if has_limits and len(known) == REPLAYED_EVENTS:
            state = with_day_total(state, _transactions_today(agent_id, now), received_at=now.timestamp())
        states[agent_id] = state
    return states


def _since(after: dict[str, UUID]) -> dict[str, list[tuple[UUID, Event, str]]]:
    """The events of each agent past an id, with theirs, and how they are to be learned."""
    found: dict[str, list[tuple[UUID, Event, str]]] = {agent_id: [] for agent_id in after}
    asked = {"ids": list(after), "after": list(after.values()), "most": REPLAYED_EVENTS}
    for agent_id, name, action_type, received_at, details, band in sql.query(_SINCE, asked):
        event = Event(action_type, received_at.timestamp(), orjson.loads(details))
        found[agent_id].append((name, event, band))
    return found


def _transactions_today(agent_id: str, now: datetime) -> list[Event]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    moved = BehaviorEvent.objects.of_agent(agent_id).filter(action_type__in=TRANSACTIONS).since(midnight)
    return [as_event(row) for row in moved.latest_received(DAY_EVENTS)]


def as_event(row: BehaviorEvent | Any) -> Event:
    """A stored event as the scorer takes it."""
    return Event(row.action_type, row.received_at.timestamp(), row.details)
