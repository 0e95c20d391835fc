"""How fast and how much an agent acts, against its own pace; each is bounded."""

import math

from events.risk.scoring import weights
from events.risk.scoring.habits.comparison import Comparison
from events.risk.scoring.habits.state import HOURS
from events.risk.scoring.reasons import Signal
from events.risk.scoring.weights import FAILURES

BURST_SLACK, MAX_BURST = 1.5, 2.0  # nats above the usual that say nothing, and the most that count
MAX_FAILURES = 2.9  # log-odds
SETTLED_HOURS = 100.0  # learned events (faded) from which hours are judged
QUIET_HOUR, MAX_HOUR = 3.0, 2.0  # an hour is quiet with a third of the average's activity; the most nats
SETTLED_DAYS = 5.0  # days of activity from which the day's totals count in full
FRESH_SLACK, OUTFLOW_SLACK = 0.5, math.log(4.0)  # nats above the usual that say nothing
MAX_VOLUME = 2.0  # the most nats that count
ACTIVE_HOURS, NEW_ALLOWED, MAX_NEW = 8.0, 0.4, 5.0  # of a day; new places beside the usual; most nats


def pace_signals(seen: Comparison) -> list[Signal]:
    """Weigh bursts, failures, repeated anomalies and unusual hours."""
    found: list[Signal] = []
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


def volume_signals(seen: Comparison) -> list[Signal]:
    """Weigh how much more than usual the agent does: new resources an hour, new places and money a day."""
    found: list[Signal] = []
    settled = min(seen.state.days / SETTLED_DAYS, 1.0)
    excess = math.log1p(seen.fresh) - seen.state.usual_fresh - FRESH_SLACK
    if excess > 0 and seen.is_fresh:
        weight = weights.MANY_RESOURCES * min(excess, MAX_VOLUME) * settled
        found.append(("many_resources", weight, seen.fresh, None))
    if seen.hour_new > 1.0 and (seen.new_names or seen.is_further):
        surprise = _surprise(seen.hour_new, seen.state.usual_new / ACTIVE_HOURS + NEW_ALLOWED)
        if surprise > 0:
            weight = weights.MANY_DESTINATIONS * min(surprise, MAX_NEW) * settled
            found.append(("many_destinations", weight, seen.hour_new, seen.state.usual_new))
    if seen.outflow and seen.state.usual_outflow:
        excess = math.log1p(seen.outflow) - seen.state.usual_outflow - OUTFLOW_SLACK
        if excess > 0:
            weight = weights.OUTFLOW * min(excess, MAX_VOLUME) * settled
            found.append(("high_outflow", weight, seen.outflow, seen.state.usual_outflow))
    return found


def _surprise(count: float, expected: float) -> float:
    """Return about how unlikely so many are, in nats: Chernoff's bound of a Poisson count."""
    return count * math.log(count / expected) - (count - expected) if count > expected else 0.0


def _hour(seen: Comparison) -> float:
    """Return how much rarer the agent's activity at this hour is than in a third of its average, in nats."""
    # Most hours are busy enough by themselves
    if seen.state.in_hour(seen.hour) / 2 * HOURS * QUIET_HOUR >= seen.state.learned:
        return 0.0
    near = seen.state.around(seen.hour)
    if near * HOURS * QUIET_HOUR >= seen.state.learned:
        return 0.0
    return min(math.log((seen.learned / HOURS + 1.0) / (QUIET_HOUR * near * seen.fading + 1.0)), MAX_HOUR)
