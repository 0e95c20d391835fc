"""What a new name is worth, by how often this agent has new ones."""

import math

from events.risk.scoring.habits.state import AIMED, AgentState

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
