"""Rules: what is forbidden outright. A broken rule makes an event high, whatever the agent's habits."""

from collections.abc import Iterator
from functools import lru_cache
from math import exp, log
from typing import Any

from events.risk.scoring.comparison import Comparison
from events.risk.scoring.contract import (
    DOING,
    PRIOR_LOGITS,
    PRIORS,
    TRANSACTIONS,
    Context,
    FinancialScope,
)
from events.risk.scoring.details import MAX_AMOUNT, ActionFacts
from events.risk.scoring.names import habit_name, scope_of
from events.risk.scoring.packed import NAME
from events.risk.scoring.reasons import Signal, Worded, at_most_usd, declare, itself, leverage, usd
from events.risk.scoring.state import EVENT
from events.risk.scoring.tables import digest

RULE_FLOOR = 0.90
MORE_RULES = 0.6  # each further broken rule leaves this share of the distance to 1
MISMATCH_LOGIT = log(0.4 / 0.6)  # to which a name that may be spelled otherwise lifts the prior
FIRST_EVENTS = 50  # an agent's first events, in which names outside its scope may be spellings
ACTION_TYPES = frozenset(PRIORS)
KEPT_NAMES = 4_096  # size of a cache
MANNERS = frozenset({
    "get", "post", "put", "patch", "delete", "head", "options", "create", "read", "update", "insert",
    "select", "upsert", "query", "list", "search", "write", "send", "fetch", "call", "execute", "run",
    "invoke", "buy", "sell", "hold",
})  # fmt: skip
"""Verbs that say how a named tool was used rather than naming an action of their own."""
MAY_BE_TRADES = frozenset({"api_call", "data_mutation"})
"""Actions to which financial limits apply if they name an instrument, a venue or a leverage."""
REPEATED_ANOMALIES = 2.5  # anomalies (faded), this one included, from which they are no accident: the third


Broken = tuple[str, Any, Any]
"""A broken rule: its name, observed and expected value."""
RULES: dict[str, tuple[str, str | Worded, str | Worded]] = {
    "reported_unauthorized": (
        "The agent itself reports an attempt outside its scope",
        "the agent tried an action outside its scope",
        "actions inside the scope",
    ),
    "repeated_anomaly": (
        "One anomaly too many within minutes", "{:.0f} anomalies within minutes".format, "at most 2"
    ),
    "off_scope": ("Outside the agent's permitted actions", itself, itself),
    "over_single_trade_limit": ("Over the limit of a single trade", usd, at_most_usd),
    "over_daily_limit": ("Over the limit of a day", lambda spent: f"{usd(spent)} today", at_most_usd),
    "instrument_not_permitted": (
        "An instrument that the agent may not trade", itself, "one of {} permitted instruments".format
    ),
    "venue_not_permitted": (
        "A venue where the agent may not trade", itself, "one of {} permitted venues".format
    ),
    "leverage_not_permitted": ("With leverage, which the agent may not use", leverage, "none"),
    "over_leverage_limit": ("With more leverage than permitted", leverage, "at most {:g}x".format),
}  # fmt: skip
"""The reasons of broken rules, in words as `declare()` takes them."""
for _name, _words in RULES.items():
    declare(_name, *_words)
declare(
    "scope_mismatch", "Not a name in the agent's scope, of which no name was reported yet", itself, itself
)


def broken_rules(seen: Comparison, context: Context, outside: str | None) -> list[Signal]:
    """Return a signal for each rule that the event breaks, by what was declared or reported.

    `outside`: its action outside the scope, as `outside_scope()` returns it.
    """
    found: list[Broken] = []
    if seen.action_type == "unauthorized_access_attempt":
        found.append(("reported_unauthorized", None, None))
    if seen.action_type == "transaction_anomaly" and seen.anomalies + 1 >= REPEATED_ANOMALIES:
        found.append(("repeated_anomaly", seen.anomalies + 1, None))
    permitted = context.permitted_actions
    if outside is not None and permitted is not None and not _may_be_misnamed(seen, permitted):
        found.append(("off_scope", outside, scope_of(permitted).told(outside)))
    if context.financial_scope is not None and concerns_money(seen.action_type, seen.facts):
        found += _limits(seen, context.financial_scope)
    if not found:
        return []
    # At least 0.1, so that the reasons tell it
    weight = max(log(RULE_FLOOR / (1 - RULE_FLOOR)) - PRIOR_LOGITS[seen.action_type], 0.1)
    return [(name, weight, observed, expected) for name, observed, expected in found]


def scope_mismatch(seen: Comparison, context: Context, outside: str | None) -> list[Signal]:
    """Return the signal that scope and reports may not speak of actions by the same names.

    So it is while a new agent's reports have not had one permitted name: then a name outside the scope is
    worth a look, and doesn't count towards stopping the agent. `outside`: as for `broken_rules()`.
    """
    permitted = context.permitted_actions
    if outside is None or permitted is None or not _may_be_misnamed(seen, permitted):
        return []
    weight = max(MISMATCH_LOGIT - PRIOR_LOGITS[seen.action_type], 0.1)
    return [("scope_mismatch", weight, outside, scope_of(permitted).told(outside))]


def outside_scope(seen: Comparison, context: Context) -> str | None:
    """Return the action outside the agent's scope that the event names, if any."""
    permitted = context.permitted_actions
    if permitted is None or seen.action_type in permitted:
        return None
    return undeclared_action(seen.action_type, permitted, seen.facts.tools, seen.facts.verbs)


def _may_be_misnamed(seen: Comparison, permitted: frozenset[str]) -> bool:
    """Return whether neither this event nor a learned one has a permitted name, early in an agent's life.

    A scope of the service's own action types, or of nothing, can't be misnamed.
    """
    if permitted <= ACTION_TYPES or seen.state.trials_of(EVENT) >= FIRST_EVENTS:
        return False
    scope = scope_of(permitted)
    if any(map(scope.permits, seen.facts.tools + seen.facts.verbs)):
        return False
    used, known = seen.state.tools.names, _habits_within(permitted)
    return not any(used[at : at + NAME] in known for at in range(0, len(used), NAME))


@lru_cache(maxsize=1024)
def _habits_within(permitted: frozenset[str]) -> frozenset[bytes]:
    """Return the names under which habits may count what a scope permits, with or without a namespace."""
    names = {part for name in permitted for part in (habit_name(name), *name.rsplit(".", 1))}
    return frozenset(digest(one) for name in names for one in (name, name.replace("_", "")))


def floor_of(broken: int) -> float:
    """Return the least score of an event that breaks so many rules: 0.90, 0.94, 0.964, …"""
    return 1 - (1 - RULE_FLOOR) * MORE_RULES ** (broken - 1)


@lru_cache(maxsize=KEPT_NAMES)
def undeclared_action(
    action_type: str, permitted: frozenset[str], tools: tuple[str, ...], verbs: tuple[str, ...]
) -> str | None:
    """Return the action outside the scope that the event names, if any.

    A scope permits a tool or action by its own name or joined (`calendar.create_event`), which permits no
    other name beside the two. A plain verb beside a permitted tool is how it was used, unless the scope has
    such verbs. A type counts in a scope of types.
    """
    scope = scope_of(permitted)
    verbs = tuple([verb for verb in verbs if verb != action_type])
    pairs = [(tool, verb) for verb in verbs[:2] for tool in tools[:2] if scope.states(f"{tool}.{verb}")]
    joined = {name for pair in pairs for name in pair}
    for tool in tools:
        if tool != action_type and tool not in joined and not scope.permits(tool):
            return tool
    manners_allowed = bool(verbs and tools) and permitted.isdisjoint(MANNERS)
    for verb in verbs:
        if verb not in joined and not (manners_allowed and verb in MANNERS) and not scope.permits(verb):
            return verb
    if permitted and permitted <= ACTION_TYPES and action_type in DOING:
        return action_type
    return None


def concerns_money(action_type: str, facts: ActionFacts) -> bool:
    """Return whether financial limits apply: to transactions, and to calls and mutations that are trades."""
    is_trade = bool(facts.instruments or facts.venues or facts.leverage is not None)
    return action_type in TRANSACTIONS or (is_trade and action_type in MAY_BE_TRADES)


def _limits(seen: Comparison, scope: FinancialScope) -> Iterator[Broken]:
    facts, state = seen.facts, seen.state
    if facts.amount is not None:
        if facts.amount > scope.max_single_trade_usd:
            yield "over_single_trade_limit", facts.amount, scope.max_single_trade_usd
        day = (state.day_usd if state.day == seen.day else 0.0) + facts.amount
        if facts.amount > 0 and day > scope.daily_limit_usd:
            yield "over_daily_limit", day, scope.daily_limit_usd
    yield from _outside("instrument", facts.instruments, scope.permitted_instruments)
    yield from _outside("venue", facts.venues, scope.permitted_venues)
    ratio, limit = facts.leverage or 1.0, scope.max_leverage_ratio
    if ratio > 1 and not scope.leverage_permitted:
        yield "leverage_not_permitted", ratio, None
    elif limit is not None and max(limit, 1.0) < ratio < MAX_AMOUNT:
        yield "over_leverage_limit", ratio, limit


def _outside(kind: str, stated: tuple[str, ...], permitted: tuple[str, ...]) -> Iterator[Broken]:
    outside = [name for name in stated if _symbol(name) not in map(_symbol, permitted)]
    if outside:
        yield f"{kind}_not_permitted", outside[0], len(permitted)


@lru_cache(maxsize=KEPT_NAMES)
def _symbol(name: str) -> str:
    """Return the name by which `BTC/USD`, `btc-usd` and `BTCUSD` are one instrument."""
    plain = "".join(character for character in name.casefold() if character.isalnum())
    return plain or name.casefold()


def worth(name: object, weight: Any) -> str:
    """Return what a reason does to a score: `rule: at least 0.90`, or `weight 2.1`, in log-odds."""
    if name == "action_type":
        return "-"  # `expected` says what it scores
    if name in RULES:
        return f"rule: at least {RULE_FLOOR:.2f}"
    if name == "scope_mismatch":
        # Its weight depends on the action's prior, and is next to nothing where that is as high already
        return f"alone at least {1 / (1 + exp(-MISMATCH_LOGIT)):.2f}"
    is_weight = isinstance(weight, int | float) and not isinstance(weight, bool)
    return f"weight {weight:.1f}" if is_weight else "-"
