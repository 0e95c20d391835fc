"""How unlike the agent's own habits an event is, each difference as a weight in log-odds.

Novelty is scaled by the agent's own rate of it: a new destination is worth -ln(rate) nats, squared, so it
says much about an agent that always writes to the same three and next to nothing about one that often writes
to somebody new.
What an event leaves out counts as if it were new: leaving out a tool, target or amount gains nothing.
"""

from math import log, log1p, sqrt

from events.scoring import weights
from events.scoring.baseline import Baseline
from events.scoring.contract import Context, Event
from events.scoring.details import Facts
from events.scoring.packed import NUMBER, double_at, unpack
from events.scoring.priors import FAILURES, SENDING, TRANSACTIONS
from events.scoring.reasons import Signal, signal
from events.scoring.state import HOURS, KIND, AgentState
from events.scoring.tables import Table
from events.scoring.view import AMOUNT, HOST, READ_BEFORE, RESOURCE, View

PRIOR_RATE = 0.7
PRIOR_TRIALS = 2.0
"""What is held of an agent's rate of novelty before it is known, and for how many trials that counts."""
MOST_TRIALS = 20.0
"""Trials that a running rate remembers."""
MAX_RARITY = 2.5
WITHIN_HOME = 0.5
"""What is new but inside the agent's own domain is half as strange."""
SELDOM = 0.6
"""What a nat of rarity adds to sending somewhere new after reading, as a share."""
MUTATION_CARRIES = 0.35
"""A mutation that names a target (an invitation, a share) carries less out than a call or a payment does."""
IN_COMPANY = 0.5
"""A stranger beside somebody known is less strange: who writes to both does so in the known one's sight."""
READING_COUNTS = 0.5
"""An unusual tool that only reads is worth half of one that does something."""
DECLARED = 0.4
"""A tool that is seldom used is less strange if the agent was declared for it."""
SURPRISE_SLACK = 1.0
MAX_SURPRISE = 5.0
FEW_AMOUNTS = 5
LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW = 0.5, 0.1, 5.0
"""Least spread of amounts' square roots: absolute, as a share of the median, and wider while few."""
HALF_AMOUNTS = 20.0
"""Amounts known at which an unusual one counts for half."""
WITHIN = 0.4
"""What an amount is worth that is one spread above the median; beyond, the logarithm is added."""
MAX_ABOVE = log(30.0)
"""The most an amount is worth, at thirty spreads above the median; one that is left out is worth it too."""
TOKEN_SHARE = 0.1
"""A square root this small beside the median's (1 % of the amount) tries out a new destination."""
SETTLED_AMOUNTS = 20.0
DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT, MAX_DRIFT = log(2.0), log(4.0), 2.0
BURST_SLACK = 1.5
MAX_BURST = 2.0
MAX_FAILURES = 2.9
SETTLED_HOURS = 100.0
QUIET_HOUR = 3.0
MAX_HOUR = 2.0


def signals(
    state: AgentState,
    event: Event,
    context: Context,
    facts: Facts,
    seen: View,
    baseline: Baseline | None = None,
) -> list[Signal]:
    """Every difference that may weigh something, in no particular order."""
    found = _destination(state, event, context, seen, baseline) if seen.aims else []
    if seen.hosts or (seen.aims and not facts.targets):
        found += _host(state, event, context, facts, seen, baseline)
    if seen.resource is not None and not state.resources.knows(seen.resource, seen.fading):
        value = rarity(state, RESOURCE) * seen.maturity
        found.append(
            signal("new_resource", weights.NEW_RESOURCE * value, facts.resource, len(state.resources))
        )
    if seen.has_tool:
        found += _tool(state, event, context, facts, seen, baseline)
    if event.action_type in TRANSACTIONS:
        found += _amount(state, context, facts, seen)
    return found + _pace(state, event, seen)


def rarity(state: AgentState, kind: int) -> float:
    """What one new name of this kind is worth, in nats: -ln of the agent's own recent rate of new ones."""
    trials = min(double_at(state.trials, kind * NUMBER), MOST_TRIALS)
    rate = (double_at(state.rates, kind * NUMBER) * trials + PRIOR_RATE * PRIOR_TRIALS) / (
        trials + PRIOR_TRIALS
    )
    nats = -log(rate)
    return min(MAX_RARITY, nats)


def _strangeness(baseline: Baseline, table: Table, names: list[bytes], seen: View) -> float:
    return baseline.strangeness(table, names, seen.at, seen.learned)


def _destination(
    state: AgentState, event: Event, context: Context, seen: View, baseline: Baseline | None
) -> list[Signal]:
    if seen.destinations and not seen.new:
        return []
    strange = 1.0 if baseline is None else _strangeness(baseline, baseline.destinations, seen.new_names, seen)
    if seen.new and context.home_domain is not None and _all_inside(seen.new, context.home_domain):
        strange *= WITHIN_HOME
    nats = rarity(state, KIND[event.action_type]) * strange
    told = seen.new[0] if seen.new else None
    carries = _carries(event, seen)
    weight = weights.NEW_DESTINATION * nats * nats * carries
    found = [signal("new_destination", weight, told, len(state.destinations))]
    if seen.reads > READ_BEFORE:
        value = (strange + SELDOM * nats) * carries
        found.append(signal("read_then_send", weights.READ_THEN_SEND * value, told))
    return found


def _carries(event: Event, seen: View) -> float:
    """How much of what is strange about a destination counts."""
    carries = MUTATION_CARRIES if event.action_type == "data_mutation" else 1.0
    return carries * IN_COMPANY if 0 < len(seen.new) < len(seen.destinations) else carries


def _host(
    state: AgentState,
    event: Event,
    context: Context,
    facts: Facts,
    seen: View,
    baseline: Baseline | None,
) -> list[Signal]:
    """A host outside the agent's own domain or one it has not been to; a target left out counts as both."""
    if context.home_domain is None and not state.hosts.names:
        return []
    outside = [
        (host, name)
        for host, name in zip(facts.hosts, seen.hosts, strict=True)
        if not _inside(host, context.home_domain)
    ]
    new = [pair for pair in outside if not state.hosts.knows(pair[1], seen.fading)]
    found = []
    carries = _carries(event, seen)
    left_out = seen.aims and not facts.targets
    if new or left_out:
        told = new[0][0] if new else None
        if baseline is not None and new:
            carries *= _strangeness(baseline, baseline.hosts, [name for _, name in new], seen)
        weight = weights.NEW_HOST * rarity(state, HOST) * carries
        found.append(signal("new_host", weight, told, len(state.hosts)))
    if context.home_domain is not None and ((outside and seen.new) or left_out or new):
        told = (new or outside)[0][0] if outside else None
        found.append(signal("external_host", weights.EXTERNAL_HOST * carries, told, context.home_domain))
    return found


def _inside(host: str, home: str | None) -> bool:
    return home is not None and (host == home or host.endswith("." + home))


def _all_inside(targets: list[str], home: str) -> bool:
    return all(_inside(target.rpartition("@")[2], home) for target in targets)


def _tool(
    state: AgentState,
    event: Event,
    context: Context,
    facts: Facts,
    seen: View,
    baseline: Baseline | None,
) -> list[Signal]:
    """Surprise at a tool and its place in the order; less where a scope declares the agent's tools."""
    found = []
    counts = seen.maturity * (1.0 if event.action_type in SENDING else READING_COUNTS)
    if context.permitted_actions is not None:
        counts *= DECLARED
    excess = seen.unigram - state.tool_surprise - SURPRISE_SLACK
    if excess > 0:
        strange = 1.0 if baseline is None else _strangeness(baseline, baseline.tools, [seen.tool], seen)
        weight = weights.UNUSUAL_TOOL * min(excess, MAX_SURPRISE) * counts * strange
        found.append(signal("unusual_tool", weight, facts.tool))
    excess = seen.bigram - state.bigram_surprise - SURPRISE_SLACK
    if excess > 0:
        weight = weights.UNUSUAL_SEQUENCE * min(excess, MAX_SURPRISE) * counts
        found.append(signal("unusual_sequence", weight, facts.tool))
    return found


def _amount(state: AgentState, context: Context, facts: Facts, seen: View) -> list[Signal]:
    found = []
    if context.financial_scope is not None:
        limit = context.financial_scope.max_single_trade_usd
        used = 1.0 if facts.amount is None else min(facts.amount / limit, 1.0)
        found.append(signal("near_trade_limit", weights.NEAR_TRADE_LIMIT * used * used, facts.amount, limit))
    if len(state.amounts) < FEW_AMOUNTS * NUMBER:
        return found
    ordered = sorted(unpack(state.amounts))
    middle = ordered[len(ordered) // 2]
    worth = weights.UNUSUAL_AMOUNT * len(ordered) / (len(ordered) + HALF_AMOUNTS)
    if facts.amount is None:
        stated = min(1.25 * (1.0 - double_at(state.rates, AMOUNT * NUMBER)), 1.0)
        found.append(signal("unusual_amount", worth * MAX_ABOVE * stated, None, middle))
        return found + _drift(state, None, middle)
    size = sqrt(facts.amount)
    above = min(_above(ordered, middle, size), MAX_ABOVE)
    if above:
        found.append(signal("unusual_amount", worth * above, facts.amount, middle))
    elif seen.aims and (seen.new or not facts.targets) and size <= TOKEN_SHARE * middle:
        found.append(signal("token_amount", weights.TOKEN_AMOUNT, facts.amount, middle))
    return found + _drift(state, facts.amount, middle)


def _above(ordered: list[float], middle: float, size: float) -> float:
    """How far a size is above the median, in robust deviations (1.4826 MAD, not below the least), as nats."""
    above = size - middle
    if above <= 0:
        return 0.0
    least = max(LEAST_SPREAD, (LEAST_SHARE + LEAST_OF_FEW / len(ordered)) * middle)
    if above <= least:  # within one deviation whatever the spread, so most amounts need none
        return WITHIN * above / least
    deviations = above / max(1.4826 * _median_distance(ordered, middle), least)
    return WITHIN + (log(deviations) if deviations > 1.0 else 0.0)


def _median_distance(ordered: list[float], middle: float) -> float:
    """The upper median of the distances to `middle`, the least reach around it that covers more than half.

    Found by bisection: of the runs of so many neighbours, the one that begins and ends equally far away.
    """
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
    """An amount far above what was usual for long, where the recent ones have crept up."""
    if double_at(state.trials, AMOUNT * NUMBER) < SETTLED_AMOUNTS:
        return []
    if log1p(middle * middle) - state.usual_amount < DRIFT_OF_MEDIAN:
        return []
    above = MAX_DRIFT if amount is None else log1p(amount) - state.usual_amount - DRIFT_OF_AMOUNT
    if above <= 0:
        return []
    weight = weights.DRIFTED_AMOUNT * min(1.0 + above, MAX_DRIFT)
    return [signal("drifted_amount", weight, amount, state.usual_amount)]


def _pace(state: AgentState, event: Event, seen: View) -> list[Signal]:
    found = []
    excess = log1p(seen.burst) - state.burst_level - BURST_SLACK
    if excess > 0:
        found.append(signal("burst", weights.BURST * min(excess, MAX_BURST) * seen.maturity, seen.burst))
    if seen.failures > 0.1:
        factor = weights.FAILURE if event.action_type in FAILURES else weights.FAILURE_BEFORE
        weight = min(factor * log1p(seen.failures), MAX_FAILURES)
        found.append(signal("repeated_failures", weight, seen.failures))
    if event.action_type == "transaction_anomaly" and seen.anomalies > 0.1:
        weight = weights.ANOMALY_BEFORE * log1p(seen.anomalies)
        found.append(signal("anomaly_before", weight, seen.anomalies))
    if seen.learned >= SETTLED_HOURS:
        excess = _hour(state, seen)
        if excess > 0:
            found.append(signal("unusual_hour", weights.UNUSUAL_HOUR * excess, seen.hour))
    return found


def _hour(state: AgentState, seen: View) -> float:
    """How much rarer than a third of its average hour the agent is active around this one, in nats."""
    # Most hours are busy enough by themselves
    if state.in_hour(seen.hour) / 2 * HOURS * QUIET_HOUR >= state.learned:
        return 0.0
    near = state.around(seen.hour)
    if near * HOURS * QUIET_HOUR >= state.learned:
        return 0.0
    return min(log((seen.learned / HOURS + 1.0) / (QUIET_HOUR * near * seen.fading + 1.0)), MAX_HOUR)
