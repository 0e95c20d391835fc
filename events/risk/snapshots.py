"""Snapshots of the scorer's states in PostgreSQL, from which they are rebuilt if Redis loses them.

A task writes them for active agents. It may be late or fail: an old snapshot only costs a longer replay.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from redis.exceptions import RedisError

from agents.models import Agent, AgentStatus
from compliance.core.identifiers import first_id_at
from compliance.stores import sql
from events.models import BehaviorEvent, ScorerProgress, ScorerSnapshot
from events.risk import state_cache
from events.risk.scoring.model import MODEL_VERSION
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

_EVENTS, _SNAPSHOTS, _AGENTS = (model._meta.db_table for model in (BehaviorEvent, ScorerSnapshot, Agent))
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


def held(agent_ids: Collection[str]) -> dict[str, CachedState]:
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
