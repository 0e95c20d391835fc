"""Each agent's scorer state in Redis, rebuilt from PostgreSQL where Redis lacks it.

A stored state carries a tag, the id of the last event folded into it. Saving is a compare-and-set on the tag:
a process whose state was overtaken folds its events into the newer one. Where that can't be done, an empty
state is stored, which the next look-up has rebuilt.
"""

import logging
import secrets
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

import msgspec
from redis.exceptions import RedisError

from compliance.core.identifiers import new_id_at
from compliance.observing import metrics
from compliance.stores import redis
from events.risk.scoring.contract import Event
from events.risk.scoring.learning import has_taken_in
from events.risk.scoring.model import relearn
from events.risk.scoring.state import IMPOSSIBLE, AgentState, StateUnreadable, decode_state, encode_state

log = logging.getLogger(__name__)

KEPT_SECONDS = 45 * 86_400
ATTEMPTS = 4
# Events folded between reading other processes' states and saving, which take some 10 ms; the more, the more
# often those change meanwhile
MOST_REFOLDED = 256
TAG = 16
ABSENT = b"\0" * TAG
MOST_UNSAVED = 10_000

# Returns for each agent 1 if its stored tag was the expected one and the new state is stored, else 0
_COMPARE_AND_SET = redis.Script("""
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
""")


class TooBusy(Exception):
    """Other processes changed an agent's state at each attempt."""


class CachedState(msgspec.Struct, frozen=True, gc=False):
    """An agent's packed state, empty if it must be rebuilt, and its tag.

    The tag is the last folded event's id, a later one after an amendment, ABSENT or that of an empty state.
    """

    packed: bytes
    tag: bytes

    @property
    def state(self) -> AgentState | None:
        """The state, unpacked anew at each call; None if it must be rebuilt."""
        try:
            return decode_state(self.packed) if self.packed else None
        except StateUnreadable as error:
            log.warning("an agent's cached state is unreadable, rebuilding it: %s", error)
            return None


class StateUpdate(msgspec.Struct, frozen=True):
    """An agent's new state with the committed events that led to it.

    `seen`: the tag of the state before. `tag`: the new one. `bands` and `ids` (as text) are the events', all
    of one transaction.
    """

    agent_id: str
    seen: bytes
    packed: bytes
    events: Sequence[Event]
    bands: Sequence[str]
    ids: Sequence[str]
    tag: bytes


# Keys whose states in Redis may lack events because saving failed: emptied once Redis answers again
_unsaved: set[str] = set()
# After a failure Redis is left alone for a second: a hanging one would cost every event its timeout
_circuit = redis.make_circuit()
NOTHING = CachedState(b"", ABSENT)


@contextmanager
def _reaching_redis() -> Iterator[None]:
    """Raise RedisError at once for a second after a failure, which is logged."""
    with _circuit.guarding(gone=(RedisError,)):
        try:
            yield
        except RedisError as error:
            log.warning("state cache unavailable: %s", type(error).__name__)
            raise


@metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "load_states")
def load(agent_ids: Collection[str]) -> Mapping[str, CachedState]:
    """Return each agent's cached state, `NOTHING` without Redis."""
    try:
        with _reaching_redis():
            _empty_unsaved()
            return _read(agent_ids)
    except RedisError:
        return dict.fromkeys(agent_ids, NOTHING)


@metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "save_states")
def save(updates: Iterable[StateUpdate]) -> None:
    """Store the states after committed events.

    If another process was faster, the events are folded into its state. If it has none, or others were faster
    `ATTEMPTS` times, the state is emptied.
    """
    pending = list(updates)
    keys = _keys(update.agent_id for update in pending)
    try:
        with _reaching_redis():
            overtaken = _save(pending)
            while overtaken:
                count = bisect_right(list(accumulate(len(one.events) for one in overtaken)), MOST_REFOLDED)
                portion, overtaken = overtaken[: count or 1], overtaken[count or 1 :]
                for _ in range(ATTEMPTS - 1):
                    portion = _save(_refolded(portion))
                _empty(_keys(update.agent_id for update in portion))
    except RedisError:
        if len(_unsaved) < MOST_UNSAVED:
            _unsaved.update(keys)


def stored(agent_ids: Collection[str]) -> dict[str, CachedState]:
    """Return the state of each agent that has a readable one in Redis. Raises RedisError."""
    return {agent_id: held for agent_id, held in _read(agent_ids).items() if held.state is not None}


def amend(
    *, agent_id: str, change: Callable[[AgentState], None], rebuild: Callable[[], AgentState], now: datetime
) -> CachedState:
    """Change the agent's cached state, whatever is folded into it meanwhile, and return it.

    `rebuild` makes the state if none is cached. Raises RedisError, and TooBusy if others were always faster.
    """
    for _ in range(ATTEMPTS):
        seen = load([agent_id])[agent_id]
        state = seen.state or rebuild()
        change(state)
        packed = encode_state(state)
        # No event has this id; with the old tag, an overtaken process would store its state over this one
        tag = max(UUID(new_id_at(now)).bytes, _after(seen.tag))
        if not _save([StateUpdate(agent_id, seen.tag, packed, (), (), (), tag)]):
            return CachedState(packed, tag)
    raise TooBusy


def _after(tag: bytes) -> bytes:
    """Return a later tag, which no other process makes: two that are equal would stand for one state."""
    return min(int.from_bytes(tag) + 1 + secrets.randbits(32), (1 << 128) - 1).to_bytes(TAG)


def _keys(agent_ids: Iterable[str]) -> list[str]:
    prefix = redis.key("risk", "")
    return [f"{prefix}{agent_id}" for agent_id in agent_ids]


def _read(agent_ids: Collection[str]) -> dict[str, CachedState]:
    answers: Any = redis.client().mget(_keys(agent_ids)) if agent_ids else []
    return {
        agent_id: CachedState(held[TAG:], held[:TAG]) if held else NOTHING
        for agent_id, held in zip(agent_ids, answers, strict=True)
    }


def _save(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
    """Try to store each; return those that another process had overtaken."""
    if not updates:
        return []
    keys = _keys(update.agent_id for update in updates)
    values = [part for update in updates for part in (update.seen, update.tag + update.packed)]
    answers = _COMPARE_AND_SET(keys=keys, args=[KEPT_SECONDS, *values])
    return [update for update, is_saved in zip(updates, answers, strict=True) if not is_saved]


def _refolded(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
    """Fold the events into the other process's state, except those that its rebuild has read.

    Where there is none, an empty one is stored: only a rebuild finds what other processes stored, and none
    may store what it rebuilt before these events were committed; so it is where the other state is of
    impossible numbers. The tag never goes back, or a rebuild from a snapshot would learn events twice.
    """
    found, lost = [], []
    newest = _read([update.agent_id for update in updates])
    for update in updates:
        held = newest[update.agent_id]
        if held.tag == update.tag:
            continue  # stored by us: the answer was lost
        state = held.state
        if state is None:
            lost.append(update.agent_id)
        # A rebuild reads all of them or none, and notes the last.
        elif not any(has_taken_in(state, UUID(name).bytes) for name in update.ids):
            events = zip(update.events, update.bands, strict=True)
            try:
                packed = encode_state(relearn(events, start=state))
            except IMPOSSIBLE as error:
                log.warning("an agent's cached state is impossible, emptying it: %s", type(error).__name__)
                lost.append(update.agent_id)
                continue
            tag = max(update.tag, _after(held.tag))
            found.append(msgspec.structs.replace(update, seen=held.tag, packed=packed, tag=tag))
    _empty(_keys(lost))
    return found


def _empty(keys: Collection[str]) -> None:
    """Store empty states, to be rebuilt, each under a new tag, which is earlier than any event's."""
    if keys:
        tags = (bytes(6) + secrets.token_bytes(TAG - 6) for _ in keys)
        commands = [("SET", key, tag, "EX", KEPT_SECONDS) for key, tag in zip(keys, tags, strict=True)]
        redis.checked(redis.together(commands))


def _empty_unsaved() -> None:
    while keys := list(_unsaved):
        _unsaved.difference_update(keys)
        try:
            _empty(keys)
        except RedisError:
            _unsaved.update(keys)
            raise
