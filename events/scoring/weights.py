"""What each difference from habit is worth, in log-odds for one unit of its value.

All are at or above zero, so no difference lowers a score.
Those under "chosen" were set by hand, to round figures, with the measure of `bench/fit_risk.py` in view: it
judges weights, and finds some by itself, by replaying public streams that this project
neither made nor carries.

- AgentDojo (Debenedetti et al., 2024): tool calls of language-model agents, each task clean and attacked;
- the transaction simulator of the Fraud Detection Handbook (Le Borgne et al., 2022);
- Agent Security Bench (Zhang et al., 2025), runs with human labels.

Those under "judged" speak of what no public stream shows truly: real timing, failures, declared limits.
`docs/risk-model.md` has the figures they reach.
"""

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
