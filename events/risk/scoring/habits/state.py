"""An agent's state: a few kilobytes of habits that fade over thirty days.

Weights use forward decay (Cormode et al., "Forward Decay", ICDE 2009): an observation at time t is stored
as exp((t - landmark) / FADE) and read back scaled by exp((landmark - now) / FADE), so nothing is rewritten as
time passes. Names are 64-bit BLAKE2b digests: bounded, and an agent can't choose colliding ones. Tables stay
packed: searching fifty digests takes less than building a dictionary of them for each event.
"""

import math

from events.risk.scoring.habits import packed
from events.risk.scoring.habits.tables import Table, scaled

DAY = 86_400.0
FADE = 30 * DAY  # seconds after which an observation weighs 1/e of what it did
RESCALE_AFTER = 10 * FADE  # age of the landmark at which weights are rewritten, before exp() overflows
MEAN_RATE = 0.05  # share of a new value in the running means

MAX_AMOUNTS = 40
HOURS = 24
LAYOUT = 5

AIMED = ("api_call", "data_mutation", "transaction_initiated", "transaction_anomaly")
KINDS = (*AIMED, "host", "resource", "amount", "object", "container", "event")
"""What has a rate of novelty: where each sending action goes; hosts, resources, unstated amounts; what is
acted on, and what holds it. Of hosts no feature asks; of events, whatever they score, only the number of
trials counts.
"""
KIND = {kind: index for index, kind in enumerate(KINDS)}
EVENT = KIND["event"]
AIM = {kind: KIND[kind] for kind in AIMED} | dict.fromkeys(
    ("data_access", "message_signed", "authentication_attempt"), KIND["api_call"]
)
"""The kind of novelty of where an action goes; what sends nothing by its type counts as a call if it does."""

NO_NAME = bytes(packed.NAME)
NO_TRIALS, ALL_NEW = packed.pack((0.0,) * len(KINDS)), packed.pack((1.0,) * len(KINDS))
NO_HOURS = bytes(HOURS * packed.NUMBER)


class StateUnreadable(ValueError):
    """Stored bytes that are no state or baseline of this version."""


class AgentState:
    """One agent's habits and its last minutes. Times are seconds since the epoch by the receive clock.

    Habits, learned from low events: `learned` (how many, as a stored weight); tables of `tools`, `aimed`
    (tools used with a target), `bigrams`, `destinations`, `hosts`, `resources` (touched), `objects` (acted
    on, and what holds them) and `acts`; packed in the order of `KINDS`, `trials` (how often one was tried,
    never faded) and `rates` (the running share of new ones); `amounts` (the last ones, as square roots of
    dollars) and `hours` (activity in each hour of the day, UTC); running means `usual_amount` (log-dollars),
    `tool_surprise`, `bigram_surprise` (nats) and `burst_level` (nats). From medium events too: `waiting`
    (`habits.probation`), whose names become `destinations` or `acts`, and `paid` (`habits.paid`). From all
    events, the usual day: `days` (how many),
    `usual_outflow` (log-dollars), `usual_new` (events that went to a place never met before) and
    `usual_fresh` (its peak of `fresh`, as a logarithm).

    Last minutes and hours, from every event: `burst`, `reads`, `failures`, `anomalies`, `fresh` (new
    resources), `hour_new` (events that went to a place never met): counts that fade from `last_at`, at the
    rates of `habits.comparison`; `last_tool`; of the agent's last day `day_new` and `fresh_peak`; `day` (days
    since the epoch) and `day_usd`, that day's transactions.
    `taken_in`: ids of events and reviews learned outside the order of events (`habits.learning`).
    """

    def __init__(self) -> None:
        self.landmark = self.last_at = self.learned = 0.0
        self.tools, self.aimed, self.bigrams = Table(), Table(), Table()
        self.destinations, self.resources, self.hosts = Table(), Table(), Table()
        self.waiting, self.objects, self.acts, self.paid = Table(), Table(), Table(), Table()
        self.trials, self.rates, self.hours = NO_TRIALS, ALL_NEW, NO_HOURS
        self.amounts = b""
        self.usual_amount = self.tool_surprise = self.bigram_surprise = self.burst_level = 0.0
        self.burst = self.reads = self.failures = self.anomalies = 0.0
        self.last_tool = NO_NAME
        self.day = 0
        self.day_usd = 0.0
        self.hour_new = self.days = self.usual_outflow = self.day_new = self.usual_new = 0.0
        self.fresh = self.fresh_peak = self.usual_fresh = 0.0
        self.taken_in = b""

    def changeable(self) -> "AgentState":
        """Return a copy that can change without this one changing."""
        return decode_state(encode_state(self))

    def trials_of(self, kind: int) -> float:
        return packed.double_at(self.trials, kind * packed.NUMBER)

    def rate_of(self, kind: int) -> float:
        """Return the running share of new names of this kind."""
        return packed.double_at(self.rates, kind * packed.NUMBER)

    def count_trial(self, kind: int, new: bool) -> None:
        """Count a name of this kind; the share of new ones starts at 1 and follows the last twenty or so."""
        count, rate = self.trials_of(kind), self.rate_of(kind)
        share = max(MEAN_RATE, 1.0 / (count + 2.0))
        self.rates = packed.with_double(self.rates, kind * packed.NUMBER, rate + (new - rate) * share)
        self.trials = packed.with_double(self.trials, kind * packed.NUMBER, count + 1.0)

    def add_amount(self, root: float) -> None:
        """Add an amount's square root; beyond MAX_AMOUNTS the oldest goes."""
        amounts = packed.with_double(self.amounts, len(self.amounts), root)
        self.amounts = amounts[-MAX_AMOUNTS * packed.NUMBER :]

    def in_hour(self, hour: int) -> float:
        """Return the stored weight of the agent's activity in an hour of the day."""
        return packed.double_at(self.hours, hour * packed.NUMBER)

    def around(self, hour: int) -> float:
        """Return the stored weight of an hour and its neighbours: half of it, and a quarter of each."""
        before, after = (hour or HOURS) - 1, (hour + 1) % HOURS
        beside = self.in_hour(before) + self.in_hour(after)
        return self.in_hour(hour) / 2 + beside / 4

    def add_hour(self, hour: int, weight: float) -> None:
        self.hours = packed.with_double(self.hours, hour * packed.NUMBER, self.in_hour(hour) + weight)

    def scale(self, factor: float) -> None:
        """Multiply all stored weights; `waiting` and `paid` hold packed numbers instead."""
        self.learned *= factor
        self.hours = scaled(self.hours, factor)
        for table in (
            self.tools, self.aimed, self.bigrams, self.destinations, self.resources, self.hosts,
            self.objects, self.acts,
        ):  # fmt: skip
            table.scale(factor)

    def fading(self, now: float) -> float:
        """Return the factor by which a stored weight is read at `now`."""
        age = (now - self.landmark) / FADE
        return math.exp(-age) if age > 0.0 else 1.0


_HEAD = 13  # bytes: the layout, and how many names each table has, then amounts and `taken_in`
_NUMBERS = _HEAD + packed.NAME
_TRIALS = _NUMBERS + 21 * packed.NUMBER  # as many as `encode_state()` packs
_RATES = _TRIALS + len(KINDS) * packed.NUMBER
_HOURS = _RATES + len(KINDS) * packed.NUMBER
_TABLES = _HOURS + HOURS * packed.NUMBER


def encode_state(state: AgentState) -> bytes:
    """Return the state as little-endian bytes, about 14 KB at its fullest, 2 KB as a rule."""
    tools, aimed, bigrams, destinations = state.tools, state.aimed, state.bigrams, state.destinations
    resources, hosts, waiting = state.resources, state.hosts, state.waiting
    objects, acts, paid = state.objects, state.acts, state.paid
    head = bytes((
        LAYOUT, len(tools), len(aimed), len(bigrams), len(destinations), len(resources), len(hosts),
        len(waiting), len(objects), len(acts), len(paid),
        len(state.amounts) // packed.NUMBER, len(state.taken_in) // packed.NAME,
    ))  # fmt: skip
    numbers = packed.pack((
        state.landmark, state.last_at, state.learned, state.usual_amount, state.tool_surprise,
        state.bigram_surprise, state.burst_level, state.burst, state.reads, state.failures, state.anomalies,
        float(state.day), state.day_usd, state.days, state.usual_outflow, state.day_new, state.usual_new,
        state.hour_new, state.fresh, state.fresh_peak, state.usual_fresh,
    ))  # fmt: skip
    return b"".join((
        head, state.last_tool, numbers, state.trials, state.rates, state.hours,
        tools.names, tools.weights, aimed.names, aimed.weights, bigrams.names, bigrams.weights,
        destinations.names, destinations.weights, resources.names, resources.weights,
        hosts.names, hosts.weights, waiting.names, waiting.weights,
        objects.names, objects.weights, acts.names, acts.weights, paid.names, paid.weights,
        state.amounts, state.taken_in,
    ))  # fmt: skip


def decode_state(data: bytes) -> AgentState:
    """Return the state from `encode_state()`. Raises StateUnreadable for anything else or an older layout."""
    if not data or data[0] != LAYOUT:
        raise StateUnreadable(f"layout {data[:1].hex() or 'none'}, this version reads {LAYOUT}")
    if len(data) < _TABLES or len(data) != _end(data):
        raise StateUnreadable(f"{len(data)} bytes aren't what its head says")
    state = AgentState.__new__(AgentState)
    state.last_tool = packed.part(data, _HEAD, _NUMBERS)
    (
        state.landmark, state.last_at, state.learned, state.usual_amount, state.tool_surprise,
        state.bigram_surprise, state.burst_level, state.burst, state.reads, state.failures, state.anomalies,
        day, state.day_usd, state.days, state.usual_outflow, state.day_new, state.usual_new,
        state.hour_new, state.fresh, state.fresh_peak, state.usual_fresh,
    ) = packed.unpack(packed.part(data, _NUMBERS, _TRIALS))  # fmt: skip
    state.day = int(day)
    state.trials = packed.part(data, _TRIALS, _RATES)
    state.rates = packed.part(data, _RATES, _HOURS)
    state.hours = packed.part(data, _HOURS, _TABLES)
    state.tools, state.aimed, state.bigrams = _table(data, 1), _table(data, 2), _table(data, 3)
    state.destinations, state.resources, state.hosts = _table(data, 4), _table(data, 5), _table(data, 6)
    state.waiting, state.objects, state.acts = _table(data, 7), _table(data, 8), _table(data, 9)
    state.paid = _table(data, 10)
    amounts = _start(data, 11)
    state.amounts = packed.part(data, amounts, amounts + data[11] * packed.NUMBER)
    state.taken_in = packed.part(data, amounts + data[11] * packed.NUMBER, len(data))
    return state


def _end(data: bytes) -> int:
    return _start(data, 11) + data[11] * packed.NUMBER + data[12] * packed.NAME


def _table(data: bytes, place: int) -> Table:
    names = _start(data, place)
    weights = names + data[place] * packed.NAME
    end = weights + data[place] * packed.NUMBER
    return Table(packed.part(data, names, weights), packed.part(data, weights, end))


def _start(data: bytes, place: int) -> int:
    """Return where the table of a place in the head begins; for place 11, where the last one ends."""
    names = 0
    for before in range(1, place):
        names += data[before]
    return _TABLES + names * (packed.NAME + packed.NUMBER)
