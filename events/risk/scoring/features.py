"""How unlike its agent's habits an event is: each difference as a signal with a weight in log-odds.

To add one: declare it beside the function that returns it, called in `signals()`, with its types in the
`.pxd`. No weight is below zero, so more difference never lowers a score, and what an event leaves out counts
as new: leaving out a tool, target or amount gains nothing. The weights of places, objects, acts and tools are
what a logistic regression finds on public streams (`docs/risk-model.md`); the others concern what no public
stream shows truly, or one alone, and are judged.
"""

import math

from events.risk.scoring import packed
from events.risk.scoring.comparison import AMOUNT, CONTAINER, OBJECT, READ_BEFORE, RESOURCE, Comparison
from events.risk.scoring.contract import FAILURES, SENDING, TRANSACTIONS, Context
from events.risk.scoring.reasons import WEIGHTS, Signal, about_usd, declare, itself, one_of, usd
from events.risk.scoring.state import AIM, AIMED, HOURS, AgentState, Baseline
from events.risk.scoring.tables import was_paid

PRIOR_RATE, PRIOR_TRIALS = 0.7, 2.0  # the rate of novelty assumed at first, and for how many trials it counts
MOST_TRIALS = 60.0  # trials after which the assumed rate counts no less
MAX_RARITY = 3.0  # nats
AIMED_KINDS = len(AIMED)  # the first kinds: where each sending action goes
UNTRIED, FEW_TRIALS = 0.35, 30.0  # what the first new name is worth, and the trials at which half of it goes


def rarity(state: AgentState, kind: int) -> float:
    """Return the nats of one new name of this kind: -ln of the agent's recent rate of new ones."""
    trials = min(state.trials_of(kind), MOST_TRIALS)
    assumed = aimed_rate(state) if kind < AIMED_KINDS else PRIOR_RATE
    rate = (state.rate_of(kind) * trials + assumed * PRIOR_TRIALS) / (trials + PRIOR_TRIALS)
    return min(MAX_RARITY, -math.log(rate))


def aimed_rate(state: AgentState) -> float:
    """Return how often the agent goes somewhere new with any action, assumed of those it has hardly tried."""
    new, trials = PRIOR_RATE * PRIOR_TRIALS, PRIOR_TRIALS
    for kind in range(AIMED_KINDS):
        count = min(state.trials_of(kind), MOST_TRIALS)
        new += state.rate_of(kind) * count
        trials += count
    return new / trials


def novelty(state: AgentState, kind: int) -> float:
    """Return how much a new name of this kind says, 0 to 1: little for an agent that often has new ones.

    Of an agent with few trials little is known: there a new name says something even if all were new so far.
    """
    untried = UNTRIED * FEW_TRIALS / (FEW_TRIALS + state.trials_of(kind))
    share = rarity(state, kind) / MAX_RARITY
    return untried + (1.0 - untried) * share * share


WITHIN_HOME = 0.5  # share inside the agent's own domain
MUTATION_CARRIES = 0.5  # share for a mutation with a target (an invitation), which carries out less
FETCH_CARRIES = 0.5  # share for a call that fetches: browsing goes to new places by its nature
MOST = 4.0  # log-odds that a new place can reach: well into medium, high only beside something else
IN_COMPANY = 0.9  # share for a new target beside a known one, who sees it


# Those of a new place are bounded together, by `MOST`
declare(
    "new_destination",
    "Goes where the agent has not been",
    itself,
    one_of("destinations"),
    NEW_DESTINATION=0.4,
)
declare(
    "read_then_send",
    "Goes somewhere new after the agent read something that may have named it",
    "sent to {} after reading".format,
    "known destinations after reading",
    READ_THEN_SEND=3.6,
)
declare("external_host", "Leaves the agent's own domain", itself, itself, EXTERNAL_HOST=6.75)


def destination_signals(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Weigh a new place, going there after reading, and a new place outside the agent's own domain."""
    if seen.destinations and not seen.new:
        return []
    told = seen.new[0] if seen.new else None
    found: list[Signal] = [
        ("new_destination", WEIGHTS["NEW_DESTINATION"], told, len(seen.state.destinations))
    ]
    if seen.reads > READ_BEFORE:
        found.append(("read_then_send", WEIGHTS["READ_THEN_SEND"] * min(seen.reads, 1.0), told, None))
    if context.home_domain is not None:
        outside = [host for host in seen.facts.hosts if not is_inside(host, context.home_domain)]
        if outside or not seen.facts.targets:
            told = outside[0] if outside else None
            found.append(("external_host", WEIGHTS["EXTERNAL_HOST"], told, context.home_domain))
    return _weighed(found, _strangeness(seen, context, baseline))


def _weighed(found: list[Signal], strange: float) -> list[Signal]:
    """Return the signals for a place that is so strange; together they approach MOST and don't pass it.

    Where a policy sets all their weights to zero, they weigh nothing.
    """
    total = 0.0
    for _, weight, _, _ in found:
        total += weight
    if not total:
        return found
    share = MOST * (1.0 - math.exp(-total * strange / MOST)) / total
    return [(name, weight * share, told, expected) for name, weight, told, expected in found]


def is_inside(host: str, home: str | None) -> bool:
    return home is not None and (host == home or host.endswith("." + home))


def _strangeness(seen: Comparison, context: Context, baseline: Baseline | None) -> float:
    """Return how strange the event's new places are, 0 to 1; a place left out is as strange as can be."""
    strange = novelty(seen.state, AIM[seen.action_type])
    if baseline is not None:
        strange *= baseline.strangeness(baseline.destinations, seen.new_names, seen.at, seen.learned)
    outside = [name for name in seen.new if not is_inside(name.rpartition("@")[2], context.home_domain)]
    if seen.new and not outside:
        strange *= WITHIN_HOME
    if seen.action_type == "data_mutation":
        strange *= MUTATION_CARRIES
    elif seen.action_type == "api_call" and seen.facts.brings_text:
        strange *= FETCH_CARRIES
    return strange * IN_COMPANY if 0 < len(seen.new) < len(seen.destinations) else strange


WAS_READ = 0.5  # share for acting on an object that the agent has only read
ACT_HALF = 40.0  # learned events at which an act counts for half
ACT_TRIALS, MAX_SELDOM = 5.0, 4.0  # events that count for none of a kind of act, and the most nats
ON_SOMETHING_NEW = 1.3  # factor for an act on a new object or with a new destination
READING_COUNTS = 0.5  # share for an unusual tool that only reads
DECLARED = 0.4  # share for an unusual tool of an agent with a declared scope
SURPRISE_SLACK, MAX_SURPRISE = 1.0, 5.0  # nats above the usual that say nothing, and the most that count


declare(
    "new_resource",
    "Touches something that the agent has not used",
    itself,
    one_of("resources"),
    NEW_RESOURCE=0.11,
)
declare(
    "new_object", "Acts on something that the agent never acted on", itself, one_of("objects"), NEW_OBJECT=0.5
)
declare(
    "new_container", "Acts in a place where the agent never acted", itself, "known places", NEW_CONTAINER=1.5
)


def object_signals(seen: Comparison) -> list[Signal]:
    """Weigh a new resource, acting on an object for the first time, and one that lies in a new container."""
    found: list[Signal] = []
    if seen.is_fresh:
        weight = WEIGHTS["NEW_RESOURCE"] * rarity(seen.state, RESOURCE) * seen.maturity
        found.append(("new_resource", weight, seen.facts.resource, len(seen.state.resources)))
    if not seen.new_objects or seen.hosts:
        return found
    share = seen.maturity if seen.is_fresh or seen.resource is None else WAS_READ * seen.maturity
    weight = WEIGHTS["NEW_OBJECT"] * novelty(seen.state, OBJECT) * share
    found.append(("new_object", weight, seen.facts.resources[0], len(seen.state.objects)))
    if seen.new_containers:
        weight = WEIGHTS["NEW_CONTAINER"] * novelty(seen.state, CONTAINER) * seen.maturity
        found.append(("new_container", weight, seen.facts.containers[0], None))
    return found


declare(
    "privileged_act",
    "An irreversible or privileged act that the agent seldom does",
    lambda told: f"{told[0]} by {told[1]}" if told[1] else told[0],
    "the agent's usual acts",
    PRIVILEGED_ACT=0.5,
)


def act_signals(seen: Comparison) -> list[Signal]:
    """Weigh an irreversible or privileged act by how seldom the agent does one of its kind."""
    if seen.act is None:
        return []
    done = seen.state.acts.get(seen.act) * seen.fading
    seldom = math.log((seen.learned + ACT_TRIALS) / (done * ACT_TRIALS + 1.0))
    if seldom <= 0.0:
        return []
    weight = WEIGHTS["PRIVILEGED_ACT"] * min(seldom, MAX_SELDOM) * seen.learned / (seen.learned + ACT_HALF)
    if seen.new or seen.new_objects:
        weight *= ON_SOMETHING_NEW
    return [("privileged_act", weight, (seen.facts.act, seen.facts.tool), None)]


declare(
    "unusual_tool",
    "A tool that the agent seldom uses, or never did",
    itself,
    "the agent's usual tools",
    UNUSUAL_TOOL=0.06,
)
declare(
    "unusual_sequence",
    "A tool that the agent doesn't use after the one before",
    "{} at this point".format,
    "the agent's usual order",
    UNUSUAL_SEQUENCE=0.07,
)


def tool_signals(seen: Comparison, context: Context, baseline: Baseline | None) -> list[Signal]:
    """Weigh the surprise of a tool and of its place in the order; less where the agent has a scope."""
    found: list[Signal] = []
    counts = seen.maturity * (1.0 if seen.aims or seen.action_type in SENDING else READING_COUNTS)
    if context.permitted_actions is not None:
        counts *= DECLARED
    excess = seen.unigram - seen.state.tool_surprise - SURPRISE_SLACK
    if excess > 0:
        strange = 1.0
        if baseline is not None:
            strange = baseline.strangeness(baseline.tools, [seen.tool], seen.at, seen.learned)
        weight = WEIGHTS["UNUSUAL_TOOL"] * min(excess, MAX_SURPRISE) * counts * strange
        found.append(("unusual_tool", weight, seen.facts.tool, None))
    excess = seen.bigram - seen.state.bigram_surprise - SURPRISE_SLACK
    if excess > 0:
        weight = WEIGHTS["UNUSUAL_SEQUENCE"] * min(excess, MAX_SURPRISE) * counts
        found.append(("unusual_sequence", weight, seen.facts.tool, None))
    return found


FEW_AMOUNTS = 5  # amounts known from which another is judged
LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW = 0.5, 0.1, 5.0
"""Least spread of amounts' square roots: absolute, as a share of the median, and wider while few."""
HALF_AMOUNTS = 20.0  # amounts known at which an unusual one counts for half
PAID_BEFORE = 0.1  # share for an amount that its payees got before
WITHIN = 0.4  # value of an amount one spread above the median; beyond, the logarithm is added
MAX_ABOVE = math.log(30.0)  # the greatest value of an amount, and that of one that is left out
TOKEN_SHARE = 0.1  # share of the median's square root up to which an amount tries out a new destination
SETTLED_AMOUNTS = 20.0  # learned transactions from which drift is judged
DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT = math.log(1.5), math.log(2.5)  # nats above the long-run usual to be drift
MAX_DRIFT = 2.0  # the greatest value of a drift


declare(
    "near_trade_limit",
    "Near the limit of a single trade",
    usd,
    lambda limit: f"well below {usd(limit)}",
    NEAR_TRADE_LIMIT=0.9,
)
declare("unusual_amount", "Far more than the agent usually moves", usd, about_usd, UNUSUAL_AMOUNT=2.1)
declare(
    "token_amount",
    "A tiny amount to somewhere new, as one tries out an account",
    usd,
    about_usd,
    TOKEN_AMOUNT=1.2,
)
declare(
    "drifted_amount",
    "Far more than it was for long, and the amounts before had crept up",
    usd,
    lambda usual: f"about {usd(math.expm1(usual))} over the long run",
    DRIFTED_AMOUNT=1.2,
)


def spending_signals(seen: Comparison, context: Context) -> list[Signal]:
    """Weigh the share of a trade's limit; amounts that are unusual, drifted up, or tiny to a new place."""
    found: list[Signal] = []
    if context.financial_scope is not None:
        limit = context.financial_scope.max_single_trade_usd
        used = 1.0 if seen.facts.amount is None else min(seen.facts.amount / limit, 1.0)
        found.append(
            ("near_trade_limit", WEIGHTS["NEAR_TRADE_LIMIT"] * used * used, seen.facts.amount, limit)
        )
    if len(seen.state.amounts) < FEW_AMOUNTS * packed.NUMBER:
        return found
    ordered = sorted(packed.unpack(seen.state.amounts))
    middle = ordered[len(ordered) // 2]
    worth = WEIGHTS["UNUSUAL_AMOUNT"] * len(ordered) / (len(ordered) + HALF_AMOUNTS)
    if seen.facts.amount is None:
        stated = min(1.25 * (1.0 - seen.state.rate_of(AMOUNT)), 1.0)
        found.append(("unusual_amount", worth * MAX_ABOVE * stated, None, middle))
        return found + _drift(seen.state, None, middle, stated)
    size = math.sqrt(seen.facts.amount)
    above = min(_above(ordered, middle, size), MAX_ABOVE)
    paid = [was_paid(seen.state.paid, payee, seen.day, size) for payee in seen.destinations]
    share = PAID_BEFORE if paid and all(paid) else 1.0
    if above > WITHIN:
        above = WITHIN + (above - WITHIN) * share
    if above:
        found.append(("unusual_amount", worth * above, seen.facts.amount, middle))
    elif seen.aims and (seen.new or not seen.facts.targets) and size <= TOKEN_SHARE * middle:
        found.append(("token_amount", WEIGHTS["TOKEN_AMOUNT"], seen.facts.amount, middle))
    return found + _drift(seen.state, seen.facts.amount, middle, share)


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


def _drift(state: AgentState, amount: float | None, middle: float, share: float) -> list[Signal]:
    """Weigh an amount far above the long-run usual one, where the recent ones have crept up."""
    if state.trials_of(AMOUNT) < SETTLED_AMOUNTS:
        return []
    if math.log1p(middle * middle) - state.usual_amount < DRIFT_OF_MEDIAN:
        return []
    above = MAX_DRIFT if amount is None else math.log1p(amount) - state.usual_amount - DRIFT_OF_AMOUNT
    if above <= 0:
        return []
    weight = WEIGHTS["DRIFTED_AMOUNT"] * min(1.0 + above, MAX_DRIFT) * share
    return [("drifted_amount", weight, amount, state.usual_amount)]


BURST_SLACK, MAX_BURST = 1.5, 2.0  # nats above the usual that say nothing, and the most that count
MAX_FAILURES = 3.9  # log-odds
SETTLED_HOURS = 100.0  # learned events (faded) from which hours are judged
QUIET_HOUR, MAX_HOUR = 3.0, 2.0  # an hour is quiet with a third of the average's activity; the most nats
SETTLED_DAYS = 5.0  # days of activity from which the day's totals count in full
FRESH_SLACK, OUTFLOW_SLACK = 0.5, math.log(4.0)  # nats above the usual that say nothing
MAX_VOLUME = 2.0  # the most nats that count
ACTIVE_HOURS, NEW_ALLOWED, MAX_NEW = 8.0, 0.4, 5.0  # of a day; new places beside the usual; most nats


declare(
    "burst",
    "Many events at once",
    "{:.0f} events in about a minute".format,
    "the agent's usual pace",
    BURST=0.5,
)
declare(
    "repeated_failures",
    "After failures",
    "{:.0f} failures in the last minutes".format,
    "none",
    FAILURE=1.4,
    FAILURE_BEFORE=0.25,
)
declare(
    "anomaly_before", "After another anomaly", "{:.0f} in the last minutes".format, "none", ANOMALY_BEFORE=0.6
)
declare(
    "unusual_hour",
    "At an hour when the agent is seldom active",
    "active at {:02d} h UTC".format,
    "the agent's usual hours",
    UNUSUAL_HOUR=0.25,
)


def pace_signals(seen: Comparison) -> list[Signal]:
    """Weigh bursts, failures, repeated anomalies and unusual hours."""
    found: list[Signal] = []
    excess = math.log1p(seen.burst) - seen.state.burst_level - BURST_SLACK
    if excess > 0:
        found.append(("burst", WEIGHTS["BURST"] * min(excess, MAX_BURST) * seen.maturity, seen.burst, None))
    if seen.failures > 0.1:
        factor = WEIGHTS["FAILURE"] if seen.action_type in FAILURES else WEIGHTS["FAILURE_BEFORE"]
        weight = min(factor * math.log1p(seen.failures), MAX_FAILURES)
        found.append(("repeated_failures", weight, seen.failures, None))
    if seen.action_type == "transaction_anomaly" and seen.anomalies > 0.1:
        weight = WEIGHTS["ANOMALY_BEFORE"] * math.log1p(seen.anomalies)
        found.append(("anomaly_before", weight, seen.anomalies, None))
    if seen.learned >= SETTLED_HOURS:
        excess = _hour(seen)
        if excess > 0:
            found.append(("unusual_hour", WEIGHTS["UNUSUAL_HOUR"] * excess, seen.hour, None))
    return found


declare(
    "many_resources",
    "Touches many more new things than usual",
    "{:.0f} new resources in about an hour".format,
    "the agent's usual pace",
    MANY_RESOURCES=1.8,
)
declare(
    "many_destinations",
    "Goes to many more new places than usual",
    "{:.0f} new destinations in about an hour".format,
    "about {:.1f} a day".format,
    MANY_DESTINATIONS=0.7,
)
declare(
    "high_outflow",
    "Moves far more money in a day than usual",
    lambda moved: f"{usd(moved)} today",
    lambda usual: f"about {usd(math.expm1(usual))} a day",
    OUTFLOW=0.3,
)


def volume_signals(seen: Comparison) -> list[Signal]:
    """Weigh how much more than usual the agent does: new resources an hour, new places and money a day."""
    found: list[Signal] = []
    settled = min(seen.state.days / SETTLED_DAYS, 1.0)
    excess = math.log1p(seen.fresh) - seen.state.usual_fresh - FRESH_SLACK
    if excess > 0 and seen.is_fresh:
        weight = WEIGHTS["MANY_RESOURCES"] * min(excess, MAX_VOLUME) * settled
        found.append(("many_resources", weight, seen.fresh, None))
    if seen.hour_new > 1.0 and (seen.new_names or seen.is_further):
        expected = seen.state.usual_new / ACTIVE_HOURS + NEW_ALLOWED
        if seen.hour_new > expected:
            # About how unlikely so many are: Chernoff's bound of a Poisson count
            surprise = seen.hour_new * math.log(seen.hour_new / expected) - (seen.hour_new - expected)
            weight = WEIGHTS["MANY_DESTINATIONS"] * min(surprise, MAX_NEW) * settled
            found.append(("many_destinations", weight, seen.hour_new, seen.state.usual_new))
    if seen.outflow and seen.state.usual_outflow:
        excess = math.log1p(seen.outflow) - seen.state.usual_outflow - OUTFLOW_SLACK
        if excess > 0:
            weight = WEIGHTS["OUTFLOW"] * min(excess, MAX_VOLUME) * settled
            found.append(("high_outflow", weight, seen.outflow, seen.state.usual_outflow))
    return found


def _hour(seen: Comparison) -> float:
    """Return how much rarer the agent's activity at this hour is than in a third of its average, in nats."""
    # Most hours are busy enough by themselves
    if seen.state.in_hour(seen.hour) / 2 * HOURS * QUIET_HOUR >= seen.state.learned:
        return 0.0
    near = seen.state.around(seen.hour)
    if near * HOURS * QUIET_HOUR >= seen.state.learned:
        return 0.0
    return min(math.log((seen.learned / HOURS + 1.0) / (QUIET_HOUR * near * seen.fading + 1.0)), MAX_HOUR)


def signals(seen: Comparison, context: Context, baseline: Baseline | None = None) -> list[Signal]:
    """Return every difference that may weigh something, in no particular order."""
    found = destination_signals(seen, context, baseline) if seen.aims else []
    found += object_signals(seen)
    found += act_signals(seen)
    if seen.has_tool:
        found += tool_signals(seen, context, baseline)
    if seen.action_type in TRANSACTIONS:
        found += spending_signals(seen, context)
    return found + pace_signals(seen) + volume_signals(seen)
