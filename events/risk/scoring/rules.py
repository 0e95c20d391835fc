"""Rules: what is forbidden outright. A broken rule makes an event high, whatever the agent's habits."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from math import log
from typing import Any

from events.risk.scoring.amounts import MAX_AMOUNT
from events.risk.scoring.contract import Context, Event, FinancialScope
from events.risk.scoring.details import QUOTES, ActionFacts, read
from events.risk.scoring.habits.comparison import Comparison
from events.risk.scoring.habits.state import DAY, AgentState
from events.risk.scoring.habits.tables import digest
from events.risk.scoring.reasons import Signal
from events.risk.scoring.weights import DOING, PRIOR_LOGITS, PRIORS, TRANSACTIONS

RULE_FLOOR = 0.90
MORE_RULES = 0.6  # each further broken rule leaves this share of the distance to 1
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
MOST_PLACES = 16  # most places that one event can mark
MORE_THAN_ONCE = 1.5  # faded sightings from which a place is known apart from the event, if that was learned


def broken_rules(seen: Comparison, context: Context) -> list[Signal]:
    """Return a signal for each rule that the event breaks, by what was declared or reported."""
    event, facts = seen.event, seen.facts
    found = _reported(event, seen.anomalies)
    place = marked_place(facts, context.marked) if context.marked else None
    if place is not None:
        found.append(("confirmed_destination", place, None))
    permitted = context.permitted_actions
    if permitted is not None and event.action_type not in permitted:
        name = undeclared_action(event.action_type, permitted, facts)
        if name is not None:
            found.append(("off_scope", name, len(permitted)))
    if context.financial_scope is not None and concerns_money(event, facts):
        found += _limits(seen, context.financial_scope)
    if not found:
        return []
    # At least 0.1, so that the reasons tell it
    weight = max(log(RULE_FLOOR / (1 - RULE_FLOOR)) - PRIOR_LOGITS[event.action_type], 0.1)
    return [(name, weight, observed, expected) for name, observed, expected in found]


def floor_of(broken: int) -> float:
    """Return the least score of an event that breaks so many rules: 0 for none, then 0.90, 0.94, 0.964, …"""
    return 1 - (1 - RULE_FLOOR) * MORE_RULES ** (broken - 1) if broken else 0.0


Broken = tuple[str, Any, Any]


def _reported(event: Event, anomalies: float) -> list[Broken]:
    if event.action_type == "unauthorized_access_attempt":
        return [("reported_unauthorized", None, None)]
    if event.action_type == "transaction_anomaly" and anomalies + 1 >= REPEATED_ANOMALIES:
        return [("repeated_anomaly", anomalies + 1, None)]
    return []


def undeclared_action(action_type: str, permitted: frozenset[str], facts: ActionFacts) -> str | None:
    """Return the action outside the scope that the event names, if any.

    A scope permits a tool or action by its own name or joined (`calendar.create_event`). A plain verb beside
    a permitted tool is how it was used, unless the scope has such verbs. A type counts in a scope of types.
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


def concerns_money(event: Event, facts: ActionFacts) -> bool:
    """Return whether financial limits apply: to transactions, and to calls and mutations that are trades."""
    is_trade = bool(facts.instruments or facts.venues or facts.leverage is not None)
    return event.action_type in TRANSACTIONS or (is_trade and event.action_type in MAY_BE_TRADES)


def _limits(seen: Comparison, scope: FinancialScope) -> Iterator[Broken]:
    facts, state = seen.facts, seen.state
    if facts.amount is not None:
        if facts.amount > scope.max_single_trade_usd:
            yield "over_single_trade_limit", facts.amount, scope.max_single_trade_usd
        day = (state.day_usd if state.day == int(seen.at // DAY) else 0.0) + facts.amount
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
    """Return the name by which `BTC/USD`, `btc-usd` and `BTCUSD` are one instrument."""
    plain = "".join(character for character in name.casefold() if character.isalnum())
    return plain or name.casefold()


def places_of(event: Event, state: AgentState, context: Context, *, was_learned: bool) -> tuple[str, ...]:
    """Return the places to mark when `event` is part of an attack; `was_learned`: it scored low.

    Those that the agent didn't know from other events; if it knew all, its accounts and addresses without
    hosts, which others share. Never the agent's own domain, hosts of mail addresses or paths.
    """
    facts = read(event.details)
    fading = state.fading(event.received_at)
    hosts = set(_own_hosts(facts))
    found = [name for name in dict.fromkeys((*facts.targets, *_own_hosts(facts))) if _is_place(name, context)]
    enough = MORE_THAN_ONCE if was_learned else 0.0

    def is_known(name: str) -> bool:
        tables = (state.destinations, state.hosts) if name in hosts else (state.destinations,)
        return any(table.get(digest(name)) * fading > enough for table in tables)

    new = [name for name in found if not is_known(name)]
    return tuple((new or [name for name in found if name not in hosts])[:MOST_PLACES])


def marked_place(facts: ActionFacts, marked: Collection[str]) -> str | None:
    """Return the first marked place that an event names: a target, a host, or a host in a marked domain."""
    for target in facts.targets:
        if target in marked:
            return target
    for host in facts.hosts:
        for domain in _upwards(host):
            if domain in marked:
                return host
    return None


def _upwards(host: str) -> Iterator[str]:
    while host:
        yield host
        host = host.partition(".")[2]


def _own_hosts(facts: ActionFacts) -> list[str]:
    mail = {target.rpartition("@")[2].strip(QUOTES) for target in facts.targets if "@" in target}
    return [host for host in facts.hosts if host not in mail]


def _is_place(name: str, context: Context) -> bool:
    home, host = context.home_domain, name.rpartition("@")[2]
    is_home = home is not None and (host == home or host.endswith("." + home))
    # "3 more" stands for the rest of a long list
    hides = name.endswith(" more") and name.partition(" ")[0].isdigit()
    return not (is_home or hides or name.startswith("/"))
