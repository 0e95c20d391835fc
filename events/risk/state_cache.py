"""Each agent's scorer state in Redis, rebuilt from PostgreSQL where Redis lacks it.

A stored state carries a tag, the id of the last event folded into it. Saving is a compare-and-set on the tag:
a process whose state was overtaken folds its events into the newer one. Each process also keeps the packed
states that it used last, and goes on from them while Redis is away.
"""

import logging
import secrets
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import accumulate, count
from threading import Lock
from typing import Any
from uuid import UUID

import msgspec
from redis.exceptions import RedisError

from compliance.core.bounded_cache import BoundedCache
from compliance.core.identifiers import new_id_at
from compliance.observing import metrics
from compliance.stores import redis
from events.models import ActionType
from events.risk.scoring.contract import Event
from events.risk.scoring.habits.learning import has_taken_in, relearn
from events.risk.scoring.habits.state import AgentState, StateUnreadable, decode_state, encode_state

log = logging.getLogger(__name__)

KEPT_SECONDS = 45 * 86_400
KEPT_STATES = 5_000  # states that a process keeps, packed: a few KB each as a rule
ATTEMPTS = 4
# Events folded between reading other processes' states and saving, which take some 10 ms; the more, the more
# often those change meanwhile. An agent that has more has its state rebuilt.
MOST_REFOLDED = 256
TRANSACTIONS = (ActionType.TRANSACTION_INITIATED, ActionType.TRANSACTION_ANOMALY)
TAG = 16
ABSENT = b"\0" * TAG
UNSTORED = b"\xff" * TAG  # of a state that this process keeps alone: none in Redis has it
MAX_STALE = 10_000

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
    """An agent's packed state, None if it must be rebuilt, and its tag.

    The tag is the last folded event's id, a later one after an amendment, ABSENT or UNSTORED. `lapse`: which
    failure to save makes the rebuild necessary; 0 if none does.
    """

    packed: bytes | None
    tag: bytes
    lapse: int = 0

    @property
    def state(self) -> AgentState | None:
        """The state, unpacked anew at each call; None if it must be rebuilt."""
        try:
            return None if self.packed is None else decode_state(self.packed)
        except StateUnreadable as error:
            log.warning("an agent's cached state is unreadable, rebuilding it: %s", error)
            return None


class StateUpdate(msgspec.Struct, frozen=True):
    """An agent's new state, None to have it rebuilt, with the committed events that led to it.

    `seen`: the tag of the state before. `tag`: the new one. `bands` and `ids` (as text) are the events', all
    of one transaction. `lapse`: the one that the state before had.
    """

    agent_id: str
    seen: bytes
    packed: bytes | None
    events: Sequence[Event]
    bands: Sequence[str]
    ids: Sequence[str]
    tag: bytes
    lapse: int = 0


# Agents whose state in Redis lacks events because saving it failed, with the number of the last failure;
# rebuilt once Redis is back. Only a state that was rebuilt after that failure ends it.
_stale: dict[str, int] = {}
_lapses = count(1)
_lapsing = Lock()
_kept: BoundedCache[str, CachedState] = BoundedCache(KEPT_STATES)
# After a failure Redis is left alone for a second: a hanging one would cost every event its timeout
_circuit = redis.make_circuit()
NOTHING = CachedState(None, ABSENT)


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
    """Return each agent's cached state; without Redis, the one that this process has."""
    try:
        with _reaching_redis():
            answers = redis.values_of(_keys(agent_ids))
    except RedisError:
        return {agent_id: _kept.get(agent_id) or NOTHING for agent_id in agent_ids}
    return {agent_id: _cached(agent_id, answer) for agent_id, answer in zip(agent_ids, answers, strict=True)}


@metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "save_states")
def save(updates: Iterable[StateUpdate]) -> None:
    """Store the states after committed events.

    If another process was faster, the events are folded into its state; if that state lacks events, it is
    rebuilt at the next look-up. Where others were faster `ATTEMPTS` times, or an agent has more than
    `MOST_REFOLDED` events, any process rebuilds the state at its next look-up.
    """
    pending = list(updates)
    if not pending:
        return
    try:
        with _reaching_redis():
            pending = _store(pending)
            while pending:
                portion = _portion(pending)
                pending = pending[len(portion) :]
                _fold_anew(portion)
    except RedisError:
        _keep_alone(pending)


def forget(*, agent_id: str) -> None:
    """Drop the agent's cached state; it is rebuilt at its next event. Raises RedisError."""
    redis.client().delete(redis.key("risk", agent_id))
    _kept.drop(agent_id)


def stored(agent_ids: Collection[str]) -> dict[str, CachedState]:
    """Return the state of each agent that has one in Redis. Raises RedisError."""
    answers = redis.values_of(_keys(agent_ids))
    return {
        agent_id: CachedState(held[TAG:], held[:TAG])
        for agent_id, held in zip(agent_ids, answers, strict=True)
        if held is not None and len(held) > TAG
    }


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
        # No event has this id; under the old tag other processes would take their own copy for this state
        tag = max(UUID(new_id_at(now)).bytes, _after(seen.tag))
        if not _save([StateUpdate(agent_id, seen.tag, packed, (), (), (), tag, seen.lapse)]):
            return CachedState(packed, tag)
    raise TooBusy


def _after(tag: bytes) -> bytes:
    """Return a later tag, which no other process makes: two that are equal would stand for one state."""
    return min(int.from_bytes(tag) + 1 + secrets.randbits(32), (1 << 128) - 1).to_bytes(TAG)


def _keys(agent_ids: Iterable[str]) -> list[str]:
    prefix = redis.key("risk", "")
    return [f"{prefix}{agent_id}" for agent_id in agent_ids]


def _cached(agent_id: str, stored: bytes | None) -> CachedState:
    """Return the agent's state, given what Redis stores; where the tags agree, the process's own copy."""
    if stored is None:
        return CachedState(None, ABSENT, _stale.get(agent_id, 0))
    kept = _kept.get(agent_id)
    if kept is None or not stored.startswith(kept.tag):
        kept = _found(agent_id, stored)
    lapse = _stale.get(agent_id)
    return kept if lapse is None else CachedState(None, kept.tag, lapse)


def _found(agent_id: str, stored: bytes) -> CachedState:
    if len(stored) <= TAG:  # see `_refolded()`
        return CachedState(None, stored)
    found = CachedState(stored[TAG:], stored[:TAG])
    _kept.put(agent_id, found)
    return found


def _portion(updates: list[StateUpdate]) -> list[StateUpdate]:
    """Return the first updates, of `MOST_REFOLDED` events at most; one that has more comes alone."""
    events = list(accumulate(len(update.events) for update in updates))
    return updates[: max(1, bisect_right(events, MOST_REFOLDED))]


def _fold_anew(updates: list[StateUpdate]) -> None:
    """Fold the events into other processes' states, or empty those that change each time. Raises RedisError.

    One update with more than `MOST_REFOLDED` events has its state emptied at once.
    """
    is_too_much = sum(len(update.events) for update in updates) > MOST_REFOLDED
    try:
        for _ in range(0 if is_too_much else ATTEMPTS - 1):
            updates = _refolded(updates)  # which is what is kept alone if storing fails
            updates = _store(updates)
            if not updates:
                return
        _empty(updates)
    except RedisError:
        _keep_alone(updates)
        raise


def _store(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
    """Try to store each; return those to fold anew: a state known to lack events is rebuilt anyway."""
    return [update for update in _save(updates) if update.agent_id not in _stale]


def _save(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
    """Try to store each; return those that another process had overtaken."""
    keys = _keys(update.agent_id for update in updates)
    groups = redis.by_slot(keys)
    answers = _COMPARE_AND_SET.run(*(_call(group, keys, updates) for group in groups))
    tried = [
        (updates[position], is_saved)
        for group, answer in zip(groups, answers, strict=True)
        for position, is_saved in zip(group, answer, strict=True)
    ]
    # Kept without a state as well: under its tag the state must be rebuilt
    saved = [one for one, is_saved in tried if is_saved]
    _kept.put_all({one.agent_id: CachedState(one.packed, one.tag) for one in saved})
    _end_lapses(saved)
    return [one for one, is_saved in tried if not is_saved]


def _end_lapses(saved: Iterable[StateUpdate]) -> None:
    """States that were rebuilt after the last failure to save them lack nothing."""
    if _stale:
        with _lapsing:
            for update in saved:
                if update.lapse and _stale.get(update.agent_id) == update.lapse:
                    del _stale[update.agent_id]


def _call(group: Sequence[int], keys: Sequence[str], updates: Sequence[StateUpdate]) -> list[Any]:
    """The script's call for the updates at these positions."""
    call: list[Any] = [len(group), *(keys[position] for position in group), KEPT_SECONDS]
    for position in group:
        update = updates[position]
        call += [update.seen, update.tag + (update.packed or b"")]
    return call


def _refolded(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
    """Fold the events into the other process's state, except those that its rebuild has read.

    Where Redis lost the state, an empty one is stored: only a rebuild finds what other processes stored, and
    none may store what it rebuilt before these events were committed. The tag never goes back, or a rebuild
    from a snapshot would learn events twice.
    """
    newest = redis.values_of(_keys(update.agent_id for update in updates))
    found = []
    for update, stored in zip(updates, newest, strict=True):
        held = NOTHING if stored is None else _found(update.agent_id, stored)
        if held.tag == update.tag:
            continue  # stored by us: the answer was lost
        tag, state = max(update.tag, _after(held.tag)), held.state
        if state is None:
            found.append(msgspec.structs.replace(update, seen=held.tag, packed=None, tag=tag))
            continue
        # A rebuild reads all of them or none, and notes the last.
        if not any(has_taken_in(state, UUID(name).bytes) for name in update.ids):
            events = zip(update.events, update.bands, strict=True)
            packed = encode_state(relearn(events, start=state))
            found.append(msgspec.structs.replace(update, seen=held.tag, packed=packed, tag=tag))
    return found


def _empty(updates: Sequence[StateUpdate]) -> None:
    """Replace the agents' states by empty ones, to be rebuilt: those of other processes lack these events."""
    log.info("cached states of %d agents are rebuilt: other processes were faster", len(updates))
    keys = _keys(update.agent_id for update in updates)
    held = [ABSENT if stored is None else stored[:TAG] for stored in redis.values_of(keys)]
    tags = [max(update.tag, _after(tag)) for update, tag in zip(updates, held, strict=True)]
    commands = [("SET", key, tag, "EX", KEPT_SECONDS) for key, tag in zip(keys, tags, strict=True)]
    redis.checked(redis.together(commands))


def _keep_alone(updates: Iterable[StateUpdate]) -> None:
    """Keep the new states in this process; those in Redis lack these events."""
    with _lapsing:
        for update in updates:
            _kept.put(update.agent_id, CachedState(update.packed, UNSTORED))
            if update.agent_id in _stale or len(_stale) < MAX_STALE:
                _stale[update.agent_id] = next(_lapses)
