"""An agent's state, a few kilobytes of habits that fade over thirty days, and a tenant's baseline.

Weights use forward decay (Cormode et al., "Forward Decay", ICDE 2009): an observation at time t is stored
as exp((t - landmark) / FADE) and read back scaled by exp((landmark - now) / FADE), so nothing is rewritten as
time passes. Names are 64-bit BLAKE2b digests: bounded, and an agent can't choose colliding ones. Tables stay
packed: searching fifty digests takes less than building a dictionary of them for each event.
"""

import math
from collections.abc import Iterable

import msgspec

from events.risk.scoring import packed
from events.risk.scoring.contract import SENDING, Event
from events.risk.scoring.details import read
from events.risk.scoring.tables import Table, digest

DAY = 86_400.0
FADE = 30 * DAY  # seconds after which an observation weighs 1/e of what it did
RESCALE_AFTER = 10 * FADE  # age of the landmark at which weights are rewritten, before exp() overflows
MEAN_RATE = 0.05  # share of a new value in the running means

MAX_AMOUNTS = 40
HOURS = 24
LAYOUT = 7
SURPRISES, WIDTH = 20, 0.4  # counts of a state's surprises, and how many nats each spans; the last is open

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
_RATES = len(KINDS)  # where the counts of each sort begin among a state's; trials begin them
_HOURS = _RATES + len(KINDS)
_SURPRISES = _HOURS + HOURS
_END = _SURPRISES + SURPRISES
NO_COUNTS = packed.pack((0.0,) * _RATES + (1.0,) * (_HOURS - _RATES) + (0.0,) * (_END - _HOURS))


class StateUnreadable(ValueError):
    """Stored bytes that are no state or baseline of this version."""


IMPOSSIBLE = (ArithmeticError, LookupError, ValueError)
"""What folding events into a state raises if its numbers can't be."""


class AgentState:
    """One agent's habits and its last minutes. Times are seconds since the epoch by the receive clock.

    Habits, learned from low events: `learned` (how many, as a stored weight); tables of `tools`, `aimed`
    (tools used with a target), `bigrams`, `destinations`, `hosts`, `resources` (touched), `objects` (acted
    on, and what holds them) and `acts`; `amounts` (the last ones, as square roots of dollars); in `counts`,
    in the order of `KINDS` how often one was tried (never faded) and the running share of new ones, then the
    activity in each hour of the day (UTC); running means `usual_amount` (log-dollars), `tool_surprise`,
    `bigram_surprise` (nats) and `burst_level` (nats). From medium events too, as numbers of
    `tables`: `waiting`, whose names become `destinations` or `acts`, and `paid`. From all events, the usual
    day: `days` (how many), `usual_outflow` (log-dollars), `usual_new` (events that went to a place never met
    before) and `usual_fresh` (its peak of `fresh`, as a logarithm).

    Last minutes and hours, from every event: `burst`, `reads`, `failures`, `anomalies`, `fresh` (new
    resources), `hour_new` (events that went to a place never met): counts that fade from `last_at`, at the
    rates of `comparison`; `last_tool`; of the agent's last day `day_new` and `fresh_peak`; `day` (days
    since the epoch) and `day_usd`, that day's transactions.
    How strange its events are: at the end of `counts` how many had about so much evidence against them
    (`model`), and `credit` (1, less after each alarm); `strange`, the same of the last minutes.
    `taken_in`: ids of events and reviews learned outside the order of events (`learning`).
    """

    def __init__(self) -> None:
        self.landmark = self.last_at = self.learned = 0.0
        self.tools, self.aimed, self.bigrams = Table(), Table(), Table()
        self.destinations, self.resources, self.hosts = Table(), Table(), Table()
        self.waiting, self.objects, self.acts, self.paid = Table(), Table(), Table(), Table()
        self.counts, self.credit, self.strange = bytearray(NO_COUNTS), 1.0, 0.0
        self.amounts = b""
        self.usual_amount = self.tool_surprise = self.bigram_surprise = self.burst_level = 0.0
        self.burst = self.reads = self.failures = self.anomalies = 0.0
        self.last_tool = NO_NAME
        self.day = self.day_usd = 0.0
        self.hour_new = self.days = self.usual_outflow = self.day_new = self.usual_new = 0.0
        self.fresh = self.fresh_peak = self.usual_fresh = 0.0
        self.taken_in = b""

    def changeable(self) -> "AgentState":
        """Return a copy that can change without this one changing."""
        return decode_state(encode_state(self))

    def trials_of(self, kind: int) -> float:
        return packed.count_at(self.counts, kind)

    def rate_of(self, kind: int) -> float:
        """Return the running share of new names of this kind."""
        return packed.count_at(self.counts, _RATES + kind)

    def count_trial(self, kind: int, new: bool) -> None:
        """Count a name of this kind; the share of new ones starts at 1 and follows the last twenty or so."""
        count, rate = self.trials_of(kind), self.rate_of(kind)
        share = max(MEAN_RATE, 1.0 / (count + 2.0))
        packed.put(self.counts, _RATES + kind, rate + (new - rate) * share)
        packed.put(self.counts, kind, count + 1.0)

    def add_amount(self, root: float) -> None:
        """Add an amount's square root; beyond MAX_AMOUNTS the oldest goes."""
        amounts = packed.with_double(self.amounts, len(self.amounts), root)
        self.amounts = amounts[-MAX_AMOUNTS * packed.NUMBER :]

    def in_hour(self, hour: int) -> float:
        """Return the stored weight of the agent's activity in an hour of the day."""
        return packed.count_at(self.counts, _HOURS + hour)

    def around(self, hour: int) -> float:
        """Return the stored weight of an hour and its neighbours: half of it, and a quarter of each."""
        before, after = (hour or HOURS) - 1, (hour + 1) % HOURS
        beside = self.in_hour(before) + self.in_hour(after)
        return self.in_hour(hour) / 2 + beside / 4

    def add_hour(self, hour: int, weight: float) -> None:
        packed.put(self.counts, _HOURS + hour, self.in_hour(hour) + weight)

    def surprises_from(self, place: int) -> float:
        """Return the stored weight of the surprises at a place of the counts and beyond it."""
        total = 0.0
        for at in range(_SURPRISES + place, _END):
            total += packed.count_at(self.counts, at)
        return total

    def count_surprise(self, place: int, weight: float) -> None:
        at = _SURPRISES + place
        packed.put(self.counts, at, packed.count_at(self.counts, at) + weight)

    def uncount_surprise(self, weight: float) -> None:
        """Take so much off the greatest surprises: which one an attack's was, nobody noted."""
        for at in range(_END - 1, _SURPRISES - 1, -1):
            held = packed.count_at(self.counts, at)
            taken = min(held, weight)
            if taken:
                packed.put(self.counts, at, held - taken)
                weight -= taken

    def scale(self, factor: float) -> None:
        """Multiply all stored weights; `waiting` and `paid` hold packed numbers instead."""
        self.learned *= factor
        for at in range(_HOURS, _END):
            packed.put(self.counts, at, packed.count_at(self.counts, at) * factor)
        for table in (
            self.tools, self.aimed, self.bigrams, self.destinations, self.resources, self.hosts,
            self.objects, self.acts,
        ):  # fmt: skip
            table.scale(factor)

    def fading(self, now: float) -> float:
        """Return the factor by which a stored weight is read at `now`."""
        age = (now - self.landmark) / FADE
        return math.exp(-age) if age > 0.0 else 1.0


_TABLES, _NUMBERS = 10, 23
_HEAD = 1 + _TABLES + 2  # bytes: the layout; how many names each table has, amounts and `taken_in`
_COUNTS = _HEAD + packed.NAME + _NUMBERS * packed.NUMBER  # where the counts begin, and the tables after them
_FIXED = _COUNTS + len(NO_COUNTS)


def encode_state(state: AgentState) -> bytes:
    """Return the state as little-endian bytes, about 14 KB at its fullest, 2 KB as a rule."""
    numbers = packed.pack_numbers((
        state.landmark, state.last_at, state.learned, state.usual_amount, state.tool_surprise,
        state.bigram_surprise, state.burst_level, state.burst, state.reads, state.failures, state.anomalies,
        state.day, state.day_usd, state.days, state.usual_outflow, state.day_new, state.usual_new,
        state.hour_new, state.fresh, state.fresh_peak, state.usual_fresh, state.strange, state.credit,
    ))  # fmt: skip
    tables = [
        state.tools, state.aimed, state.bigrams, state.destinations, state.resources, state.hosts,
        state.waiting, state.objects, state.acts, state.paid,
    ]  # fmt: skip
    head = bytearray(_HEAD)
    parts: list[bytes | bytearray] = [head, state.last_tool, numbers, state.counts]
    head[0] = LAYOUT
    for place, table in enumerate(tables, 1):
        head[place] = len(table)
        parts.append(table.held)
    head[_HEAD - 2] = len(state.amounts) // packed.NUMBER
    head[_HEAD - 1] = len(state.taken_in) // packed.NAME
    parts += state.amounts, state.taken_in
    return b"".join(parts)


def decode_state(data: bytes) -> AgentState:
    """Return the state from `encode_state()`.

    Raises StateUnreadable for anything else, an older layout, or a number that is NaN or infinite.
    """
    if len(data) < _FIXED or data[0] != LAYOUT:
        raise StateUnreadable(f"layout {data[:1].hex() or 'none'}, this version reads {LAYOUT}")
    end = _FIXED
    for place in range(1, _HEAD):
        end += data[place] * (packed.NAME + packed.NUMBER if place <= _TABLES else packed.NUMBER)
    if len(data) != end:
        raise StateUnreadable(f"{len(data)} bytes aren't what its head says")
    state = AgentState.__new__(AgentState)
    state.last_tool = packed.part(data, _HEAD, _HEAD + packed.NAME)
    (
        state.landmark, state.last_at, state.learned, state.usual_amount, state.tool_surprise,
        state.bigram_surprise, state.burst_level, state.burst, state.reads, state.failures, state.anomalies,
        state.day, state.day_usd, state.days, state.usual_outflow, state.day_new, state.usual_new,
        state.hour_new, state.fresh, state.fresh_peak, state.usual_fresh, state.strange, state.credit,
    ) = packed.numbers_at(data, _HEAD + packed.NAME)  # fmt: skip
    state.counts = bytearray(packed.part(data, _COUNTS, _FIXED))
    are_finite = packed.are_finite(data, _HEAD + packed.NAME, _FIXED)
    start, tables = _FIXED, []
    for place in range(1, _TABLES + 1):
        end = start + data[place] * (packed.NAME + packed.NUMBER)
        table = Table.__new__(Table)
        table.held = packed.part(data, start, end)
        are_finite = are_finite and packed.are_finite(data, (start + end) // 2, end)
        tables.append(table)
        start = end
    (
        state.tools, state.aimed, state.bigrams, state.destinations, state.resources, state.hosts,
        state.waiting, state.objects, state.acts, state.paid,
    ) = tables  # fmt: skip
    end = start + data[_HEAD - 2] * packed.NUMBER
    state.amounts, state.taken_in = packed.part(data, start, end), packed.part(data, end, len(data))
    if not (are_finite and packed.are_finite(data, start, end)):
        raise StateUnreadable("a number is NaN or infinite")
    return state


MAX_DESTINATIONS, MAX_HOSTS, MAX_TOOLS, MAX_WAITING = 1_024, 256, 256, 512
ENOUGH_EVENTS = 100.0  # events (faded) from which a tenant's habits may carry a young agent's score into high
SHARED = 0.9  # share of a name's novelty that goes if the tenant knows it, for an agent without habits
OWN_HABITS = 300.0  # learned events (faded) from which an agent is judged by its own habits alone
PROBATION = 3 * DAY  # seconds after a name's first sighting from which another agent vouches for it
TAGS = 1 << 16  # a waiting name has the second of its first sighting, times this, plus a tag of its agent
BASELINE_LAYOUT = 4
MOST_COUNTED = 100.0  # events that the surprises of one agent count as among its tenant's, at most


class Baseline:
    """A tenant's pooled destinations, hosts and tools, which fade as a state's do.

    `learned` counts events; `waiting` has the names that one agent named: when, and which (as `TAGS` says).
    `surprises`: of how many of its agents' events each place of their counts, or one beyond it, was; they
    don't fade, but are summed up anew. Hosts tell what is common (`events.risk.baselines`); no score asks for
    them.
    """

    def __init__(self) -> None:
        self.landmark = self.learned = 0.0
        self.destinations, self.hosts, self.tools, self.waiting = Table(), Table(), Table(), Table()
        self.surprises = bytes(SURPRISES * packed.NUMBER)

    def changeable(self) -> "Baseline":
        return decode_baseline(encode_baseline(self))

    def fading(self, now: float) -> float:
        """Return the factor by which a stored weight is read at `now`."""
        return math.exp(min((self.landmark - now) / FADE, 0.0))

    def is_enough(self, now: float) -> bool:
        """Return whether the tenant's habits can stand in for an agent's own."""
        return self.learned * self.fading(now) >= ENOUGH_EVENTS

    def surprises_from(self, place: int) -> float:
        """Return how many of its agents' events surprised as a place of their counts tells, or more."""
        return packed.double_at(self.surprises, place * packed.NUMBER)

    def strangeness(self, table: Table, names: list[bytes], at: float, learned: float) -> float:
        """Return the share of the names' novelty that stays: all, unless the tenant knows every one."""
        fading = self.fading(at)
        if not names or learned >= OWN_HABITS:
            return 1.0
        for name in names:
            if not table.knows(name, fading):
                return 1.0
        return 1.0 - SHARED * (1.0 - learned / OWN_HABITS)


def pool(baseline: Baseline, event: Event, *, agent: str = "", trusted: bool = False) -> None:
    """Fold an event of `agent` that scored low into its tenant's `baseline`.

    A name is known once another agent names it three days after the first one did: an attack on several
    agents at once, or on one for long, doesn't make its destination familiar. The names of a `trusted` event,
    which is known to be ordinary, need no wait.
    """
    facts = read(event.details)
    now = event.received_at
    _rescale(baseline, now)
    weight = math.exp((now - baseline.landmark) / FADE)
    baseline.learned += weight
    names = [(baseline.tools, facts.tool, MAX_TOOLS)] if facts.tool else []
    if event.action_type in SENDING:
        names += [(baseline.destinations, target, MAX_DESTINATIONS) for target in facts.targets]
        names += [(baseline.hosts, host, MAX_HOSTS) for host in facts.hosts]
    for table, text, limit in names:
        name = digest(text)
        if trusted or table.get(name) or _is_vouched_for(baseline.waiting, name, now, agent):
            table.add(name, weight, limit)


def sum_up_surprises(baseline: Baseline, states: Iterable[AgentState], now: float) -> None:
    """Set the `surprises` of a tenant to those of its agents' `states`, each up to `MOST_COUNTED` of them."""
    totals = [0.0] * SURPRISES
    for state in states:
        fading = state.fading(now)
        from_place = [state.surprises_from(place) * fading for place in range(SURPRISES)]
        share = min(1.0, MOST_COUNTED / from_place[0]) if from_place[0] else 0.0
        totals = [total + count * share for total, count in zip(totals, from_place, strict=True)]
    baseline.surprises = packed.pack(tuple(totals))


def _is_vouched_for(waiting: Table, name: bytes, now: float, agent: str) -> bool:
    """Return whether another agent named it at least three days ago; the first call for a name notes it."""
    tag = int.from_bytes(digest(agent)[:2], "little")
    number = waiting.get(name)
    if not number:
        waiting.add(name, float(int(now) * TAGS + tag), MAX_WAITING)
        return False
    since, first = divmod(int(number), TAGS)
    return now - since >= PROBATION and first != tag


def _rescale(baseline: Baseline, now: float) -> None:
    age = now - baseline.landmark
    if age <= RESCALE_AFTER and baseline.learned > 0:
        return
    factor = math.exp(-min(age / FADE, 700.0))
    baseline.landmark = now
    baseline.learned *= factor
    for table in (baseline.destinations, baseline.hosts, baseline.tools):
        table.scale(factor)


_Packed = tuple[bytes, bytes]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, float, float, bytes, _Packed, _Packed, _Packed, _Packed])


def encode_baseline(baseline: Baseline) -> bytes:
    """Return the baseline as MessagePack, about 33 KB at its fullest."""
    tables = (baseline.destinations, baseline.hosts, baseline.tools, baseline.waiting)
    held = [(table.names, table.weights) for table in tables]
    head = (BASELINE_LAYOUT, baseline.landmark, baseline.learned, baseline.surprises)
    return _encoder.encode((*head, *held))


def decode_baseline(data: bytes) -> Baseline:
    """Return the baseline from `encode_baseline()`. Raises StateUnreadable for anything else."""
    try:
        layout, landmark, learned, surprises, *tables = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StateUnreadable(str(error)) from error
    if layout != BASELINE_LAYOUT:
        raise StateUnreadable(f"layout {layout}, this version reads {BASELINE_LAYOUT}")
    if len(surprises) != SURPRISES * packed.NUMBER or any(
        len(names) != len(weights) or len(names) % packed.NAME for names, weights in tables
    ):
        raise StateUnreadable("its parts aren't as long as they should be")
    baseline = Baseline()
    baseline.landmark, baseline.learned, baseline.surprises = landmark, learned, surprises
    baseline.destinations, baseline.hosts, baseline.tools, baseline.waiting = (
        Table(names + weights) for names, weights in tables
    )
    return baseline
