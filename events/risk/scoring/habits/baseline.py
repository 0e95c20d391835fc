"""A tenant's baseline: what its agents have in common, for judging an agent without habits of its own.

It only ever lowers a score, and the more the younger the agent is. Events that scored low are pooled into it.
"""

import math

import msgspec

from events.risk.scoring.contract import Event
from events.risk.scoring.details import read
from events.risk.scoring.habits.state import DAY, FADE, RESCALE_AFTER, StateUnreadable
from events.risk.scoring.habits.tables import Table, digest
from events.risk.scoring.weights import SENDING

MAX_DESTINATIONS, MAX_HOSTS, MAX_TOOLS, MAX_WAITING = 1_024, 256, 256, 512
ENOUGH_EVENTS = 100.0  # events (faded) from which a tenant's habits may carry a young agent's score into high
SHARED = 0.9  # share of a name's novelty that goes if the tenant knows it, for an agent without habits
GROWN = 300.0  # learned events (faded) from which an agent is judged by its own habits alone
PROBATION = 3 * DAY  # seconds after a name's first sighting from which another agent vouches for it
TAGS = 1 << 16  # a waiting name has the second of its first sighting, times this, plus a tag of its agent
BASELINE_LAYOUT = 3


class Baseline:
    """A tenant's pooled destinations, hosts and tools, which fade as a state's do.

    `learned` counts events; `waiting` has the names that one agent named: when, and which (as `TAGS` says).
    Hosts tell what is common (`events.risk.common_places`); no score asks for them.
    """

    def __init__(self) -> None:
        self.landmark = self.learned = 0.0
        self.destinations, self.hosts, self.tools, self.waiting = Table(), Table(), Table(), Table()

    def changeable(self) -> "Baseline":
        return decode_baseline(encode_baseline(self))

    def fading(self, now: float) -> float:
        """Return the factor by which a stored weight is read at `now`."""
        return math.exp(min((self.landmark - now) / FADE, 0.0))

    def is_enough(self, now: float) -> bool:
        """Return whether the tenant's habits can stand in for an agent's own."""
        return self.learned * self.fading(now) >= ENOUGH_EVENTS

    def strangeness(self, table: Table, names: list[bytes], at: float, learned: float) -> float:
        """Return the share of the names' novelty that stays: all, unless the tenant knows every one."""
        fading = self.fading(at)
        if not names or learned >= GROWN:
            return 1.0
        for name in names:
            if not table.knows(name, fading):
                return 1.0
        return 1.0 - SHARED * (1.0 - learned / GROWN)


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
_decoder = msgspec.msgpack.Decoder(tuple[int, float, float, _Packed, _Packed, _Packed, _Packed])


def encode_baseline(baseline: Baseline) -> bytes:
    """Return the baseline as MessagePack, about 33 KB at its fullest."""
    tables = (baseline.destinations, baseline.hosts, baseline.tools, baseline.waiting)
    packed = [(table.names, table.weights) for table in tables]
    return _encoder.encode((BASELINE_LAYOUT, baseline.landmark, baseline.learned, *packed))


def decode_baseline(data: bytes) -> Baseline:
    """Return the baseline from `encode_baseline()`. Raises StateUnreadable for anything else."""
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
