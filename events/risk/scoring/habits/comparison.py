"""An event compared with its agent's state: what features and learning both need."""

import math

from events.risk.scoring.contract import Event
from events.risk.scoring.details import ActionFacts, read
from events.risk.scoring.habits.probation import ends_probation, was_met
from events.risk.scoring.habits.state import AIM, DAY, KIND, NO_NAME, AgentState
from events.risk.scoring.habits.tables import OMITTED, act_digest, digest, pair_digest
from events.risk.scoring.weights import DOING, REPORTED, SENDING, TRANSACTIONS

MATURITY_HALF = 15.0  # learned events at which habits count for half
HOST, RESOURCE, AMOUNT = KIND["host"], KIND["resource"], KIND["amount"]
OBJECT, CONTAINER = KIND["object"], KIND["container"]
BURST_FADE, READ_FADE, FAILURE_FADE, ANOMALY_FADE = 60.0, 7_200.0, 600.0, 900.0  # seconds to 1/e
FRESH_FADE = 3_600.0  # seconds to 1/e of the counts of new resources and of new places
SESSION_GAP = 300.0  # seconds of silence that end a run of tools
HOUR = 3_600.0
EXPECTED = 0.9  # share of a tool's uses with a target from which leaving the target out is no habit
READ_BEFORE = 0.1  # faded reads above which a send follows reading: up to 4.6 hours after one read


class Comparison:
    """An event, its facts, its agent's state before it, and what they are to each other. Names are digests.

    - Time: `at` (epoch seconds of receipt), `hour` (UTC), `day` (since the epoch), `begins_day` (the agent's
      first event of that day). `fading`: the factor for stored weights.
    - Experience: `learned` (learned events, faded) and `maturity` (0 to 1).
    - Tool: `tool` (or OMITTED), `pair` (the tool before and this one). `has_tool`: a tool is stated or should
      have been; then `unigram` and `bigram` are the surprises of `tool` and `pair` in nats.
    - Places: `destinations`. If the event sends something: `hosts`; `new`, the targets that the agent doesn't
      know, and `new_names`, their digests; `ending`, those whose probation ends with this event. `aims`: it
      sends to a target, stated or not. `is_further`: to one that the agent never met, even on probation.
    - Things: `resource`, and whether it `is_fresh` (not known). If the event sends something: `objects` (all
      resources), `containers`, those of each that the agent never acted on (`new_objects`,
      `new_containers`), and the `act`.
    - Counts that fade, without this event: `burst`, `failures` and `anomalies` of minutes, `fresh` (new
      resources) of an hour, `reads` of hours. With this event: `hour_new` and `day_new`, the events that went
      further, and `outflow`, the day's dollars if it is a transaction, else 0.
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
    """Return the event beside its agent's state, which stays as it is."""
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
    seen.hour = int(at % DAY // HOUR)
    seen.day = int(at // DAY)
    seen.begins_day = seen.day != int(state.last_at // DAY)
    _see_last_minutes(seen, state, elapsed)
    _see_tool(seen, state, facts, action_type in DOING, state.last_tool if elapsed < SESSION_GAP else NO_NAME)
    # What names where it goes, but not that it reads, may be a send whatever it is reported as
    sends = action_type in SENDING or (
        action_type not in REPORTED and bool(targets) and not facts.brings_text
    )
    seen.outflow = 0.0
    if action_type in TRANSACTIONS:
        seen.outflow = (state.day_usd if state.day == seen.day else 0.0) + (facts.amount or 0.0)
    _see_places(seen, state, facts, sends, elapsed)
    _see_things(seen, state, facts, sends)
    return seen


def _see_last_minutes(seen: Comparison, state: AgentState, elapsed: float) -> None:
    """Fade the counts of what just happened by the seconds `elapsed` since the agent's last event."""
    seen.burst = state.burst * math.exp(-elapsed / BURST_FADE)
    seen.reads = state.reads * math.exp(-elapsed / READ_FADE) if state.reads else 0.0
    seen.failures = state.failures * math.exp(-elapsed / FAILURE_FADE) if state.failures else 0.0
    seen.anomalies = state.anomalies * math.exp(-elapsed / ANOMALY_FADE) if state.anomalies else 0.0
    seen.fresh = state.fresh * math.exp(-elapsed / FRESH_FADE) if state.fresh else 0.0


def _see_places(seen: Comparison, state: AgentState, facts: ActionFacts, sends: bool, elapsed: float) -> None:
    """Tell known from unknown destinations, and count events that go where the agent never was."""
    targets = facts.targets
    seen.destinations = [digest(name) for name in targets]
    seen.new, seen.new_names, seen.ending = [], [], []
    if sends and targets:
        _see_unknown(seen, state, targets)
    seen.aims = sends and (bool(targets) or _expects_target(state, facts, seen.tool))
    seen.is_further = _goes_where_it_never_was(seen, state)
    seen.hour_new = state.hour_new * math.exp(-elapsed / FRESH_FADE) if state.hour_new else 0.0
    seen.hour_new += seen.is_further
    seen.day_new = (0.0 if seen.begins_day else state.day_new) + seen.is_further
    seen.hosts = [digest(name) for name in facts.hosts] if sends else []


def _see_things(seen: Comparison, state: AgentState, facts: ActionFacts, sends: bool) -> None:
    """Tell known from unknown resources, and objects and containers that the event acts on."""
    seen.resource = digest(facts.resource) if facts.resource else None
    seen.is_fresh = seen.resource is not None and not state.resources.knows(seen.resource, seen.fading)
    seen.objects = [digest(name) for name in facts.resources] if sends else []
    seen.containers = [digest(name) for name in facts.containers] if sends else []
    known = state.objects
    seen.new_objects = [name for name in seen.objects if not known.knows(name, seen.fading)]
    seen.new_containers = [name for name in seen.containers if not known.knows(name, seen.fading)]
    seen.act = act_digest(facts.act) if facts.act is not None and sends else None


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


def _expects_target(state: AgentState, facts: ActionFacts, tool: bytes) -> bool:
    """Return whether an event with this tool normally names a target.

    An unknown tool is expected to, unless the event names a resource.
    """
    uses = state.tools.get(tool)
    if facts.resource is not None and not uses:
        return False
    return state.aimed.get(tool) >= uses * EXPECTED
