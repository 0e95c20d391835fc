"""What the scorer remembers of one agent: a few kilobytes that fade over thirty days.

Weights use forward decay (Cormode et al., "Forward Decay", ICDE 2009): an observation at time t is stored
as exp((t - landmark) / FADE) and read back scaled by exp((landmark - now) / FADE), so nothing has to be
rewritten as time passes. Names are kept as 64-bit BLAKE2b digests: bounded, and not to be collided at will.

A state is read from bytes and written back for every event or few, and looked into a handful of times in
between. So its tables stay packed: searching fifty digests takes less than building a dictionary of them.
What is packed is never changed in place but replaced, so copies of a state share it.
"""

from copy import copy
from functools import lru_cache
from hashlib import blake2b
from math import exp
from struct import Struct

import msgspec

DAY = 86_400.0
FADE = 30 * DAY
"""Seconds after which an observation weighs 1/e of what it did."""
RESCALE_AFTER = 10 * FADE
"""Age of the landmark at which stored weights are rewritten, well before exp() grows unwieldy."""
PROBATION = 3 * DAY
"""How long a name waits that could be an attack's: an agent's after reading, whatever is new to a tenant."""
BURST_FADE = 60.0
READ_FADE = 600.0
FAILURE_FADE = 600.0
ANOMALY_FADE = 900.0
FORGOTTEN = 0.05
"""A weight below which a name counts as never seen (some ninety days after a single sighting)."""

MAX_DESTINATIONS = 56
MAX_RESOURCES = 32
MAX_HOSTS = 16
MAX_WAITING = 24
MAX_TOOLS = 40
MAX_BIGRAMS = 40
MAX_AMOUNTS = 40
HOURS = 24
LAYOUT = 3

KINDS = (
    "api_call",
    "data_mutation",
    "transaction_initiated",
    "transaction_anomaly",
    "host",
    "resource",
    "amount",
)
"""What has a rate of novelty: where each sending action goes, then hosts, resources, and unstated amounts."""
KIND = {kind: index for index, kind in enumerate(KINDS)}
SENDING_KINDS = 4

NAME = 8
NUMBER = 8
NO_NAME = bytes(NAME)
_weight = Struct("<d")
_pack, _unpack = _weight.pack, _weight.unpack_from


@lru_cache(maxsize=2048)
def _doubles(count: int) -> Struct:
    return Struct(f"<{count}d")


class StateUnreadable(ValueError):
    """Stored state that this version can't use; rebuild it from the agent's events."""


class Table(msgspec.Struct, array_like=True, gc=False):
    """Names with a weight each, in order of first sight: digests of `NAME` bytes, and as many doubles.

    Like the scorer's other small structs it can't be in a cycle: the garbage collector needn't see it.
    """

    names: bytes = b""
    weights: bytes = b""

    def __len__(self) -> int:
        return len(self.names) // NAME

    def get(self, name: bytes) -> float:
        """The name's weight, 0 if it isn't there."""
        at = self.names.find(name)
        if at > 0 and at % NAME:
            at = self._aligned(name, at)
        return 0.0 if at < 0 else _unpack(self.weights, at)[0]

    def knows(self, name: bytes, fading: float) -> bool:
        """Whether the name was seen and is not yet forgotten."""
        return self.get(name) * fading >= FORGOTTEN

    def add(self, name: bytes, weight: float, limit: int) -> float:
        """Add to a name's weight and tell what it was; beyond `limit` names the lightest goes."""
        names, weights = self.names, self.weights
        at = names.find(name)
        if at > 0 and at % NAME:
            at = self._aligned(name, at)
        if at < 0:
            if len(names) >= limit * NAME:
                self._drop_lightest()
            self.names += name
            self.weights += _pack(weight)
            return 0.0
        before: float = _unpack(weights, at)[0]
        self.weights = b"".join((weights[:at], _pack(before + weight), weights[at + NUMBER :]))
        return before

    def has_waited(self, name: bytes, now: float, seconds: float, limit: int) -> bool:
        """Whether the name was first asked for at least so long ago; the first time starts its wait."""
        since = self.get(name)
        if not since:
            self.add(name, now, limit)
            return False
        return now - since >= seconds

    def items(self) -> list[tuple[bytes, float]]:
        names = [self.names[at : at + NAME] for at in range(0, len(self.names), NAME)]
        return list(zip(names, self._unpacked(), strict=True))

    def scale(self, factor: float) -> None:
        """Multiply every weight."""
        self.weights = b"".join(_pack(weight * factor) for weight in self._unpacked())

    def copy(self) -> "Table":
        return Table(self.names, self.weights)

    def _aligned(self, name: bytes, at: int) -> int:
        """Where the name stands from `at` on: two neighbours' end and start may look like it."""
        while at >= 0 and at % NAME:
            at = self.names.find(name, at + 1)
        return at

    def _unpacked(self) -> tuple[float, ...]:
        return _doubles(len(self.names) // NAME).unpack(self.weights)

    def _drop_lightest(self) -> None:
        weights = self._unpacked()
        at = weights.index(min(weights)) * NAME
        self.names = self.names[:at] + self.names[at + NAME :]
        self.weights = self.weights[:at] + self.weights[at + NUMBER :]


def _table() -> Table:
    return msgspec.field(default_factory=Table)


class AgentState(msgspec.Struct, array_like=True):
    """One agent's habits and its last minutes. Times are seconds since the epoch by the receive clock.

    Habits (learned from low events only): `learned` events in all; `tools`, `aimed` (of those, with a
    target), `bigrams`, `destinations`, `resources`, `hosts` by digest; `waiting`, when a
    destination was first written to after reading; by the order of `KINDS`, `trials`,
    how often one was seen, and `rates`, the running share of new ones; `amounts`, the last amounts as square
    roots of dollars, and `usual_amount`, the long running mean of their log-dollars; `hours`, how often each
    hour of the day (UTC), both packed as doubles; the running means of tool and bigram surprise (nats) and of
    the burst level.
    Last minutes (from every event): `burst`, `reads`, `failures`, `anomalies` as fading counts at
    `last_at`; `last_tool`; `day` (days since the epoch) and `day_usd`, the day's
    transactions so far.
    `taken_in` are ids of what was taken in past the usual way, so that it isn't twice (`relearning`).
    """

    layout: int = LAYOUT
    landmark: float = 0.0
    last_at: float = 0.0
    learned: float = 0.0
    tools: Table = _table()
    aimed: Table = _table()
    bigrams: Table = _table()
    destinations: Table = _table()
    resources: Table = _table()
    hosts: Table = _table()
    waiting: Table = _table()
    trials: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(KINDS))
    rates: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(KINDS))
    amounts: bytes = b""
    usual_amount: float = 0.0
    hours: bytes = bytes(HOURS * NUMBER)
    tool_surprise: float = 0.0
    bigram_surprise: float = 0.0
    burst_level: float = 0.0
    burst: float = 0.0
    reads: float = 0.0
    failures: float = 0.0
    anomalies: float = 0.0
    last_tool: bytes = NO_NAME
    day: int = 0
    day_usd: float = 0.0
    taken_in: bytes = b""

    def changeable(self) -> "AgentState":
        """A copy that can change without this one changing."""
        other = copy(self)
        other.tools = self.tools.copy()
        other.aimed = self.aimed.copy()
        other.bigrams = self.bigrams.copy()
        other.destinations = self.destinations.copy()
        other.resources = self.resources.copy()
        other.hosts = self.hosts.copy()
        other.waiting = self.waiting.copy()
        other.trials = self.trials[:]
        other.rates = self.rates[:]
        return other

    def recent_amounts(self) -> tuple[float, ...]:
        """The last amounts, as square roots of dollars, oldest first."""
        return _doubles(len(self.amounts) // NUMBER).unpack(self.amounts)

    def add_amount(self, root: float) -> None:
        """Remember an amount's square root; beyond MAX_AMOUNTS the oldest goes."""
        self.amounts = (self.amounts + _pack(root))[-MAX_AMOUNTS * NUMBER :]

    def in_hour(self, hour: int) -> float:
        """How often the agent was active in this hour of the day."""
        count: float = _unpack(self.hours, hour * NUMBER)[0]
        return count

    def around(self, hour: int) -> float:
        """How often the agent was active in this hour of the day, the hours beside it counting half."""
        at = hour * NUMBER
        before, after = (at or HOURS * NUMBER) - NUMBER, (at + NUMBER) % (HOURS * NUMBER)
        hours = self.hours
        beside: float = _unpack(hours, before)[0] + _unpack(hours, after)[0]
        own: float = _unpack(hours, at)[0]
        return own / 2 + beside / 4

    def add_hour(self, hour: int, weight: float) -> None:
        """Count an event in this hour of the day."""
        at = hour * NUMBER
        hours = self.hours
        self.hours = b"".join((hours[:at], _pack(_unpack(hours, at)[0] + weight), hours[at + NUMBER :]))

    def scale_hours(self, factor: float) -> None:
        """Multiply what is counted of every hour."""
        counts = _doubles(HOURS).unpack(self.hours)
        self.hours = b"".join(_pack(count * factor) for count in counts)

    def fading(self, now: float) -> float:
        """What a stored weight is multiplied by to read it at `now`."""
        age = (now - self.landmark) / FADE
        return exp(-age) if age > 0.0 else 1.0


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AgentState)


def encode_state(state: AgentState) -> bytes:
    """The state as MessagePack, about 4 KB at its fullest."""
    return _encoder.encode(state)


def decode_state(data: bytes) -> AgentState:
    """The state from `encode_state()`; raises `StateUnreadable` for anything else or an older layout."""
    try:
        state = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StateUnreadable(str(error)) from error
    if state.layout != LAYOUT:
        raise StateUnreadable(f"layout {state.layout}, this version reads {LAYOUT}")
    return state


@lru_cache(maxsize=8192)
def digest(text: str) -> bytes:
    """A name as a stable 64-bit number."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=NAME).digest()


@lru_cache(maxsize=8192)
def pair_digest(first: bytes, second: bytes) -> bytes:
    """Two names in order as one."""
    return blake2b(first + b">" + second, digest_size=NAME).digest()
