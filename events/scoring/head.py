"""From evidence to a score and a band."""

from math import exp, log

from events.scoring.reasons import Signal

COLD_CAP = 0.84
"""The most that evidence from habits alone can reach while the agent has too few habits to judge by."""
ENOUGH_HABITS = 30.0
"""Learned events (faded) from which an agent's own habits may carry a score into high."""
BEND = 1.0
PAST_BEND = 0.2
"""Past a score of 0.73 evidence counts for less: habits alone should seldom reach high, and only together."""
RULE_FLOOR = 0.90
MORE_RULES = 0.6
"""Each further broken rule leaves this share of the distance to 1."""


def floor_of(broken: int) -> float:
    """The least an event scores that breaks so many rules: 0 for none, then 0.90, 0.94, 0.964, …"""
    return 1 - (1 - RULE_FLOOR) * MORE_RULES ** (broken - 1) if broken else 0.0


def rule_weight(prior_logit: float) -> float:
    """What one broken rule adds in log-odds, for the explanation; at least 0.1 so that it is told."""
    return max(log(RULE_FLOOR / (1 - RULE_FLOOR)) - prior_logit, 0.1)


def combine(prior_logit: float, evidence: list[Signal], broken: int, capped: bool) -> float:
    """The score, four decimals: the evidence's log-odds on top of the prior's, held between cap and floor."""
    total = 0.0
    for signal in evidence:  # one by one, in order: sum() rounds otherwise from one Python to the next
        total += signal.weight
    logit = prior_logit + total
    if logit > BEND:
        logit = BEND + (logit - BEND) * PAST_BEND
    score = 1 / (1 + exp(-logit))
    if capped and score > COLD_CAP:
        score = COLD_CAP
    if broken:
        score = max(score, floor_of(broken))
    return int(score * 10_000 + 0.5) / 10_000  # round() takes three times as long
