"""How much money an event moves, against the agent's amounts and limits."""

import math

from events.risk.scoring import weights
from events.risk.scoring.contract import Context
from events.risk.scoring.habits import packed
from events.risk.scoring.habits.comparison import AMOUNT, Comparison
from events.risk.scoring.habits.paid import was_paid
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.reasons import Signal

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


def spending_signals(seen: Comparison, context: Context) -> list[Signal]:
    """Weigh the share of a trade's limit; amounts that are unusual, drifted up, or tiny to a new place."""
    found: list[Signal] = []
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
        return found + _drift(seen.state, None, middle, stated)
    size = math.sqrt(seen.facts.amount)
    above = min(_above(ordered, middle, size), MAX_ABOVE)
    share = PAID_BEFORE if _were_paid(seen, size) else 1.0
    if above > WITHIN:
        above = WITHIN + (above - WITHIN) * share
    if above:
        found.append(("unusual_amount", worth * above, seen.facts.amount, middle))
    elif seen.aims and (seen.new or not seen.facts.targets) and size <= TOKEN_SHARE * middle:
        found.append(("token_amount", weights.TOKEN_AMOUNT, seen.facts.amount, middle))
    return found + _drift(seen.state, seen.facts.amount, middle, share)


def _were_paid(seen: Comparison, size: float) -> bool:
    """Return whether all payees got such an amount before."""
    for payee in seen.destinations:
        if not was_paid(seen.state.paid, payee, seen.day, size):
            return False
    return bool(seen.destinations)


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
    weight = weights.DRIFTED_AMOUNT * min(1.0 + above, MAX_DRIFT) * share
    return [("drifted_amount", weight, amount, state.usual_amount)]
