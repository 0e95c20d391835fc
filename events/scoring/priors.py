"""What an action of each type is worth before anything else is known about it.

The figures are judgements, not fits: the streams that exist cover four of the ten types. They follow from
what the types mean in the interface: an ordinary action starts low, a failure starts just under medium so
that repeating it crosses over, a reported anomaly starts medium, and a reported breach of scope is high by
rule (`rules.py`).
"""

from math import log

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
SENDING = frozenset({"api_call", "data_mutation"}) | TRANSACTIONS
"""Actions that carry something out of the agent, so that where they go matters."""
FAILURES = frozenset({"authentication_failure", "message_verification_failed"})
DOING = frozenset({"api_call", "data_access", "data_mutation", "transaction_initiated"})
"""Actions an agent takes of its own accord; the rest are outcomes that need no permission."""
