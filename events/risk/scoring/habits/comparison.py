"""An event compared with its agent's state: what features and learning both need."""

import math

from events.risk.scoring.contract import Event
from events.risk.scoring.details import ActionFacts, read
from events.risk.scoring.habits.probation import ends_probation, was_met
from events.risk.scoring.habits.state import AIM, DAY, KIND, NO_NAME, AgentState
from events.risk.scoring.habits.tables import OMITTED, digest, pair_digest
from events.risk.scoring.weights import DOING, REPORTED, SENDING, TRANSACTIONS

MATURITY_HALF = 15.0  # learned events at which habits count for half
HOST, RESOURCE, AMOUNT = KIND["host"], KIND["resource"], KIND["amount"]
OBJECT, CONTAINER = KIND["object"], KIND["container"]
BURST_FADE, READ_FADE, FAILURE_FADE, ANOMALY_FADE = 60.0, 7_200.0, 600.0, 900.0  # seconds to 1/e
SESSION_GAP = 300.0  # seconds of silence that end a run of tools
HOUR = 3_600.0
EXPECTED = 0.9  # share of a tool's uses with a target from which leaving the target out is no habit
FRESH_FADE = 3_600.0  # seconds to 1/e of the count of new resources
READ_BEFORE = 0.1  # faded reads from which a send counts as one after reading (23 minutes after one)


class Comparison:
    """An event, its facts, its agent's state before it, and what they are to each other. Names are digests.

    `at`: when it was received. `tool` (or OMITTED), and `pair`, the tool before and this one. `has_tool`: a
    tool is stated or should have been; then `unigram` and `bigram` are the surprises of `tool` and `pair`
    in nats. `destinations`; `hosts`, `objects` with their `containers`, and the `act`, of an event that sends
    something; `resource`. `new`: the targets that the agent doesn't know; `new_names`: their digests;
    `ending`: places whose probation ends with this event. `aims`: the event sends something to a target,
    stated or not; `is_further`: to one that the agent never met. `fading`: the factor for stored weights.
    `learned`: the faded number of learned events; `maturity`: 0 to 1. `hour` (UTC), `day` since the epoch.
    `burst`, `reads`, `failures`, `anomalies`, `fresh`: counts of the last minutes or hour, faded to now,
    without this event; with it, `hour_new`, `day_new` (places never met) and `outflow` (the day's dollars).
    """

    state: AgentState
    event: Event
    facts: ActionFacts
    at: float
    tool: bytes
    pair: bytes
    has_tool: bool
    unigram: float
    bigram: float
    destinations: list[bytes]
    new: list[str]
    new_names: list[bytes]
    ending: list[bytes]
    aims: bool
    is_further: bool
    hosts: list[bytes]
    resource: bytes | None
    objects: list[bytes]
    new_objects: list[bytes]
    containers: list[bytes]
    new_containers: list[bytes]
    act: bytes | None
    fading: float
    learned: float
    maturity: float
    hour: int
    day: int
    begins_day: bool
    burst: float
    reads: float
    failures: float
    anomalies: float
    is_fresh: bool
    fresh: float
    hour_new: float
    day_new: float
    outflow: float


def compare(state: AgentState, event: Event) -> Comparison:
    facts = read(event.details)
    action_type, at, targets = event.action_type, event.received_at, facts.targets
    # A clock that was set back starts the last minutes afresh, as one that ran on would
    elapsed = abs(at - state.last_at)
    seen = Comparison.__new__(Comparison)
    seen.state, seen.event, seen.facts = state, event, facts
    seen.at = at
    seen.fading = state.fading(at)
    seen.learned = state.learned * seen.fading
    seen.maturity = seen.learned / (seen.learned + MATURITY_HALF)
    seen.hour = int(event.received_at % DAY // HOUR)
    seen.day = int(at // DAY)
    seen.begins_day = seen.day != int(state.last_at // DAY)
    seen.burst = state.burst * math.exp(-elapsed / BURST_FADE)
    seen.reads = state.reads * math.exp(-elapsed / READ_FADE) if state.reads else 0.0
    seen.failures = state.failures * math.exp(-elapsed / FAILURE_FADE) if state.failures else 0.0
    seen.anomalies = state.anomalies * math.exp(-elapsed / ANOMALY_FADE) if state.anomalies else 0.0
    _see_tool(seen, state, facts, action_type in DOING, state.last_tool if elapsed < SESSION_GAP else NO_NAME)
    # What names where it goes, but not that it reads, may be a send whatever it is reported as
    sends = action_type in SENDING or (action_type not in REPORTED and bool(targets) and not facts.brings_text)
    seen.fresh = state.fresh * math.exp(-elapsed / FRESH_FADE) if state.fresh else 0.0
    seen.outflow = 0.0
    if action_type in TRANSACTIONS:
        seen.outflow = (state.day_usd if state.day == seen.day else 0.0) + (facts.amount or 0.0)
    seen.destinations = list(map(digest, targets))
    seen.new, seen.new_names, seen.ending = [], [], []
    if sends and targets:
        _see_unknown(seen, state, targets)
    seen.aims = sends and (bool(targets) or _expects_target(state, action_type, facts, seen.tool))
    seen.is_further = _goes_where_it_never_was(seen, state)
    seen.hour_new = state.hour_new * math.exp(-elapsed / FRESH_FADE) if state.hour_new else 0.0
    seen.hour_new += seen.is_further
    seen.day_new = (0.0 if seen.begins_day else state.day_new) + seen.is_further
    seen.hosts = list(map(digest, facts.hosts)) if sends else []
    seen.resource = digest(facts.resource) if facts.resource else None
    seen.is_fresh = seen.resource is not None and not state.resources.knows(seen.resource, seen.fading)
    seen.objects = list(map(digest, facts.resources)) if sends else []
    seen.containers = list(map(digest, facts.containers)) if sends else []
    known = state.objects
    seen.new_objects = [name for name in seen.objects if not known.knows(name, seen.fading)]
    seen.new_containers = [name for name in seen.containers if not known.knows(name, seen.fading)]
    seen.act = digest(facts.act) if facts.act is not None and sends else None
    return seen


def _see_tool(seen: Comparison, state: AgentState, facts: ActionFacts, does: bool, previous: bytes) -> None:
    seen.tool = digest(facts.tool) if facts.tool else OMITTED
    seen.pair = pair_digest(previous, seen.tool)
    seen.has_tool = does or facts.tool is not None
    seen.unigram = seen.bigram = 0.0
    if seen.has_tool:
        # Smoothed shares: of this tool among all, and after the one before, backed off to the former
        tools = state.tools
        share = (tools.get(seen.tool) * seen.fading + 1.0 / (len(tools) + 1)) / (seen.learned + 1.0)
        count, before = state.bigrams.get(seen.pair) * seen.fading, tools.get(previous) * seen.fading
        seen.unigram = -math.log(share)
        seen.bigram = -math.log((count + share) / (max(count, before) + 1.0))


def _see_unknown(seen: Comparison, state: AgentState, targets: tuple[str, ...]) -> None:
    known = state.destinations
    for target, name in zip(targets, seen.destinations, strict=True):
        if known.knows(name, seen.fading):
            continue
        if ends_probation(state.waiting, name, seen.day):
            seen.ending.append(name)
        else:
            seen.new.append(target)
            seen.new_names.append(name)


def _goes_where_it_never_was(seen: Comparison, state: AgentState) -> bool:
    """Return whether the event goes to a place that it doesn't state, or that the agent never met."""
    if not seen.destinations:
        return seen.aims
    if not seen.new_names:
        return False
    kind = AIM[seen.event.action_type]
    return any(not was_met(state.waiting, name, kind) for name in seen.new_names)


def _expects_target(state: AgentState, action_type: str, facts: ActionFacts, tool: bytes) -> bool:
    """Return whether an event with this tool normally names a target; an unknown tool is expected to.

    A mutation that names its resource needs no target, unless its tool usually names one too.
    """
    uses = state.tools.get(tool)
    if facts.resource is not None and not uses:
        return False
    return state.aimed.get(tool) >= uses * EXPECTED
