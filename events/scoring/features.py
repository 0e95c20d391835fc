"""How unlike the agent's own habits an event is, each difference as a weight in log-odds.

Novelty is scaled by the agent's own rate of it: a new destination is worth -ln(rate) nats, so it says much
about an agent that always writes to the same three and nothing about one that never writes to the same
twice. What an event leaves out counts as if it were new: leaving out a tool, target or amount gains nothing.
Only a destination the agent knows counts in its favour.
"""

from math import exp, log, log1p

import msgspec

from events.scoring.contract import Context, Event
from events.scoring.details import Facts
from events.scoring.priors import DOING, FAILURES, SENDING, TRANSACTIONS
from events.scoring.reasons import Signal
from events.scoring.state import (
    ANOMALY_FADE,
    BURST_FADE,
    FAILURE_FADE,
    KIND,
    NO_NAME,
    READ_FADE,
    SENDING_KINDS,
    AgentState,
    digest,
    pair_digest,
)

UNKNOWN_DESTINATION = 0.3
NEW_DESTINATION = 0.2
RARE_DESTINATION = 0.3
KNOWN_DESTINATION = -0.8
NEW_RESOURCE = 0.2
NEW_HOST = 0.3
EXTERNAL_HOST = 0.9
READ_THEN_SEND = 1.5
TOOL_SURPRISE = 0.12
BIGRAM_SURPRISE = 0.06
AMOUNT_Z = 1.0
LIMIT_USE = 0.9
MUTATION_CARRIES = 0.5
"""A mutation that names a target (an invitation, a share) carries less out than a call or a payment does."""
BURST = 0.5
FAILURE = 1.0
FAILURE_BEFORE = 0.25
ANOMALY_BEFORE = 0.6

MATURITY_HALF = 15.0
"""Learned events at which habits count for half."""
LEAST_RATE = 1 / 150
MAX_NATS = 2.6
FEW_TRIALS = 3.0
"""Sends of one kind at which knowing where they go counts for half."""
MAX_SURPRISE = 6.0
MAX_Z = 4.0
BURST_SLACK = 1.0
MAX_BURST = 2.0
MAX_FAILURES = 2.9
MIN_SPREAD = 0.35
"""Least spread of log-amounts (in log-dollars) that z is measured in: 35 % up or down is never strange."""
FEW_AMOUNTS = 5
OMITTED = digest("")
HOST, RESOURCE, AMOUNT = KIND["host"], KIND["resource"], KIND["amount"]
SESSION_GAP = 1_800.0


class View(msgspec.Struct, frozen=True, gc=False):
    """An event against its agent's state: what signals and learning both need, worked out once.

    Names are digests: `tool` (or OMITTED) and the `pair` it makes with the tool before, `destinations`,
    `host` and `resource` (None where the event has none). `has_tool` says that a tool is stated or should
    have been, and then `unigram` and `bigram` are its surprises in nats; `aims`, that the event sends
    something to a target, stated or not. `fading` is the factor for stored weights, `learned` the faded
    number of learned events, `maturity` 0 to 1; the counts of the last minutes are faded to now, without
    this event.
    """

    tool: bytes
    pair: bytes
    has_tool: bool
    unigram: float
    bigram: float
    destinations: list[bytes]
    aims: bool
    host: bytes | None
    resource: bytes | None
    fading: float
    learned: float
    maturity: float
    burst: float
    reads: float
    failures: float
    anomalies: float


def view(state: AgentState, event: Event, facts: Facts) -> View:
    """Everything about the event that is read off the agent's state."""
    elapsed = max(event.received_at - state.last_at, 0.0)
    fading = state.fading(event.received_at)
    learned = state.learned * fading
    tool = digest(facts.tool) if facts.tool else OMITTED
    previous = state.last_tool if elapsed < SESSION_GAP else NO_NAME
    pair = pair_digest(previous, tool)
    has_tool = facts.tool is not None or event.action_type in DOING
    unigram = bigram = 0.0
    if has_tool:
        unigram = tool_surprise(state.tools.get(tool) * fading, len(state.tools), learned)
        bigram = bigram_surprise(
            state.bigrams.get(pair) * fading, state.tools.get(previous) * fading, unigram
        )
    # By position: sixteen keywords take 1 µs more
    return View(
        tool,
        pair,
        has_tool,
        unigram,
        bigram,
        [digest(target) for target in facts.targets],
        event.action_type in SENDING and (bool(facts.targets) or _expects_target(state, event, facts, tool)),
        digest(facts.host) if facts.host else None,
        digest(facts.resource) if facts.resource else None,
        fading,
        learned,
        learned / (learned + MATURITY_HALF),
        _faded(state.burst, elapsed, BURST_FADE),
        _faded(state.reads, elapsed, READ_FADE),
        _faded(state.failures, elapsed, FAILURE_FADE),
        _faded(state.anomalies, elapsed, ANOMALY_FADE),
    )


def signals(state: AgentState, event: Event, context: Context, facts: Facts, seen: View) -> list[Signal]:
    """Every difference that may weigh something, in no particular order."""
    found = _destination(state, event, context, facts, seen) if seen.aims else []
    if seen.resource is not None:
        found += _resource(state, facts, seen.resource, seen)
    if seen.has_tool:
        found += _tool(state, facts, seen)
    if event.action_type in TRANSACTIONS:
        found += _amount(state, context, facts)
    return found + _pace(state, event, seen)


def novelty(state: AgentState, kind: int) -> float:
    """What one new name of this kind is worth, in nats: -ln of the agent's own recent rate of new ones."""
    return min(-log(max(state.rates[kind], LEAST_RATE)), MAX_NATS)


def tool_surprise(count: float, tools: int, learned: float) -> float:
    """-ln of the smoothed frequency, in nats, of a tool used `count` times by an agent that knows `tools`."""
    return -log((count + 1.0 / (tools + 1)) / (learned + 1.0))


def bigram_surprise(count: float, before: float, unigram: float) -> float:
    """-ln of a tool's frequency after one used `before` times, backed off to `unigram` nats."""
    return -log((count + exp(-unigram)) / (max(before, count) + 1.0))


def _faded(count: float, elapsed: float, fade: float) -> float:
    return count * exp(-elapsed / fade) if count else 0.0


def _expects_target(state: AgentState, event: Event, facts: Facts, tool: bytes) -> bool:
    """Whether an event with this tool normally says where it goes; an unknown tool is expected to.

    A mutation that names its resource has said where, unless its tool usually names a target too.
    """
    uses = state.tools.get(tool)
    if event.action_type == "data_mutation" and facts.resource is not None and not uses:
        return False
    return state.aimed.get(tool) >= uses / 2


def _destination(state: AgentState, event: Event, context: Context, facts: Facts, seen: View) -> list[Signal]:
    new = [
        target
        for target, name in zip(facts.targets, seen.destinations, strict=True)
        if not state.destinations.knows(name, seen.fading)
    ]
    trials = sum(state.trials[:SENDING_KINDS])
    trust = trials / (trials + FEW_TRIALS)
    if seen.destinations and not new:
        return [Signal("known_destination", KNOWN_DESTINATION * trust)]
    if event.action_type == "data_mutation":
        trust *= MUTATION_CARRIES
    nats = novelty(state, KIND[event.action_type])
    told = new[0] if new else None
    weight = UNKNOWN_DESTINATION + trust * (NEW_DESTINATION + RARE_DESTINATION * nats)
    found = [Signal("new_destination", weight, told, len(state.destinations))]
    if seen.reads > 0.1:
        found.append(Signal("read_then_send", READ_THEN_SEND * _share(nats) * trust, told))
    return found + _host(state, context, facts, seen, trust)


def _host(state: AgentState, context: Context, facts: Facts, seen: View, trust: float) -> list[Signal]:
    """A host outside the agent's own domain, or one it has not been to; a target left out counts as both."""
    if facts.host is not None and seen.host is not None:
        if _inside(facts.host, context.home_domain) or state.hosts.knows(seen.host, seen.fading):
            return []
    elif seen.destinations or not state.hosts:
        return []
    weight = NEW_HOST * novelty(state, HOST) * trust
    found = [Signal("new_host", weight, facts.host, len(state.hosts))]
    if context.home_domain is not None:
        found.append(Signal("external_host", EXTERNAL_HOST * trust, facts.host, context.home_domain))
    return found


def _inside(host: str, home: str | None) -> bool:
    return home is not None and (host == home or host.endswith("." + home))


def _share(nats: float) -> float:
    """How far a novelty in nats is from ordinary, 0 to 1."""
    return 0.4 + 0.6 * min(nats / 2.6, 1.0)


def _resource(state: AgentState, facts: Facts, name: bytes, seen: View) -> list[Signal]:
    if state.resources.knows(name, seen.fading):
        return []
    weight = NEW_RESOURCE * novelty(state, RESOURCE) * seen.maturity
    return [Signal("new_resource", weight, facts.resource, len(state.resources))]


def _tool(state: AgentState, facts: Facts, seen: View) -> list[Signal]:
    found = []
    excess = seen.unigram - state.tool_surprise
    if excess > 0:
        weight = TOOL_SURPRISE * min(excess, MAX_SURPRISE) * seen.maturity
        found.append(Signal("unusual_tool", weight, facts.tool))
    excess = seen.bigram - state.bigram_surprise
    if excess > 0:
        weight = BIGRAM_SURPRISE * min(excess, MAX_SURPRISE) * seen.maturity
        found.append(Signal("unusual_sequence", weight, facts.tool))
    return found


def _amount(state: AgentState, context: Context, facts: Facts) -> list[Signal]:
    found = []
    if context.financial_scope is not None:
        limit = context.financial_scope.max_single_trade_usd
        used = 1.0 if facts.amount is None else min(facts.amount / limit, 1.0)
        found.append(Signal("near_trade_limit", LIMIT_USE * used * used, facts.amount, limit))
    if len(state.amounts) < FEW_AMOUNTS:
        return found
    ordered = sorted(state.amounts)
    middle = ordered[len(ordered) // 2]
    if facts.amount is None:
        stated = min(1.25 * (1.0 - state.rates[AMOUNT]), 1.0)
        weight = AMOUNT_Z * (MAX_Z - 1.0) * stated
    else:
        weight = AMOUNT_Z * (_deviations(ordered, middle, log1p(facts.amount)) - 1.0)
    if weight > 0:
        found.append(Signal("unusual_amount", weight, facts.amount, middle))
    return found


def _deviations(ordered: list[float], middle: float, amount: float) -> float:
    """How many robust standard deviations (1.4826 MAD, at least MIN_SPREAD) above the median, 1 to MAX_Z."""
    above = amount - middle
    if above <= MIN_SPREAD:  # at most one deviation whatever the spread, so most amounts need none
        return 1.0
    distances = sorted([abs(value - middle) for value in ordered])
    return max(1.0, min(above / max(1.4826 * distances[len(distances) // 2], MIN_SPREAD), MAX_Z))


def _pace(state: AgentState, event: Event, seen: View) -> list[Signal]:
    found = []
    excess = log1p(seen.burst) - state.burst_level - BURST_SLACK
    if excess > 0:
        found.append(Signal("burst", BURST * min(excess, MAX_BURST) * seen.maturity, seen.burst))
    if seen.failures > 0.1:
        factor = FAILURE if event.action_type in FAILURES else FAILURE_BEFORE
        weight = min(factor * log1p(seen.failures), MAX_FAILURES)
        found.append(Signal("repeated_failures", weight, seen.failures))
    if event.action_type == "transaction_anomaly" and seen.anomalies > 0.1:
        found.append(Signal("anomaly_before", ANOMALY_BEFORE * log1p(seen.anomalies), seen.anomalies))
    return found
