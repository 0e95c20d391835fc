"""Rebuild states from PostgreSQL: the last snapshot, and the events since then.

Events are learned by their stored band, so the tenant's baseline makes no difference. Dismissed events are
taught as ordinary, confirmed ones not learned from. `events.inbox.reviewing` takes in pending reviews.
"""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from agents.models import Agent
from compliance.core.identifiers import first_id_at
from compliance.core.json_values import from_stored
from compliance.stores import sql
from events.models import BehaviorEvent, EventReview, PendingReview
from events.risk import snapshots
from events.risk.scoring.contract import Event
from events.risk.scoring.habits.learning import ORDINARY, note_taken_in, relearn
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import with_day_total
from events.risk.state_cache import TRANSACTIONS, CachedState

REPLAYED_EVENTS = 300  # most recent events that a rebuild replays
DAY_EVENTS = 5_000  # most transactions of the day that a rebuild adds up
REPLAYED_DAYS = timedelta(days=30)
IN_FLIGHT = timedelta(seconds=30)  # age up to which an event's own update may still be on its way
MOST_IN_FLIGHT = 24
MOST_TOGETHER = 40  # most agents whose states are rebuilt while a group of events waits

_AGENTS, _EVENTS, _REVIEWS, _PENDING = (
    model._meta.db_table for model in (Agent, BehaviorEvent, EventReview, PendingReview)
)
# Each agent's last events after an id, in the order of ids, which is that of receipt
_SINCE = f"""
SELECT agent.id::text, event.id, event.action_type, event.received_at, event.details::text,
       CASE review.verdict
           WHEN 'confirmed' THEN 'high'
           WHEN 'dismissed' THEN CASE event.risk_band WHEN 'low' THEN 'low' ELSE '{ORDINARY}' END
           ELSE event.risk_band
       END
FROM {_AGENTS} AS agent
CROSS JOIN LATERAL (
    SELECT tenant_id, id, action_type, received_at, details, risk_band FROM {_EVENTS}
    WHERE tenant_id = agent.tenant_id AND agent_id = agent.id
        AND id > (%(after)s::jsonb ->> agent.id::text)::uuid
    ORDER BY id DESC LIMIT (SELECT %(most)s::int)
) AS event
LEFT JOIN LATERAL (
    SELECT verdict FROM {_REVIEWS} AS said
    WHERE tenant_id = event.tenant_id AND event_id = event.id
        AND NOT EXISTS (SELECT FROM {_PENDING} AS pending WHERE pending.id = said.id)
    ORDER BY number DESC LIMIT 1
) AS review ON true
WHERE agent.id = ANY(%(ids)s::uuid[])
ORDER BY agent.id, event.id
"""  # noqa: S608  (only names of tables and a word of our own are put into the text)

_WITHOUT_HISTORY = f"""
SELECT agent.id::text FROM {_AGENTS} AS agent WHERE agent.id = ANY(%(ids)s::uuid[])
AND NOT EXISTS (
    SELECT FROM {_EVENTS} AS event
    WHERE event.tenant_id = agent.tenant_id AND event.agent_id = agent.id AND event.id >= %(earliest)s
)
"""  # noqa: S608  (only names of tables are put into the text)


def without_history(agent_ids: Collection[str], *, now: datetime) -> set[str]:
    """Return the agents without events in the days that a rebuild replays: their state is empty."""
    if not agent_ids:
        return set()
    asked = {"ids": sql.array(agent_ids), "earliest": first_id_at(now - REPLAYED_DAYS)}
    return {row[0] for row in sql.prepared(_WITHOUT_HISTORY, asked)}


def rebuild(*, agent_id: str, has_limits: bool, now: datetime) -> AgentState:
    """Return the state of one agent; with `has_limits` the whole day's transactions count."""
    agents = {agent_id: has_limits}
    return _states(agents, snapshots.held(agents), now)[agent_id]


def from_snapshots(agents: Mapping[str, bool], *, now: datetime) -> dict[str, AgentState]:
    """Return the states of the first `MOST_TOGETHER` agents (by whether they have limits) with a snapshot."""
    held = snapshots.held(list(agents)[:MOST_TOGETHER]) if agents else {}
    return _states({agent_id: agents[agent_id] for agent_id in held}, held, now) if held else {}


def _states(
    agents: Mapping[str, bool], held: Mapping[str, CachedState], now: datetime
) -> dict[str, AgentState]:
    earliest, settled = first_id_at(now - REPLAYED_DAYS), first_id_at(now - IN_FLIGHT)
    tags = {agent_id: UUID(bytes=cached.tag) for agent_id, cached in held.items()}
    since = _since({agent_id: tags.get(agent_id, earliest) for agent_id in agents})
    states = {}
    for agent_id, has_limits in agents.items():
        known = [(event, band) for _, event, band in since[agent_id]]
        in_flight = [name.bytes for name, _, _ in since[agent_id] if name >= settled]
        state = relearn(known, start=held[agent_id].state if agent_id in held else None)
        note_taken_in(state, in_flight[-MOST_IN_FLIGHT:])
        if has_limits and len(known) == REPLAYED_EVENTS:
            state = with_day_total(state, _transactions_today(agent_id, now), received_at=now.timestamp())
        states[agent_id] = state
    return states


def _since(after: dict[str, UUID]) -> dict[str, list[tuple[UUID, Event, str]]]:
    """Return each agent's events after an id: id, event and the band to learn it by."""
    found: dict[str, list[tuple[UUID, Event, str]]] = {agent_id: [] for agent_id in after}
    ids = json.dumps({agent_id: str(name) for agent_id, name in after.items()})
    asked = {"ids": list(after), "after": ids, "most": REPLAYED_EVENTS}
    for agent_id, name, action_type, received_at, details, band in sql.query(_SINCE, asked):
        event = Event(action_type, received_at.timestamp(), from_stored(details))
        found[agent_id].append((name, event, band))
    return found


def _transactions_today(agent_id: str, now: datetime) -> list[Event]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    moved = BehaviorEvent.objects.of_agent(agent_id).filter(action_type__in=TRANSACTIONS).since(midnight)
    return [as_event(row) for row in moved.latest_received(DAY_EVENTS)]


def as_event(row: BehaviorEvent | Any) -> Event:
    return Event(row.action_type, row.received_at.timestamp(), row.details)
