"""Read an event's free-form details into a few bounded facts.

Details are hostile: any JSON type anywhere, huge strings, deep nesting. Reading looks at the first keys of
the object and of objects within it, three levels deep, cuts every text, and never raises. What the keys
of an object state is planned once for each set of keys.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice
from math import isnan
from typing import Any

import msgspec

from events.risk.scoring.keys import ARGUMENTS, MAX_KEYS, MAX_TEXT, MONEY, key_of, text_of
from events.risk.scoring.names import act_of, habit_name, is_reading, normal_name
from events.risk.scoring.places import (
    MAX_LIST,
    by_shape,
    containers_of,
    hosts_of,
    hosts_stated,
    resources_of,
    targets_of,
    texts,
    url_resources,
    url_targets,
    within_owner,
)

MAX_AMOUNT = 1e15
MAX_PRICE = 40  # longest text that is read as a number
# The least value of a currency's unit in dollars; amounts in other currencies have no limit
DOLLARS_AT_LEAST: dict[str, float] = {
    "usd": 1.0, "$": 1.0, "us$": 1.0, "usdc": 1.0, "usdt": 1.0,
    "eur": 0.9, "gbp": 1.0, "chf": 0.9, "btc": 1_000.0, "eth": 100.0,
}  # fmt: skip
SIGNS = {"€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "₿": "btc"}
_PRICED = re.compile(r"\s*(?:[+-]\s*)?([^\d\s+.,_-]{0,4})\s*([+-]?\d[\d,._]*)\s*([^\d\s+.,_-]{0,4})\s*")

Stated = dict[str, list[object]]  # the values stated of each kind of money, the most telling first


def number(value: object) -> float | None:
    """Return the size of a number or of a text with one (`$5,000.00`); None for anything else."""
    if isinstance(value, float) and -MAX_AMOUNT <= value <= MAX_AMOUNT:
        return abs(value)
    if isinstance(value, str):
        if len(value) > MAX_PRICE:
            return None
        value = value.strip().replace(",", "").replace("_", "").lstrip("$ ")
        value = value.removesuffix("usd").removesuffix("USD").strip()
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        size = abs(float(value))
    except OverflowError:
        return MAX_AMOUNT
    except ValueError:
        return None
    if size <= MAX_AMOUNT:
        return size
    return None if isnan(size) else MAX_AMOUNT


def amount_of(stated: Stated, is_trade: bool) -> float | None:
    """Return the amount in dollars: stated dollars before converted ones, plain amounts before totals.

    A price alone is what something costs, unless it is that of an instrument (`is_trade`).
    """
    if dollars := [size for value in stated.get("dollars", ()) if (size := number(value)) is not None]:
        return max(dollars)
    currency = text_of(stated["currency"][0]) if "currency" in stated else None
    for kind in ("amount", "total"):
        if sizes := [pair for value in stated.get(kind, ()) if (pair := _size_and_rate(value, currency))]:
            return max((size * rate for size, rate in sizes if rate is not None), default=None)
    return _other_amount(stated, currency, is_trade)


def _other_amount(stated: Stated, currency: str | None, is_trade: bool) -> float | None:
    if "cents" in stated:
        cents, rate = number(stated["cents"][0]), _rate(currency)
        return None if cents is None or rate is None else cents / 100 * rate
    if "price" not in stated or ("quantity" not in stated and is_trade):
        return None
    price = _size_and_rate(stated["price"][0], currency)
    quantity = number(stated["quantity"][0]) if "quantity" in stated else 1.0
    if price is None or price[1] is None or quantity is None:
        return None
    return min(quantity * price[0] * price[1], MAX_AMOUNT)


def _size_and_rate(value: object, currency: str | None) -> tuple[float, float | None] | None:
    """Return a size and the value of its unit in dollars, None for an unknown currency."""
    if isinstance(value, dict):
        within = {key_of(key).kind: inner for key, inner in islice(value.items(), MAX_KEYS)}
        value, currency = (
            within.get("total", within.get("amount")),
            text_of(within.get("currency")) or currency,
        )
    if isinstance(value, str) and (read := _with_currency(value)) is not None:
        value, currency = read[0], read[1] or currency
    size = number(value)
    return None if size is None else (size, _rate(currency))


def _with_currency(text: str) -> tuple[str, str] | None:
    """Return the number and the currency in a text such as `€1,200.50` or `1.200,50 EUR`."""
    found = _PRICED.fullmatch(text) if len(text) <= MAX_PRICE else None
    if found is None or (found[1] and found[3]):
        return None
    size = found[2]
    if "," in size and size.rfind(",") > size.rfind(".") >= 0:  # 1.200,50
        size = size.replace(".", "").replace(",", ".")
    return size, SIGNS.get(unit := (found[1] or found[3]).strip().casefold(), unit)


def _rate(currency: str | None) -> float | None:
    return DOLLARS_AT_LEAST.get(currency) if currency else 1.0


FEW_KEYS, SHORT_KEYS = 24, 384  # most keys, and most characters in all of them, of a kept plan
MOST_PLANS = 2_048
MAX_DEPTH, MAX_IN_ALL = 3, 512  # levels within the details; objects and keys in all, where reading ends
MAX_JSON = 8_192  # longest text that is read as the JSON of a call's arguments

NAME_KEYS = ("name", "tool", "toolname", "function", "functionname", "action")
OUTERMOST = frozenset({"tool", "verb", "method", "status"})  # kinds that count in the details themselves only
FIRST = frozenset({"instrument", "venue", "leverage"})  # kinds of which the most telling value counts
HOLDING = frozenset({"tool", "other", "free", "resource", "container"})  # kinds whose objects are read
REFUSED = frozenset({"denied", "forbidden", "unauthorized", "refused", "401", "403"})
"""Statuses of a refused request; other failures say nothing of the agent."""
REFUSALS = frozenset({401, 403})


class ActionFacts(msgspec.Struct, frozen=True, gc=False):
    """What the details say, case-folded and cut; an absent fact is None or empty.

    `tools` and `verbs` name the action as `names.normal_name()` spells it; `tool` counts in habits.
    `targets`: every destination, hosts of URLs included; a stated host counts where there is no other.
    `hosts`: those of the targets, and stated ones. `resources`: what the event acts on, `resource` the first;
    `containers`: the folder, owner, bucket or host that holds each. `amount`: in dollars, at least 0; None
    for an unknown currency. `leverage`: a ratio. `refused`: by its status. `brings_text`: by its name the
    action reads, so outside text comes in (a `data_access` does so whatever its name). `act`: see
    `acts.act_of()`.
    """

    tool: str | None = None
    tools: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    resource: str | None = None
    amount: float | None = None
    instruments: tuple[str, ...] = ()
    venues: tuple[str, ...] = ()
    leverage: float | None = None
    refused: bool = False
    resources: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    brings_text: bool = False
    act: str | None = None


NOTHING = ActionFacts()
Values = tuple[Any, ...]
Reader = Callable[[Any], Values]
Plan = tuple[tuple[str, str, Reader | None], ...]
"""The keys of an object, the most telling first, each with its kind and reader."""
_plans: dict[tuple[str, ...], Plan] = {}


class Reading:
    """What was read so far: `said`, facts by kind; `money`, values by kind; `size`, of objects and keys."""

    said: dict[str, Values]
    money: dict[str, list[object]]
    size: int

    def __init__(self) -> None:
        self.said = {}
        self.money = {}
        self.size = 0


def read(details: object) -> ActionFacts:
    """Return the facts of a details object; anything else has none."""
    if not isinstance(details, dict):
        return NOTHING
    found = Reading()
    _take(found, details, 0)
    return _facts(found)


def _take(found: Reading, details: dict[str, object], depth: int) -> None:
    """Read an object, then those within it, so that what stands further out comes first."""
    found.size += 1 + len(details)
    said, inner = found.said, []
    for key, kind, reader in _plan_of(details):
        value = details[key]
        if value is None:
            continue
        if kind in MONEY:
            found.money.setdefault(kind, []).append(value)
            continue
        if isinstance(value, str):
            may_hold = kind == "other" and len(value) <= MAX_JSON and value.lstrip().startswith("{")
        else:
            may_hold = kind in HOLDING and isinstance(value, (dict, list))
        if may_hold:
            inner.append(value)
        if reader is None or (depth and kind in OUTERMOST) or (kind in said and kind in FIRST):
            continue
        values = reader(value)
        if values:
            said[kind] = said[kind] + values if kind in said else values
    for value in inner:
        _take_inner(found, value, depth + 1)


def _take_inner(found: Reading, value: object, depth: int) -> None:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return
    if depth <= MAX_DEPTH:
        for item in value[:MAX_LIST] if isinstance(value, list) else (value,):
            if isinstance(item, dict) and found.size < MAX_IN_ALL:
                _take(found, item, depth)


def _plan_of(details: dict[str, object]) -> Plan:
    keys = tuple(details)
    plan = _plans.get(keys)
    if plan is not None:
        return plan
    if len(keys) > FEW_KEYS or len("".join(keys)) > SHORT_KEYS:
        return _plan(keys[:MAX_KEYS])
    if len(_plans) >= MOST_PLANS:
        _plans.clear()
    return _plans.setdefault(keys, _plan(keys))


def _plan(keys: tuple[str, ...]) -> Plan:
    """Plan what to read of each key. A name beside arguments is that of a call."""
    known = sorted([(key_of(key), key) for key in keys], key=lambda known: known[0].rank)
    is_call = any(key.replace("_", "").lower() in ARGUMENTS for key in keys)
    plan: list[tuple[str, str, Reader | None]] = []
    for what, key in known:
        kind = "call" if what.kind == "name" and is_call else what.kind
        if kind not in ("closed", "name"):
            is_thing = kind in ("resource", "kept")
            reader = partial(resources_of, what.noun) if is_thing else READERS.get(kind)
            plan.append((key, kind, reader))
    return tuple(plan)


def _facts(found: Reading) -> ActionFacts:
    said, nothing = found.said, ()
    tools = said.get("tool") or said.get("call", nothing)
    verbs = said.get("verb", nothing)
    targets, hosts = _places(said)
    resources, containers = _resources(said)
    resource = resources[0] if resources else None
    names = tools + verbs + said["method"] if "method" in said else tools + verbs
    # By position, which is faster than by keyword
    return ActionFacts(
        habit_name(tools[0] if tools else verbs[0]) if tools or verbs else None,
        tools,
        verbs,
        targets,
        hosts,
        resource,
        amount_of(found.money, "instrument" in said) if found.money else None,
        said.get("instrument", nothing),
        said.get("venue", nothing),
        said["leverage"][0] if "leverage" in said else None,
        "status" in said,
        resources,
        containers,
        is_reading(names) if names else False,
        act_of(names, resource) if names else None,
    )


def _places(said: dict[str, Values]) -> tuple[Values, Values]:
    """Return every destination and every host."""
    targets, stated = said.get("target", ()), said.get("host", ())
    if "url" in said:
        targets += url_targets(said["url"])
    if "other" in said:
        targets += said["other"]
    targets = _bounded(targets or stated)
    if stated or len(targets) > 1:
        return targets, _bounded((*chain.from_iterable(map(hosts_of, targets)), *stated))
    return targets, hosts_of(targets[0]) if targets else ()


def _resources(said: dict[str, Values]) -> tuple[Values, Values]:
    """Return what the event acts on and what holds it; a holder alone is what it acts on."""
    resources, stated = said.get("resource", ()), said.get("container", ())
    if "url" in said:
        resources += url_resources(said["url"])
    resources = resources or said.get("kept", ())
    if not resources:
        return _bounded(stated), ()
    if stated:
        resources = within_owner(resources, stated[0])
    return _bounded(resources), _bounded(containers_of(resources) + stated)


def _bounded(values: Sequence[str]) -> Values:
    """Return the different ones; beyond `MAX_LIST` the rest counts as one."""
    if len(values) < 2:
        return tuple(values)
    found = tuple(dict.fromkeys(values))
    return found if len(found) <= MAX_LIST + 1 else (*found[:MAX_LIST], f"{len(found) - MAX_LIST} more")


def _names(value: object) -> tuple[str, ...]:
    """Return action names in their normal spelling: a text, an object with a name, or a list of either."""
    if isinstance(value, str):
        return _named(value)
    found: Values = ()
    for item in value[:MAX_LIST] if isinstance(value, list) else (value,):
        found += _inner_name(item) if isinstance(item, dict) else _named(item)
    # No scope permits what a long list hides
    return (
        (*found, f"{len(value) - MAX_LIST} more") if isinstance(value, list) and value[MAX_LIST:] else found
    )


def _named(value: object) -> tuple[str, ...]:
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        name = normal_name(value)
        return (name,) if name else ()
    text = text_of(value)
    return () if text is None else (text,)


def _inner_name(item: dict[str, object]) -> tuple[str, ...]:
    flat = {key.replace("_", "").lower(): value for key, value in islice(item.items(), MAX_KEYS)}
    for key in NAME_KEYS:
        value = flat.get(key)
        if isinstance(value, dict):
            value = value.get("name")
        if value is not None and (name := _named(value)):
            return name
    return ()


def _leverage(value: object) -> Values:
    """Return the stated ratio; a bare `true` counts as the greatest."""
    if isinstance(value, str):
        value = value.strip().lower().removesuffix("x").partition(":")[0]
    ratio = MAX_AMOUNT if value is True else number(value)
    return () if ratio is None else (ratio,)


def _refusals(value: object) -> Values:
    if type(value) is int:
        return (True,) if value in REFUSALS else ()
    return () if REFUSED.isdisjoint(texts(value)) else (True,)


READERS: dict[str, Reader] = {
    "tool": _names,
    "call": _names,
    "verb": _names,
    "method": texts,
    "target": targets_of,
    "url": texts,
    "host": hosts_stated,
    "container": texts,
    "instrument": texts,
    "venue": texts,
    "leverage": _leverage,
    "status": _refusals,
    "other": by_shape,
}
"""What reads the values of each kind of key; `_plan()` adds that of resources."""
