"""The scorer's memory of each agent: in Redis, rebuilt from PostgreSQL whenever Redis hasn't got it.

A stored state carries the id of the last event folded into it. Saving is a compare-and-set on that id: a
process whose state was overtaken folds its events into the newer one instead. A process also keeps the states
that it used last, packed as Redis has them.
Redis may vanish at any time: scoring then goes on from what the process has, or replays the agent's recent
events from PostgreSQL.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import msgspec
from redis.exceptions import RedisError

from compliance import redis
from compliance.bounded import Bounded
from compliance.identifiers import new_id_at
from events.models import ActionType
from events.scoring import (
    AgentState,
    Event,
    StateUnreadable,
    decode_state,
    encode_state,
    has_taken_in,
    relearn,
)

log = logging.getLogger(__name__)

KEPT_SECONDS = 45 * 86_400
KEPT_STATES = 5_000
"""States that a process keeps, packed: some 4 KB each at their fullest."""
ATTEMPTS = 4
MOST_REFOLDED = 64
FEW = 3
TRANSACTIONS = (ActionType.TRANSACTION_INITIATED, ActionType.TRANSACTION_ANOMALY)
TAG = 16
ABSENT = b"\0" * TAG
MAX_STALE = 10_000

# For each agent: 1 where what the caller went on from was still the newest state, and now its successor is.
_COMPARE_AND_SET = """
local saved, call = {}, redis.call
for i, key in ipairs(KEYS) do
  local held = call('GETRANGE', key, 0, 15)
  if held == '' then held = string.rep('\\0', 16) end
  if held == ARGV[2 * i] then
    call('SET', key, ARGV[2 * i + 1], 'EX', ARGV[1])
    saved[i] = 1
  else
    saved[i] = 0
  end
end
return saved
"""

PAUSE_SECONDS = 1.0
"""How long Redis is left alone after it failed: a hanging one would cost every event its timeouts."""


@dataclass
class Outage:
    """Until when (seconds since the epoch, the receive clock) this process leaves Redis alone."""

    until: float = 0.0

    def begins(self, at: float) -> None:
        self.until = at + PAUSE_SECONDS

    def lasts(self, at: float) -> bool:
        return self.until - PAUSE_SECONDS <= at < self.until


class TooBusy(Exception):
    """Others changed an agent's state each time in between."""


class Memory(msgspec.Struct, frozen=True, gc=False):
    """What is held of an agent: its packed state, None if it must be rebuilt, and the tag it is stored under.

    The tag is the last folded event's id, a later one after an amendment, or ABSENT.
    """

    packed: bytes | None
    tag: bytes

    @property
    def state(self) -> AgentState | None:
        """The state, unpacked anew for each who asks, who may change it; None if it must be rebuilt."""
        if self.packed is None:
            return None
        try:
            return decode_state(self.packed)
        except StateUnreadable as error:
            log.warning("what the scorer held of an agent is unreadable, rebuilding it: %s", error)
            return None


class Lesson(msgspec.Struct, frozen=True):
    """What an agent's committed events taught: they led from the state under `seen` to the one in `packed`.

    `bands` and `ids` (as text) are the events'; `tag` is what the state is stored under, the last one's id if
    nobody else was faster; `at` is when the last was received (seconds since the epoch). Without a state it
    says that what is stored must be rebuilt.
    """

    agent_id: str
    seen: bytes
    packed: bytes | None
    events: Sequence[Event]
    bands: Sequence[str]
    ids: Sequence[str]
    tag: bytes
    at: float


# Agents whose state in Redis missed events because saving it failed; rebuilt at a look after the outage.
_stale: set[str] = set()
_kept: Bounded[str, Memory] = Bounded(KEPT_STATES)
_outage = Outage()
NOTHING = Memory(None, ABSENT)


@cache
def _compare_and_set() -> redis.Script:
    return redis.Script(_COMPARE_AND_SET, carries_much=True)


def recall(agent_ids: Collection[str], *, at: float) -> Mapping[str, Memory]:
    """What is held of each agent at `at`; one whose memory has to be rebuilt has no state."""
    if _outage.lasts(at):
        return {agent_id: _kept.get(agent_id) or NOTHING for agent_id in agent_ids}
    try:
        answers = redis.values(_keys(agent_ids))
    except RedisError as error:
        log.warning("scorer memory unavailable: %s", type(error).__name__)
        _outage.begins(at)
        return {agent_id: _kept.get(agent_id) or NOTHING for agent_id in agent_ids}
    return {agent_id: _memory(agent_id, answer) for agent_id, answer in zip(agent_ids, answers, strict=True)}


def remember(lessons: Iterable[Lesson]) -> None:
    """Store the states after committed events, over whatever other processes stored meanwhile.

    Where another process was faster, the events are folded into its state, unless that one missed events:
    it is rebuilt at the next look. Of very many overtaken at once, those of little weight are let go.
    """
    pending = list(lessons)
    if not pending:
        return
    if _outage.lasts(pending[0].at):
        _learn_alone(pending)
        return
    try:
        for _ in range(ATTEMPTS):
            overtaken = _save(pending)
            pending = [lesson for lesson in overtaken if lesson.agent_id not in _stale]
            if sum(len(lesson.events) for lesson in pending) > MOST_REFOLDED:
                pending = [lesson for lesson in pending if _matters(lesson)]
            if not pending:
                return
            pending = _refolded(pending)
    except RedisError as error:
        log.warning("scorer memory not saved: %s", type(error).__name__)
        _outage.begins(pending[0].at)
        _learn_alone(pending)
        return
    # Too busy an agent to win: the other process's state lacks these few events.
    log.info("scorer memory of %d agents went on without the last events", len(pending))


def forget(*, agent_id: str) -> None:
    """Drop what is held of the agent; it is rebuilt at its next event. Raises `RedisError`."""
    redis.client().delete(redis.key("risk", agent_id))
    _kept.drop(agent_id)


def stored(agent_ids: Collection[str]) -> dict[str, tuple[bytes, bytes]]:
    """Tag and packed state of each agent that Redis knows. Raises `RedisError`."""
    answers: Any = redis.client().mget(_keys(agent_ids)) if agent_ids else ()
    return {
        agent_id: (held[:TAG], held[TAG:])
        for agent_id, held in zip(agent_ids, answers, strict=True)
        if held is not None and len(held) > TAG
    }


def amend(
    *, agent_id: str, change: Callable[[AgentState], None], rebuild: Callable[[], AgentState], now: datetime
) -> Memory:
    """Change what is held of the agent, whatever is folded in meanwhile; what is held then.

    `rebuild` makes one where none is held. Raises `RedisError`; `TooBusy` if others were always faster.
    """
    for _ in range(ATTEMPTS):
        seen = recall([agent_id], at=now.timestamp())[agent_id]
        state = seen.state or rebuild()
        change(state)
        packed = encode_state(state)
        # No event has this id, but under its old tag the state would pass for the one that others keep.
        tag = max(UUID(new_id_at(now)).bytes, _after(seen.tag))
        if not _save([Lesson(agent_id, seen.tag, packed, (), (), (), tag, now.timestamp())]):
            return Memory(packed, tag)
    raise TooBusy


def _after(tag: bytes) -> bytes:
    return min(int.from_bytes(tag) + 1, (1 << 128) - 1).to_bytes(TAG)


def _keys(agent_ids: Iterable[str]) -> list[str]:
    prefix = redis.key("risk", "")
    return [f"{prefix}{agent_id}" for agent_id in agent_ids]


def _memory(agent_id: str, stored: bytes | None) -> Memory:
    """What is held of an agent, Redis having this; where tags agree, nobody went further than the process."""
    if stored is None:
        return NOTHING
    kept = _kept.get(agent_id)
    if kept is None or not stored.startswith(kept.tag):
        kept = _found(agent_id, stored)
    return Memory(None, kept.tag) if agent_id in _stale else kept


def _found(agent_id: str, stored: bytes) -> Memory:
    if len(stored) <= TAG:  # see `_refolded()`
        return Memory(None, stored)
    found = Memory(stored[TAG:], stored[:TAG])
    _kept.put(agent_id, found)
    return found


def _save(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Try to store each; those that another process had overtaken."""
    args: list[Any] = [KEPT_SECONDS]
    for lesson in lessons:
        args += [lesson.seen, lesson.tag + (lesson.packed or b"")]
    saved: Any = _compare_and_set()(keys=_keys(lesson.agent_id for lesson in lessons), args=args)
    newest = {}
    overtaken = []
    for lesson, is_saved in zip(lessons, saved, strict=True):
        if is_saved:
            # Without a state it is kept as well: Redis' answer to its tag is then that it must be rebuilt
            newest[lesson.agent_id] = Memory(lesson.packed, lesson.tag)
        else:
            overtaken.append(lesson)
    _kept.put_all(newest)
    _stale.difference_update(newest)
    return overtaken


def _refolded(lessons: Sequence[Lesson]) -> list[Lesson]:
    """The same events on top of what the other process stored, but for those that it read in a rebuild.

    Where Redis lost what was stored, only a rebuild finds what others stored there: an empty state takes its
    place, over which nobody stores what they rebuilt before these events were committed. The tag never goes
    back, or a rebuild from a snapshot would learn events again.
    """
    newest = redis.values(_keys(lesson.agent_id for lesson in lessons))
    found = []
    for lesson, stored in zip(lessons, newest, strict=True):
        held = NOTHING if stored is None else _found(lesson.agent_id, stored)
        tag, state = max(lesson.tag, _after(held.tag)), held.state
        if state is None:
            found.append(msgspec.structs.replace(lesson, seen=held.tag, packed=None, tag=tag))
            continue
        new = [at for at, name in enumerate(lesson.ids) if not has_taken_in(state, UUID(name).bytes)]
        if new:
            packed = encode_state(relearn([(lesson.events[at], lesson.bands[at]) for at in new], start=state))
            found.append(msgspec.structs.replace(lesson, seen=held.tag, packed=packed, tag=tag))
    return found


def _matters(lesson: Lesson) -> bool:
    """Whether a state would miss more than a few events of habit: transactions count toward daily limits."""
    return len(lesson.events) > FEW or any(event.action_type in TRANSACTIONS for event in lesson.events)


def _learn_alone(lessons: Iterable[Lesson]) -> None:
    """Go on from the new state in this process; what Redis holds has missed these events."""
    for lesson in lessons:
        _kept.put(lesson.agent_id, Memory(lesson.packed, lesson.seen))
        if len(_stale) < MAX_STALE:
            _stale.add(lesson.agent_id)
