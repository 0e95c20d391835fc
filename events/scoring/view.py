"""An event against its agent's state: what weighing and learning both need, worked out once."""

from math import exp, log

import msgspec

from events.scoring.contract import Event
from events.scoring.details import Facts
from events.scoring.priors import DOING, SENDING
from events.scoring.state import (
    ANOMALY_FADE,
    BURST_FADE,
    DAY,
    FAILURE_FADE,
    FORGOTTEN,
    KIND,
    NAME,
    NO_NAME,
    READ_FADE,
    AgentState,
    digest,
    pair_digest,
)

MATURITY_HALF = 15.0
"""Learned events at which habits count for half."""
OMITTED = digest("")
HOST, RESOURCE, AMOUNT = KIND["host"], KIND["resource"], KIND["amount"]
SESSION_GAP = 300.0
"""Seconds of silence that end a run of tools."""
HOUR = 3_600.0
EXPECTED = 0.9
"""Share of a tool's uses that named a target, from which leaving it out is not the agent's habit."""
READ_BEFORE = 0.1
"""Fading count of reads from which a send counts as one after reading (for 23 minutes after one)."""


class View(msgspec.Struct, frozen=True, gc=False):
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
    # A clock that was set back starts the last minutes afresh, as one that ran on would
    elapsed = abs(event.received_at - state.last_at)
    fading = state.fading(event.received_at)
    learned, targets = state.learned * fading, facts.targets
    tool = digest(facts.tool) if facts.tool else OMITTED
    previous = state.last_tool if elapsed < SESSION_GAP else NO_NAME
    pair = pair_digest(previous, tool)
    has_tool = facts.tool is not None or event.action_type in DOING
    unigram = bigram = 0.0
    if has_tool:
        # Smoothed shares: of this tool among all, and after the one before, backed off to the former
        tools = state.tools
        share = (tools.get(tool) * fading + 1.0 / (len(tools.names) // NAME + 1)) / (learned + 1.0)
        count, before = state.bigrams.get(pair) * fading, tools.get(previous) * fading
        unigram = -log(share)
        bigram = -log((count + share) / (max(count, before) + 1.0))
    sends = event.action_type in SENDING
    destinations = list(map(digest, targets))
    new, new_names = _unknown(state, targets, destinations, fading) if sends and targets else ([], [])
    # By position: so many keywords take 1 µs more
    return View(
        event.received_at,
        tool,
        pair,
        has_tool,
        unigram,
        bigram,
        destinations,
        new,
        new_names,
        sends and (bool(destinations) or _expects_target(state, event, facts, tool)),
        list(map(digest, facts.hosts)) if sends else [],
        digest(facts.resource) if facts.resource else None,
        fading,
        learned,
        learned / (learned + MATURITY_HALF),
        int(event.received_at % DAY // HOUR),
        state.burst * exp(-elapsed / BURST_FADE),
        state.reads and state.reads * exp(-elapsed / READ_FADE),
        state.failures and state.failures * exp(-elapsed / FAILURE_FADE),
        state.anomalies and state.anomalies * exp(-elapsed / ANOMALY_FADE),
    )


def _unknown(
    state: AgentState, targets: tuple[str, ...], names: list[bytes], fading: float
) -> tuple[list[str], list[bytes]]:
    """The targets that the agent doesn't know, and their digests."""
    new, new_names = [], []
    weight_of = state.destinations.get
    for target, name in zip(targets, names, strict=True):
        if weight_of(name) * fading < FORGOTTEN:
            new.append(target)
            new_names.append(name)
    return new, new_names


def _expects_target(state: AgentState, event: Event, facts: Facts, tool: bytes) -> bool:
    """Whether an event with this tool normally says where it goes; an unknown tool is expected to.

    A mutation that names its resource has said where, unless its tool usually names a target too.
    """
    uses = state.tools.get(tool)
    if event.action_type == "data_mutation" and facts.resource is not None and not uses:
        return False
    return state.aimed.get(tool) >= uses * EXPECTED
