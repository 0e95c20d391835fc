"""How unlike the agent's own habits an event is, each difference as a weight in log-odds.

Novelty is scaled by the agent's own rate of it: a new destination is worth -ln(rate) nats, so it says much
about an agent that always writes to the same three and nothing about one that never writes to the same
twice. What an event leaves out counts as if it were new: leaving out a tool, target or amount gains nothing.
Only a destination the agent knows counts in its favour.
"""

from math import exp, expm1, log, log1p

import msgspec

from events.scoring.contract import Context, Event
from events.scoring.details import Facts
from events.scoring.priors import DOING, FAILURES, SENDING, TRANSACTIONS
from events.scoring.reasons import Signal, usd
from events.scoring.state import (
    ANOMALY_FADE,
    BURST_FADE,
    FAILURE_FADE,
    READ_FADE,
    AgentState,
    digest,
    known,
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
SESSION_GAP = 1_800.0


class View(msgspec.Struct, frozen=True):
    """An event against its agent's state: what signals and learning both need, worked out once.

    Names are digests: `tool` (or OMITTED) and the `previous` one, their `pair`, `destinations`, `host` and
    `resource` (None where the event has none); `has_tool` says that a tool is stated or should have been,
    `expects_target` likewise. `fading` is the factor for stored weights, `learned` the faded number of
    learned events, `maturity` 0 to 1; the counts of the last minutes are faded to now, without this event.
    """

    tool: int
    has_tool: bool
    pair: int
    destinations: tuple[int, ...]
    expects_target: bool
    host: int | None
    resource: int | None
    previous: int
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
    previous = state.last_tool if elapsed < SESSION_GAP else 0
    return View(
        tool=tool,
        has_tool=facts.tool is not None or event.action_type in DOING,
        pair=pair_digest(previous, tool),
        previous=previous,
        destinations=tuple(digest(target) for target in facts.targets),
        expects_target=_expects_target(state, event, facts, tool),
        host=digest(facts.host) if facts.host else None,
        resource=digest(facts.resource) if facts.resource else None,
        fading=fading,
        learned=learned,
        maturity=learned / (learned + MATURITY_HALF),
        burst=_faded(state.burst, elapsed, BURST_FADE),
        reads=_faded(state.reads, elapsed, READ_FADE),
        failures=_faded(state.failures, elapsed, FAILURE_FADE),
        anomalies=_faded(state.anomalies, elapsed, ANOMALY_FADE),
    )


def signals(state: AgentState, event: Event, context: Context, facts: Facts, seen: View) -> list[Signal]:
    """Every difference that weighs anything, in no particular order."""
    found = [
        *_destination(state, event, context, facts, seen),
        *_resource(state, facts, seen),
        *_tool(state, facts, seen),
        *_amount(state, event, context, facts),
        *_pace(state, event, facts, seen),
    ]
    return [signal for signal in found if signal.weight != 0]


def novelty(state: AgentState, kind: str) -> float:
    """What one new name of this kind is worth, in nats: -ln of the agent's own recent rate of new ones."""
    return min(-log(max(state.rates.get(kind, 1.0), LEAST_RATE)), MAX_NATS)


def tool_surprise(state: AgentState, seen: View) -> float:
    """-ln of the tool's smoothed frequency for this agent, in nats."""
    count = state.tools.get(seen.tool, 0.0) * seen.fading if seen.tool != OMITTED else 0.0
    return -log((count + 1.0 / (len(state.tools) + 1)) / (seen.learned + 1.0))


def bigram_surprise(state: AgentState, seen: View, unigram: float) -> float:
    """-ln of the tool's frequency after the tool before it, backed off to `unigram` nats."""
    pair = state.bigrams.get(seen.pair, 0.0) * seen.fading if seen.tool != OMITTED else 0.0
    before = state.tools.get(seen.previous, 0.0) * seen.fading
    return -log((pair + exp(-unigram)) / (max(before, pair) + 1.0))


def spread(amounts: tuple[float, ...]) -> tuple[float, float]:
    """Median and robust standard deviation (1.4826 MAD, at least MIN_SPREAD) of log-amounts."""
    ordered = sorted(amounts)
    middle = ordered[len(ordered) // 2]
    deviations = sorted(abs(value - middle) for value in ordered)
    return middle, max(1.4826 * deviations[len(deviations) // 2], MIN_SPREAD)


def _faded(count: float, elapsed: float, fade: float) -> float:
    return count * exp(-elapsed / fade) if count else 0.0


def _expects_target(state: AgentState, event: Event, facts: Facts, tool: int) -> bool:
    """Whether an event with this tool normally says where it goes; an unknown tool is expected to.

    A mutation that names its resource has said where, unless its tool usually names a target too.
    """
    if event.action_type not in SENDING:
        return False
    uses, aimed = state.tools.get(tool, 0.0), state.aimed.get(tool, 0.0)
    if event.action_type == "data_mutation" and facts.resource is not None and not uses:
        return False
    return aimed >= uses / 2


def _destination(state: AgentState, event: Event, context: Context, facts: Facts, seen: View) -> list[Signal]:
    if event.action_type not in SENDING or not (seen.destinations or seen.expects_target):
        return []
    new = [
        target
        for target, name in zip(facts.targets, seen.destinations, strict=True)
        if not known(state.destinations, name, seen.fading)
    ]
    trials = sum(state.trials.get(kind, 0.0) for kind in SENDING)
    trust = trials / (trials + FEW_TRIALS)
    if seen.destinations and not new:
        return [Signal("known_destination", KNOWN_DESTINATION * trust, facts.targets[0], "")]
    if event.action_type == "data_mutation":
        trust *= MUTATION_CARRIES
    nats = novelty(state, event.action_type)
    told = new[0] if new else "not stated"
    many = f"one of {len(state.destinations)} known destinations"
    found = [
        Signal(
            "new_destination",
            UNKNOWN_DESTINATION + trust * (NEW_DESTINATION + RARE_DESTINATION * nats),
            told,
            many,
        )
    ]
    if seen.reads > 0.1:
        found.append(
            Signal(
                "read_then_send",
                READ_THEN_SEND * _share(nats) * trust,
                f"sent to {told} after reading",
                "known destinations after reading",
            )
        )
    return found + _host(state, context, facts, seen, trust)


def _host(state: AgentState, context: Context, facts: Facts, seen: View, trust: float) -> list[Signal]:
    """A host outside the agent's own domain, or one it has not been to; a target left out counts as both."""
    if facts.host is not None and seen.host is not None:
        if _inside(facts.host, context.home_domain) or known(state.hosts, seen.host, seen.fading):
            return []
    elif seen.destinations or not state.hosts:
        return []
    told = facts.host or "not stated"
    found = [
        Signal(
            "new_host",
            NEW_HOST * novelty(state, "host") * trust,
            told,
            f"one of {len(state.hosts)} known hosts",
        )
    ]
    if context.home_domain is not None:
        found.append(Signal("external_host", EXTERNAL_HOST * trust, told, context.home_domain))
    return found


def _inside(host: str, home: str | None) -> bool:
    return home is not None and (host == home or host.endswith("." + home))


def _share(nats: float) -> float:
    """How far a novelty in nats is from ordinary, 0 to 1."""
    return 0.4 + 0.6 * min(nats / 2.6, 1.0)


def _resource(state: AgentState, facts: Facts, seen: View) -> list[Signal]:
    if seen.resource is None or known(state.resources, seen.resource, seen.fading):
        return []
    weight = NEW_RESOURCE * novelty(state, "resource") * seen.maturity
    return [
        Signal("new_resource", weight, facts.resource or "", f"one of {len(state.resources)} known resources")
    ]


def _tool(state: AgentState, facts: Facts, seen: View) -> list[Signal]:
    if not seen.has_tool:
        return []
    unigram = tool_surprise(state, seen)
    excess = min(unigram - state.tool_surprise, MAX_SURPRISE)
    found = []
    told = facts.tool or "not stated"
    if excess > 0:
        found.append(
            Signal("unusual_tool", TOOL_SURPRISE * excess * seen.maturity, told, "the agent's usual tools")
        )
    pair = min(bigram_surprise(state, seen, unigram) - state.bigram_surprise, MAX_SURPRISE)
    if pair > 0:
        found.append(
            Signal(
                "unusual_sequence",
                BIGRAM_SURPRISE * pair * seen.maturity,
                f"{told} at this point",
                "the agent's usual order",
            )
        )
    return found


def _amount(state: AgentState, event: Event, context: Context, facts: Facts) -> list[Signal]:
    if event.action_type not in TRANSACTIONS:
        return []
    found = []
    told = usd(facts.amount) if facts.amount is not None else "not stated in dollars"
    if context.financial_scope is not None:
        limit = context.financial_scope.max_single_trade_usd
        used = 1.0 if facts.amount is None else min(facts.amount / limit, 1.0)
        found.append(Signal("near_trade_limit", LIMIT_USE * used * used, told, f"well below {usd(limit)}"))
    if len(state.amounts) < FEW_AMOUNTS:
        return found
    middle, deviation = spread(state.amounts)
    z = MAX_Z if facts.amount is None else min((log1p(facts.amount) - middle) / deviation, MAX_Z)
    stated = min(1.25 * (1.0 - state.rates.get("amount", 1.0)), 1.0) if facts.amount is None else 1.0
    if z > 1:
        weight = AMOUNT_Z * (z - 1.0) * stated
        found.append(Signal("unusual_amount", weight, told, f"about {usd(expm1(middle))}"))
    return found


def _pace(state: AgentState, event: Event, facts: Facts, seen: View) -> list[Signal]:
    found = []
    excess = min(log1p(seen.burst) - state.burst_level - BURST_SLACK, MAX_BURST)
    if excess > 0:
        found.append(
            Signal(
                "burst",
                BURST * excess * seen.maturity,
                f"{seen.burst:.0f} events in about a minute",
                "the agent's usual pace",
            )
        )
    if seen.failures > 0.1:
        factor = FAILURE if event.action_type in FAILURES else FAILURE_BEFORE
        weight = min(factor * log1p(seen.failures), MAX_FAILURES)
        found.append(
            Signal("repeated_failures", weight, f"{seen.failures:.0f} failures in the last minutes", "none")
        )
    if event.action_type == "transaction_anomaly" and seen.anomalies > 0.1:
        found.append(
            Signal(
                "anomaly_before",
                ANOMALY_BEFORE * log1p(seen.anomalies),
                f"{seen.anomalies:.0f} in the last minutes",
                "none",
            )
        )
    return found
