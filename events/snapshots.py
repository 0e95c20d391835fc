"""Snapshots of the scorer's states: what a lost Redis is made up from, with the events since.

A task writes them in bulk for agents that were active. One that is old costs a longer replay, one that is
missing, of another layout or model a replay from nothing, so that the task may come late or never.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from redis.exceptions import RedisError

from agents.models import Agent, AgentStatus
from compliance import sql
from compliance.identifiers import first_id_at
from events import memory
from events.memory import Memory
from events.models import BehaviorEvent, ScorerProgress, ScorerSnapshot
from events.scoring import MODEL_VERSION, StateUnreadable, decode_state

log = logging.getLogger(__name__)

NAME = "snapshots"
CHUNK = 100_000
CHUNKS = 10
"""Events of one step, and most steps of one run."""
TOGETHER = 500
"""Agents whose states are read and written at once, some 2 MB."""
MANY_EVENTS = 20
OLD = timedelta(minutes=15)
"""An agent gets a new snapshot after so many events in one step, or so long after its last one."""
SETTLED = timedelta(seconds=5)
FARTHEST_BACK = timedelta(days=1)
KEPT = timedelta(days=45)
"""As long as Redis keeps a state."""

_EVENTS, _SNAPSHOTS, _AGENTS = (model._meta.db_table for model in (BehaviorEvent, ScorerSnapshot, Agent))
_DUE = f"""
SELECT active.agent_id::text FROM (
    SELECT agent_id, count(*) AS events FROM {_EVENTS}
    WHERE id >= %(low)s AND id < %(high)s GROUP BY agent_id
) AS active LEFT JOIN {_SNAPSHOTS} AS held ON held.agent_id = active.agent_id
WHERE held.agent_id IS NULL OR active.events >= %(many)s OR held.taken_at < %(old)s
ORDER BY active.agent_id
"""  # noqa: S608  (only names of tables are put into the text)

# A later state stays, unless its tag is from a clock that was ahead.
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

_FORGET = f"""
DELETE FROM {_SNAPSHOTS} AS held WHERE held.taken_at < %(oldest)s
    OR EXISTS (SELECT FROM {_AGENTS} AS agent WHERE agent.id = held.agent_id AND agent.status = %(retired)s)
"""  # noqa: S608  (only names of tables are put into the text)


def held(agent_ids: Collection[str]) -> dict[str, Memory]:
    """The snapshots of these agents that this version can go on from."""
    found = {}
    (rows,) = sql.read_together((ScorerSnapshot, _HELD, [sql.array(agent_ids), MODEL_VERSION]))
    for row in rows:
        packed = bytes(row.state)
        try:
            decode_state(packed)
        except StateUnreadable:
            log.info("the snapshot of agent %s is of another layout", row.agent_id)
        else:
            found[str(row.agent_id)] = Memory(packed, row.tag.bytes)
    return found


def put(states: Mapping[str, tuple[bytes, bytes]], *, now: datetime) -> int:
    """Store tags and packed states as the agents' snapshots, in one statement; how many were newer."""
    if not states:
        return 0
    return sql.execute(
        _PUT,
        {
            "ids": list(states),
            "tags": [UUID(bytes=tag) for tag, _ in states.values()],
            "states": [state for _, state in states.values()],
            "model_version": MODEL_VERSION,
            "now": now,
            "old": now - OLD,
        },
    )


def take(*, now: datetime) -> int:
    """Snapshot the agents that were active since the last time and are due; how many. Safe to repeat.

    It goes on where it stood, at most a day back. While Redis is away it waits.
    """
    total = 0
    for _ in range(CHUNKS):
        low = _progress(now)
        settled = first_id_at(now - SETTLED)
        high = BehaviorEvent.objects.id_after(CHUNK, low=low, high=settled) or settled
        if high <= low:
            break
        try:
            total += sum(put(memory.stored(ids), now=now) for ids in _due(low, high, now))
        except RedisError as error:
            log.warning("no snapshots while Redis is away: %s", type(error).__name__)
            break
        ScorerProgress.objects.filter(name=NAME, upto__lt=high).update(upto=high)
    return total


def forget(*, now: datetime) -> int:
    """Drop the snapshots of retired agents and of those long silent; how many."""
    return sql.execute(_FORGET, {"oldest": now - KEPT, "retired": AgentStatus.RETIRED})


def _progress(now: datetime) -> UUID:
    earliest = first_id_at(now - FARTHEST_BACK)
    progress, _ = ScorerProgress.objects.get_or_create(name=NAME, defaults={"upto": earliest})
    return max(progress.upto, earliest)


def _due(low: UUID, high: UUID, now: datetime) -> Iterator[list[str]]:
    asked = {"low": low, "high": high, "many": MANY_EVENTS, "old": now - OLD}
    ids = [row[0] for row in sql.query(_DUE, asked)]
    for start in range(0, len(ids), TOGETHER):
        yield ids[start : start + TOGETHER]
