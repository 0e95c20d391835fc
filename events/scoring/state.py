"""What the scorer remembers of one agent: a few kilobytes that fade over thirty days.

Weights use forward decay (Cormode et al., "Forward Decay", ICDE 2009): an observation at time t is stored
as exp((t - landmark) / FADE) and read back scaled by exp((landmark - now) / FADE), so nothing has to be
rewritten as time passes. Names are kept as 64-bit BLAKE2b digests: bounded, and not to be collided at will.
"""

from copy import copy
from hashlib import blake2b
from math import exp

import msgspec

DAY = 86_400.0
FADE = 30 * DAY
"""Seconds after which an observation weighs 1/e of what it did."""
RESCALE_AFTER = 10 * FADE
"""Age of the landmark at which stored weights are rewritten, well before exp() grows unwieldy."""
BURST_FADE = 60.0
READ_FADE = 600.0
FAILURE_FADE = 600.0
ANOMALY_FADE = 900.0
FORGOTTEN = 0.05
"""A weight below which a name counts as never seen (some ninety days after a single sighting)."""

MAX_DESTINATIONS = 56
MAX_RESOURCES = 32
MAX_HOSTS = 16
MAX_TOOLS = 40
MAX_BIGRAMS = 40
MAX_AMOUNTS = 32
LAYOUT = 1
TABLES = ("tools", "aimed", "bigrams", "destinations", "resources", "hosts", "trials", "rates")
"""The fields of a state that are dictionaries."""

Weights = dict[int, float]


class StateUnreadable(ValueError):
    """Stored state that this version can't use; rebuild it from the agent's events."""


class AgentState(msgspec.Struct, array_like=True):
    """One agent's habits and its last minutes. Times are seconds since the epoch by the receive clock.

    Habits (learned from low events only): `learned` events in all; `tools`, `aimed` (of those, with a
    target), `bigrams`, `destinations`, `resources`, `hosts` as digest → weight; per kind of name, `trials`,
    how often one was seen, and `rates`, the running share of new ones; `amounts`, the last log-dollar
    amounts; the running means of tool and bigram surprise (nats) and of the burst level.
    Last minutes (from every event): `burst`, `reads`, `failures`, `anomalies` as fading counts at
    `last_at`; `last_tool`; `day` (days since the epoch) and `day_usd`, the day's transactions so far.
    """

    layout: int = LAYOUT
    landmark: float = 0.0
    last_at: float = 0.0
    learned: float = 0.0
    tools: Weights = msgspec.field(default_factory=dict)
    aimed: Weights = msgspec.field(default_factory=dict)
    bigrams: Weights = msgspec.field(default_factory=dict)
    destinations: Weights = msgspec.field(default_factory=dict)
    resources: Weights = msgspec.field(default_factory=dict)
    hosts: Weights = msgspec.field(default_factory=dict)
    trials: dict[str, float] = msgspec.field(default_factory=dict)
    rates: dict[str, float] = msgspec.field(default_factory=dict)
    amounts: tuple[float, ...] = ()
    tool_surprise: float = 0.0
    bigram_surprise: float = 0.0
    burst_level: float = 0.0
    burst: float = 0.0
    reads: float = 0.0
    failures: float = 0.0
    anomalies: float = 0.0
    last_tool: int = 0
    day: int = 0
    day_usd: float = 0.0

    def changeable(self) -> "AgentState":
        """A copy that can change without this one changing."""
        changed = copy(self)
        for name in TABLES:
            setattr(changed, name, dict(getattr(self, name)))
        return changed

    def fading(self, now: float) -> float:
        """What a stored weight is multiplied by to read it at `now`."""
        return exp(min((self.landmark - now) / FADE, 0.0))


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AgentState)


def encode_state(state: AgentState) -> bytes:
    """The state as MessagePack, about 5 KB at its fullest."""
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


def digest(text: str) -> int:
    """A name as a stable 64-bit number."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def pair_digest(first: int, second: int) -> int:
    """Two names in order as one."""
    return int.from_bytes(blake2b(b"%d>%d" % (first, second), digest_size=8).digest(), "big")


def known(weights: Weights, name: int, fading: float) -> bool:
    """Whether the name was seen and not yet forgotten."""
    return weights.get(name, 0.0) * fading >= FORGOTTEN


def remember(weights: Weights, name: int, weight: float, limit: int) -> None:
    """Add to a name's weight; beyond `limit` names the lightest goes."""
    if name not in weights and len(weights) >= limit:
        del weights[min(weights, key=weights.__getitem__)]
    weights[name] = weights.get(name, 0.0) + weight
