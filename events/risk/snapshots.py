"""Snapshots of the scorer's states in PostgreSQL, and states rebuilt from them and the events since.

A task writes snapshots of active agents. It may be late or fail: an old one only costs a longer replay.
Events are learned by their stored band, so the tenant's baseline makes no difference. Dismissed events are
taught as ordinary, confirmed ones not learned from. `events.inbox.reviewing` takes in pending reviews.
"""

import json
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from redis.exceptions import RedisError

from agents.models import Agent, AgentStatus
from compliance.core.identifiers import first_id_at
from compliance.core.json_values import from_stored
from compliance.stores import sql
from events.models import BehaviorEvent, EventReview, PendingReview, ScorerProgress, ScorerSnapshot
from events.risk import state_cache
from events.risk.scoring.contract import TRANSACTIONS, Event
from events.risk.scoring.learning import note_taken_in
from events.risk.scoring.model import MODEL_VERSION, ORDINARY, relearn, with_day_total
from events.risk.scoring.state import IMPOSSIBLE, AgentState
from events.risk.state_cache import CachedState

log = logging.getLogger(__name__)

NAME = "snapshots"
CHUNK = 100_000  # events of one step
RUN_SECONDS = 45.0  # after which a run begins no other step: the next one goes on
TOGETHER = 500  # agents whose states are read and written at once
MANY_EVENTS = 20
OLD = timedelta(minutes=15)
"""An agent gets a new snapshot after so many events in one step, or so long after its last one."""
SETTLED = timedelta(seconds=5)
FARTHEST_BACK = timedelta(days=1)
KEPT = timedelta(days=45)  # age at which a snapshot is deleted, as Redis does with a state

_AGENTS, _EVENTS, _SNAPSHOTS, _REVIEWS, _PENDING = (
    model._meta.db_table for model in (Agent, BehaviorEvent, ScorerSnapshot, EventReview, PendingReview)
)
_DUE = f"""
SELECT active.agent_id::text FROM (
    SELECT agent_id, count(*) AS events FROM {_EVENTS}
    WHERE id >= %(low)s AND id < %(high)s GROUP BY agent_id
) AS active LEFT JOIN {_SNAPSHOTS} AS held ON held.agent_id = active.agent_id
WHERE held.agent_id IS NULL OR active.events >= %(many)s OR held.taken_at < %(old)s
ORDER BY active.agent_id
"""  # noqa: S608  (only names of tables are put into the text)

# A later state stays, unless its tag comes from a clock that was ahead
_PUT = f"""
INSERT INTO {_SNAPSHOTS} AS held (agent_id, tag, state, model_version, taken_at)
SELECT given.id, given.tag, given.state, %(model_version)s, %(now)s
FROM unnest(%(ids)s::uuid[], %(tags)s::uuid[], %(states)s::bytea[]) AS given (id, tag, state)
ORDER BY given.id
ON CONFLICT (agent_id) DO UPDATE SET
    tag = excluded.tag, state = excluded.state,
    model_version = excluded.model_version, taken_at = excluded.taken_at
WHERE excluded.tag >= held.tag OR held.taken_at < %(old)s
"""  # noqa: S608  (only a table's name is put into the text)

_HELD = "WHERE agent_id = ANY(%s::uuid[]) AND model_version = %s"

_FORGET_OLD = f"DELETE FROM {_SNAPSHOTS} WHERE taken_at < %s"  # noqa: S608
_FORGET_RETIRED = f"""
DELETE FROM {_SNAPSHOTS} WHERE agent_id IN (SELECT id FROM {_AGENTS} WHERE status = %s)
"""  # noqa: S608  (only names of tables are put into the text)


def of_agents(agent_ids: Collection[str]) -> dict[str, CachedState]:
    """Return the snapshots of these agents that this version can read."""
    (rows,) = sql.read_together((ScorerSnapshot, _HELD, [sql.array(agent_ids), MODEL_VERSION]))
    found = {str(row.agent_id): CachedState(bytes(row.state), row.tag.bytes) for row in rows}
    return {agent_id: cached for agent_id, cached in found.items() if cached.state is not None}


def put(states: Mapping[str, CachedState], *, now: datetime) -> int:
    """Store the states as the agents' snapshots; return how many were newer."""
    if not states:
        return 0
    tags, packed = [UUID(bytes=one.tag) for one in states.values()], [one.packed for one in states.values()]
    given = {"ids": list(states), "tags": tags, "states": packed, "model_version": MODEL_VERSION}
    return sql.execute(_PUT, {**given, "now": now, "old": now - OLD})


def take(*, now: datetime, seconds: float = RUN_SECONDS) -> int:
    """Snapshot the agents that are due, from the events since the last run, for about so long.

    Returns how many snapshots were written. Looks back at most a day, and waits while Redis is away.
    Safe to repeat.
    """
    until = time.monotonic() + seconds
    total = 0
    while True:
        earliest, settled = first_id_at(now - FARTHEST_BACK), first_id_at(now - SETTLED)
        progress, _ = ScorerProgress.objects.get_or_create(name=NAME, defaults={"upto": earliest})
        low = max(progress.upto, earliest)
        high = BehaviorEvent.objects.id_after(CHUNK, low=low, high=settled) or settled
        if high <= low:
            break
        try:
            total += sum(put(state_cache.stored(ids), now=now) for ids in _due(low, high, now))
        except RedisError as error:
            log.warning("no snapshots while Redis is away: %s", type(error).__name__)
            break
        ScorerProgress.objects.filter(name=NAME, upto__lt=high).update(upto=high)
        if time.monotonic() >= until:
            break
    return total


def forget(*, now: datetime) -> int:
    """Delete the snapshots of retired agents and of those long silent; return how many."""
    return sql.execute(_FORGET_OLD, [now - KEPT]) + sql.execute(_FORGET_RETIRED, [AgentStatus.RETIRED])


def _due(low: UUID, high: UUID, now: datetime) -> Iterator[list[str]]:
    asked = {"low": low, "high": high, "many": MANY_EVENTS, "old": now - OLD}
    ids = [row[0] for row in sql.query(_DUE, asked)]
    for start in range(0, len(ids), TOGETHER):
        yield ids[start : start + TOGETHER]


REPLAYED_EVENTS = 300  # most recent events that a rebuild replays
DAY_EVENTS = 5_000  # most transactions of the day that a rebuild adds up
REPLAYED_DAYS = timedelta(days=30)
IN_FLIGHT = timedelta(seconds=30)  # age up to which an event's own update may still be on its way
MOST_IN_FLIGHT = 24
MOST_TOGETHER = 40  # most agents whose states are rebuilt while a group of events waits

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


def rebuild(*, agent_id: str, has_limits: bool, now: datetime, from_snapshot: bool = True) -> AgentState:
    """Return the state of one agent; with `has_limits` the whole day's transactions count.

    Without `from_snapshot` the events alone tell.
    """
    agents = {agent_id: has_limits}
    return _states(agents, of_agents(agents) if from_snapshot else {}, now)[agent_id]


def from_snapshots(agents: Mapping[str, bool], *, now: datetime) -> dict[str, AgentState]:
    """Return the states of the first `MOST_TOGETHER` agents (by whether they have limits) with a snapshot."""
    held = of_agents(list(agents)[:MOST_TOGETHER]) if agents else {}
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
        try:
            state = relearn(known, start=held[agent_id].state if agent_id in held else None)
        except IMPOSSIBLE as error:
            log.warning("an agent's snapshot is impossible, going without: %s", type(error).__name__)
            state = relearn(known)
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
