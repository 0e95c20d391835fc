"""Read amounts of money, in dollars where their currency allows it, and ratios."""

import re
from itertools import islice
from math import isnan

from events.risk.scoring.keys import MAX_KEYS, key_of, text_of

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


def leverage_of(value: object) -> float | None:
    """Return the stated ratio; a bare `true` counts as the greatest."""
    if isinstance(value, str):
        value = value.strip().lower().removesuffix("x").partition(":")[0]
    return MAX_AMOUNT if value is True else number(value)
