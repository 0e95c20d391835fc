"""What a tenant's agents have in common, for judging one that is too young to have habits of its own.

Pure and optional: whoever keeps a tenant's baseline folds each event into it that scored low, and hands it to
`fold()`. It weighs in only in the agent's favour, and the more the younger the agent is.
"""

from math import exp

import msgspec

from events.scoring.contract import Event
from events.scoring.details import read
from events.scoring.priors import SENDING
from events.scoring.state import FADE, PROBATION, RESCALE_AFTER, StateUnreadable
from events.scoring.tables import Table, digest

MAX_DESTINATIONS, MAX_HOSTS, MAX_TOOLS, MAX_WAITING = 1_024, 256, 256, 512
ENOUGH_EVENTS = 100.0
"""Events (faded) from which a tenant's habits may carry a young agent's score into high."""
SHARED = 0.9
"""How much of a name's novelty goes, for an agent without any habits, when its tenant knows the name."""
GROWN = 300.0
"""Learned events (faded) from which an agent is judged by its own habits alone."""
BASELINE_LAYOUT = 2


class Baseline:
    """A tenant's pooled habits: destinations, their hosts and tools, which fade as a state's do.

    `waiting` holds when a name was first seen that isn't known yet.
    """

    def __init__(self) -> None:
        self.landmark = 0.0
        self.learned = 0.0
        self.destinations = Table()
        self.hosts = Table()
        self.tools = Table()
        self.waiting = Table()

    def changeable(self) -> "Baseline":
        """A copy that can change without this one changing."""
        other = Baseline()
        other.landmark, other.learned = self.landmark, self.learned
        other.destinations = self.destinations.copy()
        other.hosts = self.hosts.copy()
        other.tools = self.tools.copy()
        other.waiting = self.waiting.copy()
        return other

    def fading(self, now: float) -> float:
        """What a stored weight is multiplied by to read it at `now`."""
        return exp(min((self.landmark - now) / FADE, 0.0))

    def is_enough(self, now: float) -> bool:
        """Whether the tenant's habits can stand in for an agent's own."""
        return self.learned * self.fading(now) >= ENOUGH_EVENTS

    def strangeness(self, table: Table, names: list[bytes], at: float, learned: float) -> float:
        """The share of these names' novelty that stays: all, unless the tenant knows every one of them."""
        fading = self.fading(at)
        if not names or learned >= GROWN:
            return 1.0
        for name in names:
            if not table.knows(name, fading):
                return 1.0
        return 1.0 - SHARED * (1.0 - learned / GROWN)


def pool(baseline: Baseline, event: Event, *, trusted: bool = False) -> None:
    """Fold into `baseline` an event of any of the tenant's agents; only such as scored low.

    A name becomes known when it is seen again three days after the first time, so that an attack on several
    agents at once doesn't make its destination familiar; at once if the event is `trusted` to be ordinary.
    """
    facts = read(event.details)
    now = event.received_at
    _rescale(baseline, now)
    weight = exp((now - baseline.landmark) / FADE)
    baseline.learned += weight
    names = [(baseline.tools, facts.tool, MAX_TOOLS)] if facts.tool else []
    if event.action_type in SENDING:
        names += [(baseline.destinations, target, MAX_DESTINATIONS) for target in facts.targets]
        names += [(baseline.hosts, host, MAX_HOSTS) for host in facts.hosts]
    for table, text, limit in names:
        name = digest(text)
        if trusted or table.get(name) or baseline.waiting.has_waited(name, now, PROBATION, MAX_WAITING):
            table.add(name, weight, limit)


def _rescale(baseline: Baseline, now: float) -> None:
    age = now - baseline.landmark
    if age <= RESCALE_AFTER and baseline.learned > 0:
        return
    factor = exp(-min(age / FADE, 700.0))
    baseline.landmark = now
    baseline.learned *= factor
    for table in (baseline.destinations, baseline.hosts, baseline.tools):
        table.scale(factor)


_Packed = tuple[bytes, bytes]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, float, float, _Packed, _Packed, _Packed, _Packed])


def encode_baseline(baseline: Baseline) -> bytes:
    """The baseline as MessagePack, about 33 KB at its fullest."""
    tables = (baseline.destinations, baseline.hosts, baseline.tools, baseline.waiting)
    return _encoder.encode((
        BASELINE_LAYOUT,
        baseline.landmark,
        baseline.learned,
        *[(table.names, table.weights) for table in tables],
    ))  # fmt: skip


def decode_baseline(data: bytes) -> Baseline:
    """The baseline from `encode_baseline()`; raises `StateUnreadable` for anything else or another layout."""
    try:
        layout, landmark, learned, *tables = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StateUnreadable(str(error)) from error
    if layout != BASELINE_LAYOUT:
        raise StateUnreadable(f"layout {layout}, this version reads {BASELINE_LAYOUT}")
    baseline = Baseline()
    baseline.landmark, baseline.learned = landmark, learned
    baseline.destinations, baseline.hosts, baseline.tools, baseline.waiting = (
        Table(names, weights) for names, weights in tables
    )
    return baseline
