"""The scorer's memory of each agent: in Redis, rebuilt from PostgreSQL whenever Redis hasn't got it.

A stored state carries the id of the last event folded into it. Saving is a compare-and-set on that id:
a process whose state was overtaken folds its event into the newer one instead. Redis may vanish at any
time; scoring then replays the agent's recent events from PostgreSQL and goes on.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from redis.commands.core import Script
from redis.exceptions import RedisError

from agents.models import Agent
from compliance import redis
from events.models import ActionType, BehaviorEvent
from events.scoring import (
    AgentState,
    Context,
    Event,
    StateUnreadable,
    assess,
    decode_state,
    encode_state,
    replay,
    with_day_total,
)

log = logging.getLogger(__name__)

REPLAYED_EVENTS = 300
"""Most recent events a rebuild replays: enough for habits, some 20 ms of work."""
DAY_EVENTS = 5_000
"""Most transactions of the day that a rebuild adds up."""
REPLAYED_DAYS = timedelta(days=30)
KEPT_SECONDS = 45 * 86_400
ATTEMPTS = 3
TAG = 16
ABSENT = b"\0" * TAG
MAX_STALE = 10_000

_COMPARE_AND_SET = """
local held = redis.call('GETRANGE', KEYS[1], 0, 15)
if held == '' then held = string.rep('\\0', 16) end
if held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""

PAUSE_SECONDS = 1.0
"""How long Redis is left alone after it failed: a hanging one would cost every event its timeouts."""

# Agents whose state in Redis missed an event because saving it failed; rebuilt at the next look.
_stale: set[UUID] = set()


@dataclass
class Outage:
    """Until when (seconds since the epoch, the receive clock) this process leaves Redis alone."""

    until: float = 0.0

    def begins(self, at: float) -> None:
        self.until = at + PAUSE_SECONDS

    def lasts(self, at: float) -> bool:
        return self.until - PAUSE_SECONDS <= at < self.until


_outage = Outage()


@dataclass(frozen=True)
class Memory:
    """A state and the tag it is stored under: the last folded event's id, or ABSENT."""

    state: AgentState
    tag: bytes


@cache
def _compare_and_set() -> Script:
    return redis.client().register_script(_COMPARE_AND_SET)


def recall(*, agent: Agent, context: Context, now: datetime) -> Memory:
    """What is remembered of the agent, rebuilt from its events if Redis has nothing usable."""
    stored = _held(agent.id, at=now.timestamp())
    tag = ABSENT if stored is None else stored[:TAG]
    if stored is not None and agent.id not in _stale:
        try:
            return Memory(decode_state(stored[TAG:]), tag)
        except StateUnreadable:
            log.warning("scorer memory of agent %s is unreadable, rebuilding it", agent.id)
    return Memory(rebuild(agent=agent, context=context, now=now), tag)


def remember(
    *, agent: Agent, context: Context, event_id: UUID, event: Event, seen: Memory, learned: AgentState
) -> bool:
    """Store the state after a committed event; False when Redis is away or the agent too busy to win.

    `learned` is the state that follows from `seen`; where another process was faster, the event is folded
    into that process's state, unless that is the one which missed events: it is rebuilt at the next look.
    """
    if _outage.lasts(event.received_at):
        _mark_stale(agent.id)
        return False
    tag, state = seen.tag, learned
    try:
        for _ in range(ATTEMPTS):
            if _save(agent.id, expected=tag, tag=event_id.bytes, state=state):
                _stale.discard(agent.id)
                return True
            if agent.id in _stale:
                return False
            newer = redis.client().get(_key(agent.id))
            tag, state = _folded(newer, event, context, otherwise=learned)
    except RedisError as error:
        log.warning("scorer memory not saved: %s", type(error).__name__)
        _outage.begins(event.received_at)
        _mark_stale(agent.id)
        return False
    _mark_stale(agent.id)
    return False


def forget(*, agent_id: UUID) -> None:
    """Drop what Redis holds of the agent; it is rebuilt at its next event. Raises `RedisError`."""
    redis.client().delete(_key(agent_id))


def rebuild(*, agent: Agent, context: Context, now: datetime) -> AgentState:
    """The state from the agent's recent events, and the whole day's transactions for its daily limit."""
    events = BehaviorEvent.objects.of_agent(agent.id)
    recent = _as_events(events.since(now - REPLAYED_DAYS).latest_received(REPLAYED_EVENTS))
    state = replay(recent, context)
    if context.financial_scope is None or len(recent) < REPLAYED_EVENTS:
        return state
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    moved = events.filter(action_type__in=[ActionType.TRANSACTION_INITIATED, ActionType.TRANSACTION_ANOMALY])
    today = _as_events(moved.since(midnight).latest_received(DAY_EVENTS))
    return with_day_total(state, today, received_at=now.timestamp())


def as_event(row: BehaviorEvent) -> Event:
    """A stored event as the scorer takes it."""
    return Event(row.action_type, row.received_at.timestamp(), row.details)


def _as_events(newest_first: Sequence[BehaviorEvent] | Any) -> list[Event]:
    return [as_event(row) for row in reversed(newest_first)]


def _key(agent_id: UUID) -> str:
    return redis.key("risk", agent_id)


def _held(agent_id: UUID, *, at: float) -> bytes | None:
    """What Redis holds of the agent; None when that is nothing, or Redis is away."""
    if _outage.lasts(at):
        return None
    try:
        stored: Any = redis.client().get(_key(agent_id))
    except RedisError as error:
        log.warning("scorer memory unavailable, replaying from the database: %s", type(error).__name__)
        _outage.begins(at)
        return None
    return None if stored is None else bytes(stored)


def _save(agent_id: UUID, *, expected: bytes, tag: bytes, state: AgentState) -> bool:
    value = tag + encode_state(state)
    return bool(_compare_and_set()(keys=[_key(agent_id)], args=[expected, value, KEPT_SECONDS]))


def _folded(newer: Any, event: Event, context: Context, *, otherwise: AgentState) -> tuple[bytes, AgentState]:
    """The tag of another process's state, and that state with the event folded in."""
    if newer is None:
        return ABSENT, otherwise
    try:
        return newer[:TAG], assess(decode_state(newer[TAG:]), event, context).state
    except StateUnreadable:
        return newer[:TAG], otherwise


def _mark_stale(agent_id: UUID) -> None:
    if len(_stale) < MAX_STALE:
        _stale.add(agent_id)
