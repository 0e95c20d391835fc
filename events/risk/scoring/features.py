"""Features: how unlike the agent's habits an event is, each difference as a weight in log-odds.

To add one: a function here that returns its signals, its weight in `weights.py`, its words in `reasons.py`.
Novelty is scaled by the agent's own rate of it: a new destination is worth -ln(rate) nats, squared, so it
says much about an agent that always writes to the same three, and little about one that often writes to new
ones. What an event leaves out counts as new, so leaving out a tool, target or amount gains nothing.
"""

import math

from events.risk.scoring import weights
from events.risk.scoring.contract import Context
from events.risk.scoring.habits import packed
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.comparison import AMOUNT, HOST, READ_BEFORE, RESOURCE, Comparison
from events.risk.scoring.habits.state import HOURS, KIND, AgentState
from events.risk.scoring.reasons import Signal
from events.risk.scoring.weights import FAILURES, SENDING, TRANSACTIONS

PRIOR_RATE, PRIOR_TRIALS = 0.7, 2.0  # the rate of novelty assumed at first, and for how many trials it counts
MOST_TRIALS = 20.0  # trials that a running rate remembers
MAX_RARITY = 2.5
WITHIN_HOME = 0.5  # novelty inside the agent's own domain counts for half
SELDOM = 0.6  # share of a nat of rarity that is added to sending somewhere new after reading
MUTATION_CARRIES = 0.35  # share for a mutation with a target (an invitation), which carries out less
IN_COMPANY = 0.5  # share for a new target beside a known one, who sees it
READING_COUNTS = 0.5  # share for an unusual tool that only reads
DECLARED = 0.4  # share for an unusual tool of an agent with a declared scope
SURPRISE_SLACK, MAX_SURPRISE = 1.0, 5.0
FEW_AMOUNTS = 5
LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW = 0.5, 0.1, 5.0
"""Least spread of amounts' square roots: absolute, as a share of the median, and wider while few."""
HALF_AMOUNTS = 20.0  # amounts known at which an unusual one counts for half
WITHIN = 0.4  # value of an amount one spread above the median; beyond, the logarithm is added
MAX_ABOVE = math.log(30.0)  # the greatest value of an amount, and that of one that is left out
TOKEN_SHARE = 0.1  # share of the median's square root up to which an amount tries out a new destination
SETTLED_AMOUNTS = 20.0
DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT, MAX_DRIFT = math.log(2.0), math.log(4.0), 2.0
BURST_SLACK, MAX_BURST = 1.5, 2.0
MAX_FAILURES = 2.9
SETTLED_HOURS, QUIET_HOUR, MAX_HOUR = 100.0, 3.0, 2.0


def signals(seen: Comparison, context: Context, baseline: Baseline | None = None) -> list[Signal]:
    """Return every difference that may weigh something, in no particular order."""
    found = _destination(seen, context, baseline) if seen.aims else []
    if seen.hosts or (seen.aims and not seen.facts.targets):
        found += _host(seen, context, baseline)
    if seen.resource is not None and not seen.state.resources.knows(seen.resource, seen.fading):
        value = weights.NEW_RESOURCE * (rarity(seen.state, RESOURCE) * seen.maturity)
        found.append(("new_resource", value, seen.facts.resource, len(seen.state.resources)))
    if seen.has_tool:
        found += _tool(seen, context, baseline)
    if seen.event.action_type in TRANSACTIONS:
        found += _amount(seen, context)
    return found + _pace(seen)


def rarity(state: AgentState, kind: int) -> float:
    """Return what one new name of this kind is worth in nats: -ln of the agent's recent rate of new ones."""
    trials = min(state.trials_of(kind), MOST_TRIALS)
    rate = (state.rate_of(kind) * trials + PRIOR_RATE * PRIOR_TRIALS) / (trials + PRIOR_TRIALS)
    return min(MAX_RARITY, -math.log(rate))


def _destination(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    if seen.destinations and not seen.new:
        return []
    strange = 1.0
    if baseline is not None:
        strange = baseline.strangeness(baseline.destinations, seen.new_names, seen.at, seen.learned)
    inside = [_inside(target.rpartition("@")[2], context.home_domain) for target in seen.new]
    if inside and all(inside):
        strange *= WITHIN_HOME
    nats = rarity(seen.state, KIND[seen.event.action_type]) * strange
    told = seen.new[0] if seen.new else None
    carries = _carries(seen)
    weight = weights.NEW_DESTINATION * nats * nats * carries
    found: list[Signal] = [("new_destination", weight, told, len(seen.state.destinations))]
    if seen.reads > READ_BEFORE:
        value = (strange + SELDOM * nats) * carries
        found.append(("read_then_send", weights.READ_THEN_SEND * value, told, None))
    return found


def _carries(seen: Comparison) -> float:
    carries = MUTATION_CARRIES if seen.event.action_type == "data_mutation" else 1.0
    return carries * IN_COMPANY if 0 < len(seen.new) < len(seen.destinations) else carries


def _host(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Weigh a new host and one outside the agent's own domain; a target left out counts as both."""
    if context.home_domain is None and not seen.state.hosts.names:
        return []
    outside = [
        (host, name)
        for host, name in zip(seen.facts.hosts, seen.hosts, strict=True)
        if not _inside(host, context.home_domain)
    ]
    new = [pair for pair in outside if not seen.state.hosts.knows(pair[1], seen.fading)]
    found: list[Signal] = []
    carries = _carries(seen)
    left_out = seen.aims and not seen.facts.targets
    if new or left_out:
        told = new[0][0] if new else None
        if baseline is not None and new:
            carries *= baseline.strangeness(baseline.hosts, [name for _, name in new], seen.at, seen.learned)
        weight = weights.NEW_HOST * rarity(seen.state, HOST) * carries
        found.append(("new_host", weight, told, len(seen.state.hosts)))
    if context.home_domain is not None and ((outside and seen.new) or left_out or new):
        told = (new or outside)[0][0] if outside else None
        found.append(("external_host", weights.EXTERNAL_HOST * carries, told, context.home_domain))
    return found


def _inside(host: str, home: str | None) -> bool:
    return home is not None and (host == home or host.endswith("." + home))


def _tool(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Weigh the surprise of a tool and of its place in the order; less where the agent has a scope."""
    found = []
    counts = seen.maturity * (1.0 if seen.event.action_type in SENDING else READING_COUNTS)
    if context.permitted_actions is not None:
        counts *= DECLARED
    excess = seen.unigram - seen.state.tool_surprise - SURPRISE_SLACK
    if excess > 0:
        strange = 1.0
        if baseline is not None:
            strange = baseline.strangeness(baseline.tools, [seen.tool], seen.at, seen.learned)
        weight = weights.UNUSUAL_TOOL * min(excess, MAX_SURPRISE) * counts * strange
        found.append(("unusual_tool", weight, seen.facts.tool, None))
    excess = seen.bigram - seen.state.bigram_surprise - SURPRISE_SLACK
    if excess > 0:
        weight = weights.UNUSUAL_SEQUENCE * min(excess, MAX_SURPRISE) * counts
        found.append(("unusual_sequence", weight, seen.facts.tool, None))
    return found


def _amount(seen: Comparison, context: Context) -> list[Signal]:
    found = []
    if context.financial_scope is not None:
        limit = context.financial_scope.max_single_trade_usd
        used = 1.0 if seen.facts.amount is None else min(seen.facts.amount / limit, 1.0)
        found.append(("near_trade_limit", weights.NEAR_TRADE_LIMIT * used * used, seen.facts.amount, limit))
    if len(seen.state.amounts) < FEW_AMOUNTS * packed.NUMBER:
        return found
    ordered = sorted(packed.unpack(seen.state.amounts))
    middle = ordered[len(ordered) // 2]
    worth = weights.UNUSUAL_AMOUNT * len(ordered) / (len(ordered) + HALF_AMOUNTS)
    if seen.facts.amount is None:
        stated = min(1.25 * (1.0 - seen.state.rate_of(AMOUNT)), 1.0)
        found.append(("unusual_amount", worth * MAX_ABOVE * stated, None, middle))
        return found + _drift(seen.state, None, middle)
    size = math.sqrt(seen.facts.amount)
    above = min(_above(ordered, middle, size), MAX_ABOVE)
    if above:
        found.append(("unusual_amount", worth * above, seen.facts.amount, middle))
    elif seen.aims and (seen.new or not seen.facts.targets) and size <= TOKEN_SHARE * middle:
        found.append(("token_amount", weights.TOKEN_AMOUNT, seen.facts.amount, middle))
    return found + _drift(seen.state, seen.facts.amount, middle)


def _above(ordered: list[float], middle: float, size: float) -> float:
    """Return how far a size is above the median in robust deviations (1.4826 MAD), as nats."""
    above = size - middle
    if above <= 0:
        return 0.0
    least = max(LEAST_SPREAD, (LEAST_SHARE + LEAST_OF_FEW / len(ordered)) * middle)
    if above <= least:  # within one deviation whatever the spread, so most amounts need none
        return WITHIN * above / least
    deviations = above / max(1.4826 * _median_distance(ordered, middle), least)
    return WITHIN + (math.log(deviations) if deviations > 1.0 else 0.0)


def _median_distance(ordered: list[float], middle: float) -> float:
    """Bisect for the upper median of the distances to `middle`, the least reach over more than half."""
    half = len(ordered) // 2
    first, last = 0, len(ordered) - half - 1
    while first < last:
        start = (first + last) // 2
        if middle - ordered[start] > ordered[start + half] - middle:
            first = start + 1
        else:
            last = start
    reach = max(middle - ordered[first], ordered[first + half] - middle)
    return min(reach, middle - ordered[first - 1]) if first else reach


def _drift(state: AgentState, amount: float | None, middle: float) -> list[Signal]:
    """Weigh an amount far above the long-run usual one, where the recent ones have crept up."""
    if state.trials_of(AMOUNT) < SETTLED_AMOUNTS:
        return []
    if math.log1p(middle * middle) - state.usual_amount < DRIFT_OF_MEDIAN:
        return []
    above = MAX_DRIFT if amount is None else math.log1p(amount) - state.usual_amount - DRIFT_OF_AMOUNT
    if above <= 0:
        return []
    weight = weights.DRIFTED_AMOUNT * min(1.0 + above, MAX_DRIFT)
    return [("drifted_amount", weight, amount, state.usual_amount)]


def _pace(seen: Comparison) -> list[Signal]:
    found = []
    excess = math.log1p(seen.burst) - seen.state.burst_level - BURST_SLACK
    if excess > 0:
        found.append(("burst", weights.BURST * min(excess, MAX_BURST) * seen.maturity, seen.burst, None))
    if seen.failures > 0.1:
        factor = weights.FAILURE if seen.event.action_type in FAILURES else weights.FAILURE_BEFORE
        weight = min(factor * math.log1p(seen.failures), MAX_FAILURES)
        found.append(("repeated_failures", weight, seen.failures, None))
    if seen.event.action_type == "transaction_anomaly" and seen.anomalies > 0.1:
        weight = weights.ANOMALY_BEFORE * math.log1p(seen.anomalies)
        found.append(("anomaly_before", weight, seen.anomalies, None))
    if seen.learned >= SETTLED_HOURS:
        excess = _hour(seen)
        if excess > 0:
            found.append(("unusual_hour", weights.UNUSUAL_HOUR * excess, seen.hour, None))
    return found


def _hour(seen: Comparison) -> float:
    """Return how much rarer than in a third of its average hour the agent is active at this hour, in nats."""
    # Most hours are busy enough by themselves
    if seen.state.in_hour(seen.hour) / 2 * HOURS * QUIET_HOUR >= seen.state.learned:
        return 0.0
    near = seen.state.around(seen.hour)
    if near * HOURS * QUIET_HOUR >= seen.state.learned:
        return 0.0
    return min(math.log((seen.learned / HOURS + 1.0) / (QUIET_HOUR * near * seen.fading + 1.0)), MAX_HOUR)
