"""Read amounts of money, in dollars where their currency allows it, and ratios."""

from math import isnan

from events.risk.scoring.keys import Stated, flat_of, text_of

MAX_AMOUNT = 1e15
MONEY = frozenset({"dollars", "amount", "total", "cents", "quantity"})
# The least value of a currency's unit in dollars; amounts in other currencies have no limit
DOLLARS_AT_LEAST: dict[str, float] = {
    "usd": 1.0, "$": 1.0, "us$": 1.0, "usdc": 1.0, "usdt": 1.0,
    "eur": 0.9, "gbp": 1.0, "chf": 0.9, "btc": 1_000.0, "eth": 100.0,
}  # fmt: skip


def number(value: object) -> float | None:
    """Return the size of a number or of a text with one (`$5,000.00`); None for anything else."""
    if isinstance(value, float) and -MAX_AMOUNT <= value <= MAX_AMOUNT:
        return abs(value)
    if isinstance(value, str):
        if len(value) > 40:
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


def amount_of(stated: Stated) -> float | None:
    """Return the amount in dollars: stated dollars before converted ones, plain amounts before totals."""
    if dollars := [size for value in stated.get("dollars", ()) if (size := number(value)) is not None]:
        return max(dollars)
    currency = text_of(stated["currency"][0]) if "currency" in stated else None
    for kind in ("amount", "total"):
        if sizes := [pair for value in stated.get(kind, ()) if (pair := _size_and_rate(value, currency))]:
            return max((size * rate for size, rate in sizes if rate is not None), default=None)
    return _other_amount(stated, currency)


def _other_amount(stated: Stated, currency: str | None) -> float | None:
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
    if isinstance(value, dict):
        flat = flat_of(value)
        value, currency = flat.get("value", flat.get("amount")), text_of(flat.get("currency")) or currency
    size = number(value)
    return None if size is None else (size, _rate(currency))


def _rate(currency: str | None) -> float | None:
    return DOLLARS_AT_LEAST.get(currency) if currency else 1.0


def leverage_of(value: object) -> float | None:
    """Return the stated ratio; a bare `true` counts as the greatest."""
    if isinstance(value, str):
        value = value.strip().lower().removesuffix("x").partition(":")[0]
    return MAX_AMOUNT if value is True else number(value)
