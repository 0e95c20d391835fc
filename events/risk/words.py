"""A score's reasons as an officer reads them."""

from math import exp
from typing import Any

from events.risk.scoring.rules import MISMATCH_LOGIT, RULE_FLOOR, RULES

MISMATCH_SCORE = 1 / (1 + exp(-MISMATCH_LOGIT))

WORDS = {
    "action_type": "What such an action is worth by itself",
    "new_destination": "Goes where the agent has not been",
    "read_then_send": "Goes somewhere new after the agent read something that may have named it",
    "external_host": "Leaves the agent's own domain",
    "new_resource": "Touches something that the agent has not used",
    "new_object": "Acts on something that the agent never acted on",
    "new_container": "Acts in a place where the agent never acted",
    "privileged_act": "An irreversible or privileged act that the agent seldom does",
    "many_resources": "Touches many more new things than usual",
    "many_destinations": "Goes to many more new places than usual",
    "high_outflow": "Moves far more money in a day than usual",
    "unusual_tool": "A tool that the agent seldom uses, or never did",
    "unusual_sequence": "A tool that the agent doesn't use after the one before",
    "unusual_amount": "Far more than the agent usually moves",
    "drifted_amount": "Far more than it was for long, and the amounts before had crept up",
    "token_amount": "A tiny amount to somewhere new, as one tries out an account",
    "near_trade_limit": "Near the limit of a single trade",
    "unusual_hour": "At an hour when the agent is seldom active",
    "burst": "Many events at once",
    "repeated_failures": "After failures",
    "anomaly_before": "After another anomaly",
    "confirmed_destination": "Goes where an attack went that an officer confirmed",
    "reported_unauthorized": "The agent itself reports an attempt outside its scope",
    "repeated_anomaly": "One anomaly too many within minutes",
    "scope_mismatch": "Not a name in the agent's scope, of which no name was reported yet",
    "off_scope": "Outside the agent's permitted actions",
    "over_single_trade_limit": "Over the limit of a single trade",
    "over_daily_limit": "Over the limit of a day",
    "instrument_not_permitted": "An instrument that the agent may not trade",
    "venue_not_permitted": "A venue where the agent may not trade",
    "leverage_not_permitted": "With leverage, which the agent may not use",
    "over_leverage_limit": "With more leverage than permitted",
}


def in_words(name: str) -> str:
    """Return the reason's sentence, or its name in words."""
    return WORDS.get(name, name.replace("_", " ").capitalize())


def worth(name: object, weight: Any) -> str:
    """Return what a reason does to a score: `rule: at least 0.90`, or `odds 8.2 times as high`."""
    if name in RULES:
        return f"rule: at least {RULE_FLOOR:.2f}"
    if name == "scope_mismatch":
        # Its weight depends on the action's prior, and is next to nothing where that is as high already.
        return f"alone at least {MISMATCH_SCORE:.2f}"
    is_weight = isinstance(weight, int | float) and not isinstance(weight, bool) and -50 < weight < 50
    return f"odds {exp(weight):.1f} times as high" if is_weight else "-"
