"""Amounts of money and ratios as details state them, in dollars wherever that can be told."""

from math import isnan

from events.scoring.keys import Stated, flat_of, text_of

MAX_AMOUNT = 1e15
MONEY = frozenset({"dollars", "amount", "total", "cents", "quantity"})
DOLLARS_AT_LEAST: dict[str, float] = {
    "usd": 1.0, "$": 1.0, "us$": 1.0, "usdc": 1.0, "usdt": 1.0,
    "eur": 0.9, "gbp": 1.0, "chf": 0.9, "btc": 1_000.0, "eth": 100.0,
}  # fmt: skip
"""What one unit of a currency is worth at the very least, in dollars; no other can be held to a limit."""


def number(value: object) -> float | None:
    """A number, or a text that states one (`$5,000.00`), as its size; None for anything else."""
    if isinstance(value, float) and -MAX_AMOUNT <= value <= MAX_AMOUNT:
        return abs(value)
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


def amount_of(stated: Stated) -> float | None:
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
    return text_of(stated["currency"][0]) if "currency" in stated else None


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
        flat = flat_of(value)
        value, currency = flat.get("value", flat.get("amount")), text_of(flat.get("currency")) or currency
    size = number(value)
    return None if size is None else (size, _rate(currency))


def _rate(currency: str | None) -> float | None:
    return DOLLARS_AT_LEAST.get(currency) if currency else 1.0


def leverage_of(value: object) -> float | None:
    """The stated ratio; a bare `true` counts as one that no ratio covers."""
    if value is True:
        return MAX_AMOUNT
    return number(
        value.strip().lower().removesuffix("x").partition(":")[0] if isinstance(value, str) else value
    )
