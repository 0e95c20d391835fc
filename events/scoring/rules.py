"""What is forbidden outright: each broken rule puts an event in the high band whatever the agent's habits."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from events.scoring.amounts import MAX_AMOUNT
from events.scoring.contract import Context, Event, FinancialScope
from events.scoring.details import Facts
from events.scoring.head import rule_weight
from events.scoring.places import marked_place
from events.scoring.priors import DOING, PRIOR_LOGITS, PRIORS, TRANSACTIONS
from events.scoring.reasons import Signal, signal
from events.scoring.state import DAY, AgentState

ACTION_TYPES = frozenset(PRIORS)
JOINTS = (".", ":", "/", "_")
MANNERS = frozenset({
    "get", "post", "put", "patch", "delete", "head", "options", "create", "read", "update", "insert",
    "select", "upsert", "query", "list", "search", "write", "send", "fetch", "call", "execute", "run",
    "invoke", "buy", "sell", "hold",
})  # fmt: skip
"""Verbs that say how a named tool was used rather than naming an action of their own."""
MAY_BE_TRADES = frozenset({"api_call", "data_mutation"})
REPEATED_ANOMALIES = 2.5


def broken_rules(
    state: AgentState, event: Event, context: Context, facts: Facts, anomalies: float
) -> list[Signal]:
    """The rules that the event breaks; never an estimate, always something declared or reported.

    `anomalies` is the faded count of the agent's transaction anomalies of the last minutes before this one.
    """
    found = _reported(event, anomalies)
    place = marked_place(facts, context.marked) if context.marked else None
    if place is not None:
        found.append(("confirmed_destination", place, None))
    permitted = context.permitted_actions
    if permitted is not None and event.action_type not in permitted:
        name = undeclared_action(event.action_type, permitted, facts)
        if name is not None:
            found.append(("off_scope", name, len(permitted)))
    if context.financial_scope is not None and concerns_money(event, facts):
        found += _limits(state, event, context.financial_scope, facts)
    if not found:
        return []
    weight = rule_weight(PRIOR_LOGITS[event.action_type])
    return [signal(name, weight, observed, expected) for name, observed, expected in found]


Broken = tuple[str, Any, Any]


def _reported(event: Event, anomalies: float) -> list[Broken]:
    """What the event itself reports as a breach."""
    if event.action_type == "unauthorized_access_attempt":
        return [("reported_unauthorized", None, None)]
    if event.action_type == "transaction_anomaly" and anomalies + 1 >= REPEATED_ANOMALIES:
        return [("repeated_anomaly", anomalies + 1, None)]
    return []


def undeclared_action(action_type: str, permitted: frozenset[str], facts: Facts) -> str | None:
    """The action outside the scope that the event names, or None.

    A tool or action may be permitted by its own name or joined (`calendar.create_event`). A plain verb
    beside a permitted tool says how the tool was used, unless the scope itself speaks in such verbs. An
    event that names nothing is judged by its type only where the scope is made of types.
    """
    verbs = [verb for verb in facts.verbs if verb != action_type] if facts.verbs else []
    for verb in verbs[:2]:
        if not permitted.isdisjoint([f"{tool}{joint}{verb}" for tool in facts.tools[:2] for joint in JOINTS]):
            return None
    for tool in facts.tools:
        if tool not in permitted and tool != action_type:
            return tool
    manners_allowed = bool(verbs and facts.tools) and permitted.isdisjoint(MANNERS)
    for verb in verbs:
        if verb not in permitted and not (manners_allowed and verb in MANNERS):
            return verb
    if permitted and permitted <= ACTION_TYPES and action_type in DOING:
        return action_type
    return None


def concerns_money(event: Event, facts: Facts) -> bool:
    """Whether financial limits apply: a transaction, or a call or mutation that is a trade by its details."""
    if event.action_type in TRANSACTIONS:
        return True
    return event.action_type in MAY_BE_TRADES and bool(
        facts.instruments or facts.venues or facts.leverage is not None
    )


def spent_today(state: AgentState, received_at: float) -> float:
    """Dollars of the agent's transactions so far on the UTC day of `received_at`."""
    return state.day_usd if state.day == int(received_at // DAY) else 0.0


def _limits(state: AgentState, event: Event, scope: FinancialScope, facts: Facts) -> Iterator[Broken]:
    if facts.amount is not None:
        if facts.amount > scope.max_single_trade_usd:
            yield "over_single_trade_limit", facts.amount, scope.max_single_trade_usd
        day = spent_today(state, event.received_at) + facts.amount
        if facts.amount > 0 and day > scope.daily_limit_usd:
            yield "over_daily_limit", day, scope.daily_limit_usd
    yield from _outside("instrument", facts.instruments, scope.permitted_instruments)
    yield from _outside("venue", facts.venues, scope.permitted_venues)
    if facts.leverage is not None and facts.leverage > 1:
        yield from _leverage(facts.leverage, scope)


def _leverage(ratio: float, scope: FinancialScope) -> Iterator[Broken]:
    if not scope.leverage_permitted:
        yield "leverage_not_permitted", ratio, None
    elif scope.max_leverage_ratio is not None and scope.max_leverage_ratio < ratio < MAX_AMOUNT:
        yield "over_leverage_limit", ratio, scope.max_leverage_ratio


def _outside(kind: str, stated: tuple[str, ...], permitted: tuple[str, ...]) -> Iterator[Broken]:
    allowed = _symbols(permitted)
    for name in stated:
        if _symbol(name) not in allowed:
            yield f"{kind}_not_permitted", name, len(permitted)
            return


@lru_cache(maxsize=1024)
def _symbols(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_symbol(name) for name in names)


def _symbol(name: str) -> str:
    """`BTC/USD`, `btc-usd` and `BTCUSD` are one instrument."""
    plain = "".join(character for character in name.casefold() if character.isalnum())
    return plain or name.casefold()
