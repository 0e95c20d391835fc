"""Reading an event's free-form details: whatever an agent sends becomes a few bounded facts.

Details are hostile: any JSON type anywhere, huge strings, deep nesting. Reading looks at the first keys of
the object and of a few well-known inner objects, cuts every text, and never raises.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from math import isfinite, isnan

import msgspec

MAX_KEYS = 128
MAX_KEY = 48
MAX_TEXT = 256
MAX_LIST = 8
MAX_AMOUNT = 1e15


class Keys(msgspec.Struct, frozen=True):
    """Names under which details state one kind of fact, the most telling first."""

    order: tuple[str, ...]
    all: frozenset[str]


def _keys(*names: str) -> Keys:
    return Keys(names, frozenset(names))


TOOL_KEYS = _keys(
    "tool",
    "toolname",
    "function",
    "functionname",
    "requestedaction",
    "attemptedaction",
    "toolcall",
    "toolcalls",
)
VERB_KEYS = _keys("action", "actionname", "operation", "operationname")
NAME_KEYS = ("name", "tool", "function", "action")
CONTAINERS = _keys(
    "args",
    "arguments",
    "params",
    "parameters",
    "input",
    "transaction",
    "trade",
    "order",
    "payment",
    "transfer",
    "request",
)
TARGET_KEYS = _keys(
    "targets", "target", "destination", "destinations", "recipient", "recipients", "to", "beneficiary",
    "payee", "counterparty", "iban", "wallet", "address", "email", "toaccount", "url", "endpoint",
)  # fmt: skip
HOST_KEYS = _keys("host", "hostname", "domain")
RESOURCE_KEYS = _keys(
    "resource", "resourceid", "path", "file", "filename", "document", "table", "dataset", "collection",
    "database", "datasource", "bucket", "record", "recordid",
)  # fmt: skip
DOLLAR_KEYS = _keys(
    "amountusd",
    "usdamount",
    "valueusd",
    "notionalusd",
    "totalusd",
    "tradeusd",
    "tradeamountusd",
    "amountindollars",
)
AMOUNT_KEYS = _keys(
    "amount",
    "notional",
    "tradeamount",
    "transactionamount",
    "orderamount",
    "ordervalue",
    "tradevalue",
    "tradesize",
)
LAST_AMOUNT_KEYS = _keys("total", "value")
ANY_AMOUNT_KEYS = _keys(
    *DOLLAR_KEYS.order, *AMOUNT_KEYS.order, *LAST_AMOUNT_KEYS.order, "amountcents", "quantity"
)
INSTRUMENT_KEYS = _keys("instruments", "instrument", "symbol", "ticker", "pair", "asset")
VENUE_KEYS = _keys("venues", "venue", "exchange")
LEVERAGE_KEYS = _keys("leverage", "leverageratio")
STATUS_KEYS = _keys("status", "statuscode", "httpstatus", "outcome", "result")
FAILED = frozenset(
    {"error", "failed", "failure", "denied", "forbidden", "unauthorized", "rejected", "401", "403"}
)

DOLLARS_AT_LEAST: dict[str, float] = {
    "usd": 1.0, "$": 1.0, "us$": 1.0, "usdc": 1.0, "usdt": 1.0,
    "eur": 0.9, "gbp": 1.0, "chf": 0.9, "btc": 1_000.0, "eth": 100.0,
}  # fmt: skip
"""What one unit of a currency is worth at the very least, in dollars; no other can be held to a limit."""


class Facts(msgspec.Struct, frozen=True):
    """What the details say, case-folded and cut; an absent fact is None or empty.

    `tools` and `verbs` name the action (under tool-like and verb-like keys), `amount` is in dollars, at least
    0, and None too where it is stated in something else; `leverage` is a ratio.
    """

    tools: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    host: str | None = None
    resource: str | None = None
    amount: float | None = None
    instruments: tuple[str, ...] = ()
    venues: tuple[str, ...] = ()
    leverage: float | None = None
    failed: bool = False

    @property
    def tool(self) -> str | None:
        """The one name that stands for the action in the agent's habits."""
        return (self.tools or self.verbs or (None,))[0]


NOTHING = Facts()


def read(details: object) -> Facts:
    """The facts of a details object; anything that isn't an object has none."""
    if not isinstance(details, Mapping) or not details:
        return NOTHING
    top = _flat(details)
    everything = _with_inner(top)
    targets = tuple(_destination(text) for text in _texts(everything, TARGET_KEYS))
    return Facts(
        tools=tuple(_names(top, TOOL_KEYS)),
        verbs=tuple(_names(top, VERB_KEYS)),
        targets=targets,
        host=_host(everything, targets),
        resource=next(_texts(everything, RESOURCE_KEYS), None),
        amount=_amount(everything),
        instruments=_first_stated(everything, INSTRUMENT_KEYS),
        venues=_first_stated(everything, VENUE_KEYS),
        leverage=_leverage(everything),
        failed=any(text in FAILED for text in _texts(top, STATUS_KEYS)),
    )


@lru_cache(maxsize=4096)
def _key(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _flat(details: Mapping[object, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in islice(details.items(), MAX_KEYS):
        if isinstance(key, str) and len(key) <= MAX_KEY and value is not None:
            flat.setdefault(_key(key), value)
    return flat


def _with_inner(top: dict[str, object]) -> dict[str, object]:
    """The top level and, beneath it, what the well-known inner objects add."""
    inner = [_flat(value) for key in _present(top, CONTAINERS) if isinstance(value := top[key], Mapping)]
    if not inner:
        return top
    merged = dict(top)
    for found in inner:
        for key, value in found.items():
            merged.setdefault(key, value)
    return merged


def _text(value: object) -> str | None:
    """A scalar as a cut, case-folded text; None when there is nothing to compare."""
    if isinstance(value, str):
        cut = value[:MAX_TEXT].strip().casefold()
        if len(value) > MAX_TEXT:
            cut += f"#{len(value)}"
        return cut or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 63 else "a huge number"
    return repr(value) if isinstance(value, float) else None


def _present(flat: dict[str, object], keys: Keys) -> tuple[str, ...] | list[str]:
    """Those of the keys that the details have, in the keys' order; mostly none, and then found out fast."""
    if flat.keys().isdisjoint(keys.all):
        return ()
    return [key for key in keys.order if key in flat]


def _texts(flat: dict[str, object], keys: Keys) -> Iterator[str]:
    """Every text under the keys, in the keys' order; of a list its first few."""
    for key in _present(flat, keys):
        yield from _texts_of(flat[key])


def _texts_of(value: object) -> Iterator[str]:
    for item in value[:MAX_LIST] if isinstance(value, list | tuple) else (value,):
        text = _text(item)
        if text is not None:
            yield text


def _first_stated(flat: dict[str, object], keys: Keys) -> tuple[str, ...]:
    """The texts under the first key that has any; the others restate it in other words."""
    for key in _present(flat, keys):
        found = tuple(_texts_of(flat[key]))
        if found:
            return found
    return ()


def _names(flat: dict[str, object], keys: Keys) -> Iterator[str]:
    """Action names under the keys: a text, an object with a name, or a list of either."""
    for key in _present(flat, keys):
        value = flat[key]
        for item in value[:MAX_LIST] if isinstance(value, list | tuple) else (value,):
            name = _inner_name(item) if isinstance(item, Mapping) else _text(item)
            if name is not None:
                yield name


def _inner_name(item: Mapping[object, object]) -> str | None:
    flat = _flat(item)
    for key in NAME_KEYS:
        value = flat.get(key)
        if isinstance(value, Mapping):
            value = _flat(value).get("name")
        if value is not None and (name := _text(value)):
            return name
    return None


def _destination(text: str) -> str:
    """Where something goes: of a URL the host, else the text itself."""
    _, scheme, rest = text.partition("://")
    return _bare_host(rest) if scheme else text


def _bare_host(text: str) -> str:
    host = text.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0]
    return host.rpartition("@")[2].partition(":")[0].rstrip(".") or text[:MAX_TEXT]


def _host(flat: dict[str, object], targets: tuple[str, ...]) -> str | None:
    for text in _texts(flat, HOST_KEYS):
        return _bare_host(text.partition("://")[2] or text)
    for target in targets:
        if "@" in target:
            return target.rpartition("@")[2].strip("'\"<>[] ") or None
        if "." in target and " " not in target and not target.replace(".", "").isdigit():
            return target
    return None


def number(value: object) -> float | None:
    """A number, or a text that states one (`$5,000.00`), as its size; None for anything else."""
    if isinstance(value, bool):
        return None
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
    elif not isinstance(value, int | float):
        return None
    try:
        size = abs(float(value))
    except OverflowError:
        return MAX_AMOUNT
    except ValueError:
        return None
    if isnan(size):
        return None
    return min(size, MAX_AMOUNT) if isfinite(size) else MAX_AMOUNT


def _amount(flat: dict[str, object]) -> float | None:
    """The amount in dollars. Stated dollars win over what must be converted, plain amounts over totals."""
    if not _present(flat, ANY_AMOUNT_KEYS):
        return None
    dollars = [size for key in _present(flat, DOLLAR_KEYS) if (size := number(flat[key])) is not None]
    if dollars:
        return max(dollars)
    currency = _text(flat.get("currency"))
    for keys in (AMOUNT_KEYS, LAST_AMOUNT_KEYS):
        present = _present(flat, keys)
        stated = [pair for key in present if (pair := _size_and_rate(flat[key], currency)) is not None]
        if stated:
            return max((size * rate for size, rate in stated if rate is not None), default=None)
    return _other_amount(flat, currency)


def _other_amount(flat: dict[str, object], currency: str | None) -> float | None:
    """What cents, or a quantity at a price, come to."""
    rate = _rate(currency)
    cents = number(flat.get("amountcents"))
    quantity, price = number(flat.get("quantity")), number(flat.get("price"))
    if rate is None:
        return None
    if cents is not None:
        return cents / 100 * rate
    return min(quantity * price * rate, MAX_AMOUNT) if quantity is not None and price is not None else None


def _size_and_rate(value: object, currency: str | None) -> tuple[float, float | None] | None:
    """A stated amount and the dollars that a unit is worth at least; None where nothing is stated."""
    if isinstance(value, Mapping):
        flat = _flat(value)
        value, currency = flat.get("value", flat.get("amount")), _text(flat.get("currency")) or currency
    size = number(value)
    return None if size is None else (size, _rate(currency))


def _rate(currency: str | None) -> float | None:
    return DOLLARS_AT_LEAST.get(currency) if currency else 1.0


def _leverage(flat: dict[str, object]) -> float | None:
    """The stated ratio; a bare `true` counts as one that no ratio covers."""
    for key in _present(flat, LEVERAGE_KEYS):
        value = flat[key]
        if value is True:
            return MAX_AMOUNT
        if isinstance(value, str):
            value = value.strip().lower().removesuffix("x").partition(":")[0]
        ratio = number(value)
        if ratio is not None:
            return ratio
    return None
