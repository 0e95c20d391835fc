"""An event against its agent's state: what weighing and learning both need, worked out once."""

from math import exp, log

from events.scoring.contract import Event
from events.scoring.details import Facts
from events.scoring.priors import DOING, SENDING
from events.scoring.state import DAY, KIND, NO_NAME, AgentState
from events.scoring.tables import digest, pair_digest

MATURITY_HALF = 15.0
"""Learned events at which habits count for half."""
OMITTED = digest("")
HOST, RESOURCE, AMOUNT = KIND["host"], KIND["resource"], KIND["amount"]
BURST_FADE, READ_FADE, FAILURE_FADE, ANOMALY_FADE = 60.0, 600.0, 600.0, 900.0
"""Seconds after which what happened in the last minutes counts 1/e of what it did."""
SESSION_GAP = 300.0
"""Seconds of silence that end a run of tools."""
HOUR = 3_600.0
EXPECTED = 0.9
"""Share of a tool's uses that named a target, from which leaving it out is not the agent's habit."""
READ_BEFORE = 0.1
"""Fading count of reads from which a send counts as one after reading (for 23 minutes after one)."""


class View:
    """What an event is to its agent.

    `at` is when it was received. Names are digests: `tool` (or OMITTED) and the `pair` it makes with the tool
    before, `destinations`, `hosts` (where something is sent) and `resource` (None where there is none). `new`
    are the targets that the agent doesn't know, `new_names` their digests. `has_tool` says that a tool
    is stated or should have been, and then `unigram` and `bigram` are its surprises in nats; `aims`, that the
    event sends something to a target, stated or not. `fading` is the factor for stored weights, `learned` the
    faded number of learned events, `maturity` 0 to 1, `hour` that of the day (UTC); the counts of the
    last minutes are faded to now, without this event.
    """

    at: float
    tool: bytes
    pair: bytes
    has_tool: bool
    unigram: float
    bigram: float
    destinations: list[bytes]
    new: list[str]
    new_names: list[bytes]
    aims: bool
    hosts: list[bytes]
    resource: bytes | None
    fading: float
    learned: float
    maturity: float
    hour: int
    burst: float
    reads: float
    failures: float
    anomalies: float


def view(state: AgentState, event: Event, facts: Facts) -> View:
    """Everything about the event that is read off the agent's state."""
    action_type, at, targets = event.action_type, event.received_at, facts.targets
    # A clock that was set back starts the last minutes afresh, as one that ran on would
    elapsed = abs(at - state.last_at)
    seen = View.__new__(View)
    seen.at = at
    seen.fading = state.fading(at)
    seen.learned = state.learned * seen.fading
    seen.maturity = seen.learned / (seen.learned + MATURITY_HALF)
    seen.hour = int(event.received_at % DAY // HOUR)
    seen.burst = state.burst * exp(-elapsed / BURST_FADE)
    seen.reads = state.reads * exp(-elapsed / READ_FADE) if state.reads else 0.0
    seen.failures = state.failures * exp(-elapsed / FAILURE_FADE) if state.failures else 0.0
    seen.anomalies = state.anomalies * exp(-elapsed / ANOMALY_FADE) if state.anomalies else 0.0
    _see_tool(seen, state, facts, action_type in DOING, state.last_tool if elapsed < SESSION_GAP else NO_NAME)
    sends = action_type in SENDING
    seen.destinations = list(map(digest, targets))
    seen.new, seen.new_names = [], []
    if sends and targets:
        _see_unknown(seen, state, targets)
    seen.aims = sends and (bool(targets) or _expects_target(state, action_type, facts, seen.tool))
    seen.hosts = list(map(digest, facts.hosts)) if sends else []
    seen.resource = digest(facts.resource) if facts.resource else None
    return seen


def _see_tool(seen: View, state: AgentState, facts: Facts, does: bool, previous: bytes) -> None:
    """The tool, its place after the `previous` one, and how surprising both are."""
    seen.tool = digest(facts.tool) if facts.tool else OMITTED
    seen.pair = pair_digest(previous, seen.tool)
    seen.has_tool = does or facts.tool is not None
    seen.unigram = seen.bigram = 0.0
    if seen.has_tool:
        # Smoothed shares: of this tool among all, and after the one before, backed off to the former
        tools = state.tools
        share = (tools.get(seen.tool) * seen.fading + 1.0 / (len(tools) + 1)) / (seen.learned + 1.0)
        count, before = state.bigrams.get(seen.pair) * seen.fading, tools.get(previous) * seen.fading
        seen.unigram = -log(share)
        seen.bigram = -log((count + share) / (max(count, before) + 1.0))


def _see_unknown(seen: View, state: AgentState, targets: tuple[str, ...]) -> None:
    """The targets that the agent doesn't know, and their digests."""
    known = state.destinations
    for target, name in zip(targets, seen.destinations, strict=True):
        if not known.knows(name, seen.fading):
            seen.new.append(target)
            seen.new_names.append(name)


def _expects_target(state: AgentState, action_type: str, facts: Facts, tool: bytes) -> bool:
    """Whether an event with this tool normally says where it goes; an unknown tool is expected to.

    A mutation that names its resource has said where, unless its tool usually names a target too.
    """
    uses = state.tools.get(tool)
    if action_type == "data_mutation" and facts.resource is not None and not uses:
        return False
    return state.aimed.get(tool) >= uses * EXPECTED
