"""The keys under which details state a fact, in any of their spellings."""

from functools import lru_cache
from itertools import islice

MAX_KEYS = 128
MAX_KEY = 48
MAX_TEXT = 256

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
"""The keys of each kind of fact, the most telling first."""
KIND_OF = {key: kind for kind, keys in KEYS.items() for key in keys}
RANK = {key: rank for rank, key in enumerate(KIND_OF)}

Flat = dict[str, object]
Stated = dict[str, list[object]]  # the values stated of each kind of fact, the most telling first


@lru_cache(maxsize=4096)
def key_of(key: str) -> str | None:
    """Return the key as `KEYS` spells it, None for any other."""
    plain = key.replace("_", "").replace("-", "").lower()
    return plain if plain in KIND_OF else None


def flat_of(details: dict[str, object]) -> Flat:
    """Return the known keys among an object's first ones; of two spellings the first counts."""
    flat: Flat = {}
    items = details.items() if len(details) <= MAX_KEYS else islice(details.items(), MAX_KEYS)
    for key, value in items:
        if value is not None and len(key) <= MAX_KEY:
            plain = key_of(key)
            if plain is not None and plain not in flat:
                flat[plain] = value
    return flat


def by_kind(flat: Flat) -> Stated:
    stated: Stated = {}
    for key in sorted(flat, key=RANK.__getitem__):
        stated.setdefault(KIND_OF[key], []).append(flat[key])
    return stated


def with_inner(top: Flat, inner: list[object]) -> Flat:
    """Return the top level and, where it has none, the keys of the well-known inner objects."""
    merged = dict(top)
    for value in inner:
        if isinstance(value, dict):
            merged = flat_of(value) | merged
    return merged


def text_of(value: object) -> str | None:
    """Return a scalar as a cut, case-folded text; None when there is nothing to compare."""
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            return value.strip().casefold() or None
        return value[:MAX_TEXT].strip().casefold() + f"#{len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 63 else "a huge number"
    return repr(value) if isinstance(value, float) else None
