"""What goes into an assessment and what comes out."""

from collections.abc import Iterable

import msgspec

from events.scoring.reasons import Reason
from events.scoring.state import AgentState


class FinancialScope(msgspec.Struct, frozen=True):
    """The limits an agent was registered with; amounts in US dollars."""

    max_single_trade_usd: float
    daily_limit_usd: float
    permitted_instruments: tuple[str, ...]
    permitted_venues: tuple[str, ...]
    leverage_permitted: bool
    max_leverage_ratio: float | None = None


class Context(msgspec.Struct, frozen=True):
    """What the service knows of the agent apart from its events.

    `permitted_actions` as `normal_actions()` makes it; None means that the agent declared none, so no
    scope rule applies, and an empty set that it may do nothing that has a name. `home_domain` is the
    domain of the agent's own mail or network, if known. `marked` are the places, as `places_of()` names
    them, where attacks on the tenant went that an officer confirmed.
    """

    permitted_actions: frozenset[str] | None = None
    financial_scope: FinancialScope | None = None
    home_domain: str | None = None
    marked: frozenset[str] = frozenset()


class Event(msgspec.Struct, frozen=True, gc=False):
    """One reported action.

    `received_at` is the service's own clock in seconds since the epoch (UTC); what the agent says of the
    time plays no part. `details` is the agent's free-form JSON object: any shape, never trusted.
    """

    action_type: str
    received_at: float
    details: object = None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What is thought of one event.

    `score` is 0 to 1 with four decimals, `band` low, medium or high, `reasons` the strongest
    contributions first (at most three).
    """

    score: float
    band: str
    reasons: tuple[Reason, ...]
    model_version: str


class Assessment(Verdict, frozen=True, gc=False):
    """A verdict, and `state`, the agent's state after the event."""

    state: AgentState


def normal_actions(actions: Iterable[object]) -> frozenset[str]:
    """Declared action names in the form the scope rule compares: case and outer blanks don't count."""
    return frozenset(action.strip().casefold() for action in actions if isinstance(action, str))
