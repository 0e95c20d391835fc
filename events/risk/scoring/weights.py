"""The scorer's numbers: the prior of each action type, and the weight of each difference from habit.

Weights are log-odds for one unit of a feature's value, at or above zero, so no difference lowers a score.
Those of a new place are bounded together (`features/destinations.py`); `MARKED_ALONE` is a score. "Learned"
ones are what `./run bench fit_risk` finds on public streams (`docs/risk-model.md`); "judged" ones concern
what no public stream shows truly, or one alone: timing, failures, amounts, declared limits.
"""

from math import log

# Judged: an ordinary action is low, the fourth failure in minutes medium, a reported anomaly medium
PRIORS: dict[str, float] = {
    "api_call": 0.05,
    "authentication_attempt": 0.03,
    "authentication_failure": 0.06,
    "data_access": 0.03,
    "data_mutation": 0.06,
    "transaction_initiated": 0.06,
    "transaction_anomaly": 0.60,
    "unauthorized_access_attempt": 0.90,
    "message_signed": 0.04,
    "message_verification_failed": 0.20,
}

PRIOR_LOGITS: dict[str, float] = {action: log(prior / (1 - prior)) for action, prior in PRIORS.items()}

TRANSACTIONS = frozenset({"transaction_initiated", "transaction_anomaly"})
# Actions that carry something out of the agent, so that where they go matters
SENDING = frozenset({"api_call", "data_mutation"}) | TRANSACTIONS
FAILURES = frozenset({"authentication_failure", "message_verification_failed"})
REPORTED = FAILURES | {"transaction_anomaly", "unauthorized_access_attempt"}
"""What an agent says went wrong."""
DOING = frozenset({"api_call", "data_access", "data_mutation", "transaction_initiated"})
"""Actions an agent takes of its own accord; the rest are outcomes that need no permission."""

# Learned
NEW_DESTINATION = 0.4
READ_THEN_SEND = 3.6
EXTERNAL_HOST = 6.75
UNUSUAL_TOOL = 0.06
UNUSUAL_SEQUENCE = 0.07
NEW_RESOURCE = 0.11
NEW_OBJECT = 0.5
NEW_CONTAINER = 1.5
PRIVILEGED_ACT = 0.5

# Judged
UNUSUAL_AMOUNT = 2.1
TOKEN_AMOUNT = 1.2
NEAR_TRADE_LIMIT = 0.9
DRIFTED_AMOUNT = 1.2
MANY_RESOURCES = 1.8
MANY_DESTINATIONS = 0.7
OUTFLOW = 0.3
BURST = 0.5
UNUSUAL_HOUR = 0.25
FAILURE = 1.4
FAILURE_BEFORE = 0.25
ANOMALY_BEFORE = 0.6
MARKED_ALONE = 0.4
"""The score of an event that is unremarkable but for a fresh mark, at a place that is new to its agent."""
MARKED_MORE = 1.0
"""What a mark weighs where that says less."""
MARKED_AGAIN = 1.5
"""What a second confirmation adds."""
