"""Reading an event's free-form details: whatever an agent sends becomes a few bounded facts.

Details are hostile: any JSON type anywhere, huge strings, deep nesting. Reading looks at the first keys of
the object and of a few well-known inner objects, cuts every text, and never raises.
"""

from functools import lru_cache
from itertools import islice
from math import isnan

import msgspec

MAX_KEYS = 128
MAX_KEY = 48
MAX_TEXT = 256
MAX_LIST = 8
MAX_AMOUNT = 1e15
FEW_KEYS, SHORT_KEYS = 24, 384
"""So many keys, of so many characters together, are remembered with what they tell."""

KEYS: dict[str, tuple[str, ...]] = {
    "tool": (
        "tool", "toolname", "function", "functionname", "requestedaction", "attemptedaction", "toolcall",
        "toolcalls",
    ),
    "verb": ("action", "actionname", "operation", "operationname"),
    "name": ("name",),
    "inner": (
        "args", "arguments", "params", "parameters", "input", "transaction", "trade", "order", "payment",
        "transfer", "request",
    ),
    "target": (
        "targets", "target", "destination", "destinations", "recipient", "recipients", "to", "beneficiary",
        "payee", "counterparty", "iban", "wallet", "address", "email", "toaccount", "url", "endpoint",
    ),
    "host": ("host", "hostname", "domain"),
    "resource": (
        "resource", "resourceid", "path", "file", "filename", "document", "table", "dataset", "collection",
        "database", "datasource", "bucket", "record", "recordid",
    ),
    "dollars": (
        "amountusd", "usdamount", "valueusd", "notionalusd", "totalusd", "tradeusd", "tradeamountusd",
        "amountindollars",
    ),
    "amount": (
        "amount", "notional", "tradeamount", "transactionamount", "orderamount", "ordervalue", "tradevalue",
        "tradesize",
    ),
    "total": ("total", "value"),
    "cents": ("amountcents",),
    "quantity": ("quantity",),
    "price": ("price",),
    "currency": ("currency",),
    "instrument": ("instruments", "instrument", "symbol", "ticker", "pair", "asset"),
    "venue": ("venues", "venue", "exchange"),
    "leverage": ("leverage", "leverageratio"),
    "status": ("status", "statuscode", "httpstatus", "outcome", "result"),
}  # fmt: skip
"""Names under which details state one kind of fact, the most telling first."""
KIND_OF = {key: kind for kind, keys in KEYS.items() for key in keys}
RANK = {key: rank for rank, key in enumerate(KIND_OF)}
NAME_KEYS = ("name", "tool", "function", "action")
MONEY = frozenset({"dollars", "amount", "total", "cents", "quantity"})
REFUSED = frozenset({"denied", "forbidden", "unauthorized", "refused", "401", "403"})
"""Statuses of somebody who was not let in; that something merely went wrong says nothing of the agent."""

DOLLARS_AT_LEAST: dict[str, float] = {
    "usd": 1.0, "$": 1.0, "us$": 1.0, "usdc": 1.0, "usdt": 1.0,
    "eur": 0.9, "gbp": 1.0, "chf": 0.9, "btc": 1_000.0, "eth": 100.0,
}  # fmt: skip
"""What one unit of a currency is worth at the very least, in dollars; no other can be held to a limit."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What the details say, case-folded and cut; an absent fact is None or empty.

    `tools` and `verbs` name the action (under tool-like and verb-like keys), and `tool` is the one name that
    stands for it in the agent's habits; `amount` is in dollars, at least 0, and None too where it is stated
    in something else; `leverage` is a ratio.
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


NOTHING = Facts()
QUOTES = "'\"<>[] "
Flat = dict[str, object]
Stated = dict[str, list[object]]
"""What was stated of each kind of fact, the most telling first."""


def read(details: object) -> Facts:
    """The facts of a details object; anything that isn't an object has none."""
    if not isinstance(details, dict):
        return NOTHING
    top = stated = _stated(details)
    if "inner" in top:
        stated = _by_kind(_with_inner(_flat(details), top["inner"]))
    tools = _names(top["tool"]) if "tool" in top else ()
    verbs = _names(top["verb"]) if "verb" in top else ()
    targets = tuple(map(_destination, _texts(stated["target"]))) if "target" in stated else ()
    # By position: so many keywords take 1 µs more
    return Facts(
        tools[0] if tools else verbs[0] if verbs else None,
        tools,
        verbs,
        targets,
        _hosts(stated.get("host"), targets),
        _first_text(stated["resource"]) if "resource" in stated else None,
        None if MONEY.isdisjoint(stated) else _amount(stated),
        _first_stated(stated["instrument"]) if "instrument" in stated else (),
        _first_stated(stated["venue"]) if "venue" in stated else (),
        _leverage(stated["leverage"]) if "leverage" in stated else None,
        "status" in top and not REFUSED.isdisjoint(_texts(top["status"])),
    )


@lru_cache(maxsize=4096)
def _key(key: str) -> str | None:
    """The key as `KEYS` spells it; None for one that tells nothing."""
    plain = key.replace("_", "").replace("-", "").lower()
    return plain if plain in KIND_OF else None


def _flat(details: dict[str, object]) -> Flat:
    """The telling ones of an object's first keys; of two spellings the first counts."""
    flat: Flat = {}
    items = details.items() if len(details) <= MAX_KEYS else islice(details.items(), MAX_KEYS)
    for key, value in items:
        if value is not None and len(key) <= MAX_KEY:
            plain = _key(key)
            if plain is not None and plain not in flat:
                flat[plain] = value
    return flat


def _stated(details: dict[str, object]) -> Stated:
    keys = tuple(details)
    told = _told(keys) if len(keys) <= FEW_KEYS and len("".join(keys)) <= SHORT_KEYS else None
    if told is None:
        return _by_kind(_flat(details))
    stated: Stated = {}
    for key, kind in told:
        value = details[key]
        if value is not None:
            if kind in stated:
                stated[kind].append(value)
            else:
                stated[kind] = [value]
    return stated


@lru_cache(maxsize=2048)
def _told(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...] | None:
    """The telling ones of an object's keys, the most telling first, each with its kind.

    None where two spell the same: which of them counts depends on what they hold.
    """
    plain = {key: name for key in keys if len(key) <= MAX_KEY and (name := _key(key)) is not None}
    if len(set(plain.values())) < len(plain):
        return None
    return tuple((key, KIND_OF[plain[key]]) for key in sorted(plain, key=lambda key: RANK[plain[key]]))


def _by_kind(flat: Flat) -> Stated:
    stated: Stated = {}
    for key in sorted(flat, key=RANK.__getitem__):
        stated.setdefault(KIND_OF[key], []).append(flat[key])
    return stated


def _with_inner(top: Flat, inner: list[object]) -> Flat:
    """The top level and, beneath it, what the well-known inner objects add."""
    merged = dict(top)
    for value in inner:
        if isinstance(value, dict):
            merged = _flat(value) | merged
    return merged


def _text(value: object) -> str | None:
    """A scalar as a cut, case-folded text; None when there is nothing to compare."""
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            return value.strip().casefold() or None
        return value[:MAX_TEXT].strip().casefold() + f"#{len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 63 else "a huge number"
    return repr(value) if isinstance(value, float) else None


def _texts(values: list[object]) -> list[str]:
    """Every text among the values and in their lists; what a long list hides past its start counts as one."""
    if len(values) == 1 and not isinstance(values[0], list):
        text = _text(values[0])
        return [] if text is None else [text]
    texts = []
    for value in values:
        for item in value[:MAX_LIST] if isinstance(value, list) else (value,):
            text = _text(item)
            if text is not None:
                texts.append(text)
        if isinstance(value, list) and len(value) > MAX_LIST:
            texts.append(f"{len(value) - MAX_LIST} more")
    return texts


def _first_text(values: list[object]) -> str | None:
    texts = _texts(values)
    return texts[0] if texts else None


def _first_stated(values: list[object]) -> tuple[str, ...]:
    """The texts of the first value that has any; the others restate it in other words."""
    for value in values:
        found = _texts([value])
        if found:
            return tuple(found)
    return ()


def _names(values: list[object]) -> tuple[str, ...]:
    """Action names: a text, an object with a name, or a list of either."""
    if len(values) == 1 and isinstance(values[0], str):
        text = _text(values[0])
        return () if text is None else (text,)
    names = []
    for value in values:
        for item in value[:MAX_LIST] if isinstance(value, list) else (value,):
            name = _inner_name(item) if isinstance(item, dict) else _text(item)
            if name is not None:
                names.append(name)
    return tuple(names)


def _inner_name(item: dict[str, object]) -> str | None:
    flat = _flat(item)
    for key in NAME_KEYS:
        value = flat.get(key)
        if isinstance(value, dict):
            value = _flat(value).get("name")
        if value is not None and (name := _text(value)):
            return name
    return None


def _destination(text: str) -> str:
    """Where something goes: of a URL the host, else the text itself without quotes or brackets about it."""
    return _bare_host(text.partition("://")[2]) if "://" in text else text.strip(QUOTES) or text


def _bare_host(text: str) -> str:
    host = text.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0]
    return host.rpartition("@")[2].partition(":")[0].rstrip(".") or text[:MAX_TEXT]


def _hosts(stated: list[object] | None, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that are named and those of the targets that have one; each once, in order."""
    hosts = [host for target in targets if (host := _host_of(target)) is not None]
    if stated is not None:
        hosts += [_bare_host(text.partition("://")[2] or text).strip(QUOTES) for text in _texts(stated)]
    return tuple(dict.fromkeys(hosts) if len(hosts) > 1 else hosts)


def _host_of(target: str) -> str | None:
    if "@" in target:
        return target.rpartition("@")[2].strip(QUOTES) or None
    if "." in target and " " not in target and not target.replace(".", "").isdigit():
        return target
    return None


def number(value: object) -> float | None:
    """A number, or a text that states one (`$5,000.00`), as its size; None for anything else."""
    if isinstance(value, str):
        if len(value) > 40:
            return None
        value = (
            value.strip()
            .replace(",", "")
            .replace("_", "")
            .lstrip("$ ")
            .removesuffix("usd")
            .removesuffix("USD")
            .strip()
        )
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


def _amount(stated: Stated) -> float | None:
    """The amount in dollars. Stated dollars win over what must be converted, plain amounts over totals."""
    if "dollars" in stated:
        dollars = [size for value in stated["dollars"] if (size := number(value)) is not None]
        if dollars:
            return max(dollars)
    currency = _currency(stated)
    for kind in ("amount", "total"):
        sizes = [
            pair for value in stated.get(kind, ()) if (pair := _size_and_rate(value, currency)) is not None
        ]
        if sizes:
            return max((size * rate for size, rate in sizes if rate is not None), default=None)
    return _other_amount(stated, currency)


def _currency(stated: Stated) -> str | None:
    return _text(stated["currency"][0]) if "currency" in stated else None


def _other_amount(stated: Stated, currency: str | None) -> float | None:
    """What cents, or a quantity at a price, come to."""
    rate = _rate(currency)
    cents, quantity, price = (
        number(stated[kind][0]) if kind in stated else None for kind in ("cents", "quantity", "price")
    )
    if rate is None:
        return None
    if cents is not None:
        return cents / 100 * rate
    return min(quantity * price * rate, MAX_AMOUNT) if quantity is not None and price is not None else None


def _size_and_rate(value: object, currency: str | None) -> tuple[float, float | None] | None:
    """A stated amount and the dollars that a unit is worth at least; None where nothing is stated."""
    if isinstance(value, dict):
        flat = _flat(value)
        value, currency = flat.get("value", flat.get("amount")), _text(flat.get("currency")) or currency
    size = number(value)
    return None if size is None else (size, _rate(currency))


def _rate(currency: str | None) -> float | None:
    return DOLLARS_AT_LEAST.get(currency) if currency else 1.0


def _leverage(values: list[object]) -> float | None:
    """The stated ratio; a bare `true` counts as one that no ratio covers."""
    for value in values:
        if value is True:
            return MAX_AMOUNT
        plain = value.strip().lower().removesuffix("x").partition(":")[0] if isinstance(value, str) else value
        ratio = number(plain)
        if ratio is not None:
            return ratio
    return None
