"""What the scorer remembers of one agent: a few kilobytes that fade over thirty days.

Weights use forward decay (Cormode et al., "Forward Decay", ICDE 2009): an observation at time t is stored
as exp((t - landmark) / FADE) and read back scaled by exp((landmark - now) / FADE), so nothing has to be
rewritten as time passes. Names are kept as 64-bit BLAKE2b digests: bounded, and not to be collided at will.

A state is read from bytes and written back for every event or few, and looked into a handful of times in
between. So its tables stay packed: searching fifty digests takes less than building a dictionary of them.
"""

from math import exp

from events.scoring.packed import NAME, NUMBER, double_at, pack, part, unpack, with_double
from events.scoring.tables import Table, scaled, table_of

DAY = 86_400.0
FADE = 30 * DAY
"""Seconds after which an observation weighs 1/e of what it did."""
RESCALE_AFTER = 10 * FADE
"""Age of the landmark at which stored weights are rewritten, well before exp() grows unwieldy."""
PROBATION = 3 * DAY
"""How long a name waits that could be an attack's: an agent's after reading, whatever is new to a tenant."""

MAX_DESTINATIONS = 56
MAX_RESOURCES = 32
MAX_HOSTS = 16
MAX_WAITING = 24
MAX_TOOLS = 40
MAX_BIGRAMS = 40
MAX_AMOUNTS = 40
HOURS = 24
LAYOUT = 4

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

NO_NAME = bytes(NAME)
NO_TRIALS, ALL_NEW = pack((0.0,) * len(KINDS)), pack((1.0,) * len(KINDS))
NO_HOURS = bytes(HOURS * NUMBER)


class StateUnreadable(ValueError):
    """Stored state that this version can't use; rebuild it from the agent's events."""


class AgentState:
    """One agent's habits and its last minutes. Times are seconds since the epoch by the receive clock.

    Habits (learned from low events only): `learned` events in all; `tools`, `aimed` (of those, with a
    target), `bigrams`, `destinations`, `resources`, `hosts` by digest; `waiting`, when a
    destination was first written to after reading; by the order of `KINDS`, `trials`,
    how often one was seen, and `rates`, the running share of new ones; `amounts`, the last amounts as square
    roots of dollars, and `usual_amount`, the long running mean of their log-dollars; `hours`, how often each
    hour of the day (UTC), all packed as doubles; the running means of tool and bigram surprise (nats) and of
    the burst level.
    Last minutes (from every event): `burst`, `reads`, `failures`, `anomalies` as fading counts at
    `last_at`; `last_tool`; `day` (days since the epoch) and `day_usd`, the day's
    transactions so far.
    `taken_in` are ids of what was taken in past the usual way, so that it isn't twice (`relearning`).
    """

    def __init__(self) -> None:
        self.landmark = 0.0
        self.last_at = 0.0
        self.learned = 0.0
        self.tools = Table()
        self.aimed = Table()
        self.bigrams = Table()
        self.destinations = Table()
        self.resources = Table()
        self.hosts = Table()
        self.waiting = Table()
        self.trials = NO_TRIALS
        self.rates = ALL_NEW
        self.amounts = b""
        self.usual_amount = 0.0
        self.hours = NO_HOURS
        self.tool_surprise = 0.0
        self.bigram_surprise = 0.0
        self.burst_level = 0.0
        self.burst = 0.0
        self.reads = 0.0
        self.failures = 0.0
        self.anomalies = 0.0
        self.last_tool = NO_NAME
        self.day = 0
        self.day_usd = 0.0
        self.taken_in = b""

    def changeable(self) -> "AgentState":
        """A copy that can change without this one changing."""
        return decode_state(encode_state(self))

    def add_amount(self, root: float) -> None:
        """Remember an amount's square root; beyond MAX_AMOUNTS the oldest goes."""
        self.amounts = with_double(self.amounts, len(self.amounts), root)[-MAX_AMOUNTS * NUMBER :]

    def in_hour(self, hour: int) -> float:
        """How often the agent was active in this hour of the day."""
        return double_at(self.hours, hour * NUMBER)

    def around(self, hour: int) -> float:
        """How often the agent was active in this hour of the day, the hours beside it counting half."""
        before, after = (hour or HOURS) - 1, (hour + 1) % HOURS
        beside = self.in_hour(before) + self.in_hour(after)
        return self.in_hour(hour) / 2 + beside / 4

    def add_hour(self, hour: int, weight: float) -> None:
        """Count an event in this hour of the day."""
        self.hours = with_double(self.hours, hour * NUMBER, self.in_hour(hour) + weight)

    def scale(self, factor: float) -> None:
        """Multiply everything that fades as habits do."""
        self.learned *= factor
        self.hours = scaled(self.hours, factor)
        for table in (
            self.tools,
            self.aimed,
            self.bigrams,
            self.destinations,
            self.resources,
            self.hosts,
        ):
            table.scale(factor)

    def fading(self, now: float) -> float:
        """What a stored weight is multiplied by to read it at `now`."""
        age = (now - self.landmark) / FADE
        return exp(-age) if age > 0.0 else 1.0


_HEAD = 10
"""Bytes before the fixed part: the layout, and how many names each table has, then amounts and `taken_in`."""
_NUMBERS = _HEAD + NAME
_TRIALS = _NUMBERS + 13 * NUMBER
_RATES = _TRIALS + len(KINDS) * NUMBER
_HOURS = _RATES + len(KINDS) * NUMBER
_TABLES = _HOURS + HOURS * NUMBER


def encode_state(state: AgentState) -> bytes:
    """The state as bytes, about 4 KB at its fullest.

    Little-endian: the head, `last_tool`, thirteen numbers, `trials`, `rates`, `hours`, each table's names and
    its weights, `amounts` and `taken_in`.
    """
    head = bytes((
        LAYOUT,
        len(state.tools),
        len(state.aimed),
        len(state.bigrams),
        len(state.destinations),
        len(state.resources),
        len(state.hosts),
        len(state.waiting),
        len(state.amounts) // NUMBER,
        len(state.taken_in) // NAME,
    ))  # fmt: skip
    numbers = pack((
        state.landmark,
        state.last_at,
        state.learned,
        state.usual_amount,
        state.tool_surprise,
        state.bigram_surprise,
        state.burst_level,
        state.burst,
        state.reads,
        state.failures,
        state.anomalies,
        float(state.day),
        state.day_usd,
    ))  # fmt: skip
    return b"".join((
        head,
        state.last_tool,
        numbers,
        state.trials,
        state.rates,
        state.hours,
        state.tools.names,
        state.tools.weights,
        state.aimed.names,
        state.aimed.weights,
        state.bigrams.names,
        state.bigrams.weights,
        state.destinations.names,
        state.destinations.weights,
        state.resources.names,
        state.resources.weights,
        state.hosts.names,
        state.hosts.weights,
        state.waiting.names,
        state.waiting.weights,
        state.amounts,
        state.taken_in,
    ))  # fmt: skip


def decode_state(data: bytes) -> AgentState:
    """The state from `encode_state()`; raises `StateUnreadable` for anything else or an older layout."""
    if not data or data[0] != LAYOUT:
        raise StateUnreadable(f"layout {data[:1].hex() or 'none'}, this version reads {LAYOUT}")
    if len(data) < _TABLES or len(data) != _start(data, 8) + data[8] * NUMBER + data[9] * NAME:
        raise StateUnreadable(f"{len(data)} bytes aren't what its head says")
    state = AgentState.__new__(AgentState)
    state.last_tool = part(data, _HEAD, _NUMBERS)
    numbers = unpack(part(data, _NUMBERS, _TRIALS))
    state.landmark = numbers[0]
    state.last_at = numbers[1]
    state.learned = numbers[2]
    state.usual_amount = numbers[3]
    state.tool_surprise = numbers[4]
    state.bigram_surprise = numbers[5]
    state.burst_level = numbers[6]
    state.burst = numbers[7]
    state.reads = numbers[8]
    state.failures = numbers[9]
    state.anomalies = numbers[10]
    state.day = int(numbers[11])
    state.day_usd = numbers[12]
    state.trials = part(data, _TRIALS, _RATES)
    state.rates = part(data, _RATES, _HOURS)
    state.hours = part(data, _HOURS, _TABLES)
    state.tools = _table(data, 1)
    state.aimed = _table(data, 2)
    state.bigrams = _table(data, 3)
    state.destinations = _table(data, 4)
    state.resources = _table(data, 5)
    state.hosts = _table(data, 6)
    state.waiting = _table(data, 7)
    amounts = _start(data, 8)
    state.amounts = part(data, amounts, amounts + data[8] * NUMBER)
    state.taken_in = part(data, amounts + data[8] * NUMBER, len(data))
    return state


def _table(data: bytes, place: int) -> Table:
    """The table of a place in the head."""
    names = _start(data, place)
    weights = names + data[place] * NAME
    return table_of(part(data, names, weights), part(data, weights, weights + data[place] * NUMBER))


def _start(data: bytes, place: int) -> int:
    """Where the table of a place in the head begins; of place 8, where the last one ends."""
    names = 0
    for before in range(1, place):
        names += data[before]
    return _TABLES + names * (NAME + NUMBER)
