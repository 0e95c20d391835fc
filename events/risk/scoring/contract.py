"""The scorer's input and output, and what the action types mean to it."""

from collections.abc import Iterable, Mapping
from math import log

import msgspec

from events.risk.scoring.names import normal_name
from tenancy.alarm_budgets import ALARM_BUDGET


class FinancialScope(msgspec.Struct, frozen=True):
    """The limits an agent was registered with; amounts in US dollars."""

    max_single_trade_usd: float
    daily_limit_usd: float
    permitted_instruments: tuple[str, ...]
    permitted_venues: tuple[str, ...]
    leverage_permitted: bool
    max_leverage_ratio: float | None = None


class Marks(msgspec.Struct, frozen=True):
    """The places marked for a tenant, and how often each was confirmed, faded to `at` (epoch seconds)."""

    at: float = 0.0
    confirmed: Mapping[str, float] = {}


NO_MARKS = Marks()


class Context(msgspec.Struct, frozen=True):
    """What the service knows of the agent apart from its events.

    `permitted_actions`, from `normal_actions()`: None applies no scope rule, an empty set permits no named
    action. `home_domain`: the domain of the agent's own mail or network, if known. `marked`: the places of
    the attacks on the tenant that an officer confirmed. `alarm_budget`: the share of the agent's ordinary
    events that may be medium or high.
    """

    permitted_actions: frozenset[str] | None = None
    financial_scope: FinancialScope | None = None
    home_domain: str | None = None
    marked: Marks = NO_MARKS
    alarm_budget: float = ALARM_BUDGET


NO_CONTEXT = Context()


class Event(msgspec.Struct, frozen=True, gc=False):
    """One reported action.

    `received_at`: seconds since the epoch by the service's own clock; the agent's clock plays no part.
    `details`: the agent's free-form JSON, of any shape and never trusted.
    """

    action_type: str
    received_at: float
    details: object = None


class ScoreReason(msgspec.Struct, frozen=True, gc=False):
    """One contribution to a score: `weight` in log-odds, `observed` and `expected` as short texts.

    Ready for JSON and for a PostgreSQL `jsonb` column: no NUL, no lone surrogate.
    """

    name: str
    observed: str
    expected: str
    weight: float


class RiskVerdict(msgspec.Struct, frozen=True, gc=False):
    """A score, 0 to 1 with four decimals, its band, and at most three reasons, what decided first."""

    score: float
    band: str
    reasons: tuple[ScoreReason, ...]
    model_version: str


def normal_actions(actions: Iterable[object]) -> frozenset[str]:
    """Return declared action names as the scope rule spells them; a blank one permits nothing."""
    return frozenset(normal_name(one) for one in actions if isinstance(one, str) and one.strip())


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
UNCOUNTED = frozenset({"message_verification_failed", "transaction_anomaly", "unauthorized_access_attempt"})
"""Reports whose evidence isn't measured by how often an agent makes them."""
REPORTED = FAILURES | UNCOUNTED
"""What an agent says went wrong."""
DOING = frozenset({"api_call", "data_access", "data_mutation", "transaction_initiated"})
"""Actions an agent takes of its own accord; the rest are outcomes that need no permission."""
