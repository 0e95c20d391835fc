"""The scorer's numbers: the prior of each action type, and the weight of each difference from habit.

Weights are log-odds for one unit of a feature's value, at or above zero, so no difference lowers a score.
"Chosen" ones were tried on public streams (`docs/risk-model.md`); "judged" ones concern what no public stream
shows truly: timing, failures, declared limits.
"""

from math import log

# Judged: an ordinary action is low, one failure just under medium, a reported anomaly medium
PRIORS: dict[str, float] = {
    "api_call": 0.05,
    "authentication_attempt": 0.06,
    "authentication_failure": 0.20,
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
DOING = frozenset({"api_call", "data_access", "data_mutation", "transaction_initiated"})
"""Actions an agent takes of its own accord; the rest are outcomes that need no permission."""

# Chosen
NEW_DESTINATION = 0.14
READ_THEN_SEND = 1.4
NEW_HOST = 0.2
EXTERNAL_HOST = 0.9
UNUSUAL_TOOL = 0.1
UNUSUAL_SEQUENCE = 0.06
NEW_RESOURCE = 0.05
UNUSUAL_AMOUNT = 1.9
TOKEN_AMOUNT = 1.2

# Judged
NEAR_TRADE_LIMIT = 0.9
DRIFTED_AMOUNT = 1.2
BURST = 0.5
UNUSUAL_HOUR = 0.25
FAILURE = 1.0
FAILURE_BEFORE = 0.25
ANOMALY_BEFORE = 0.6
