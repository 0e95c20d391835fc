"""Read an event's free-form details into a few bounded facts.

Details are hostile: any JSON type anywhere, huge strings, deep nesting. Reading looks at the first keys of
the object and of a few well-known inner objects, cuts every text, and never raises.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

import msgspec

from events.risk.scoring.amounts import MONEY, amount_of, leverage_of, number
from events.risk.scoring.keys import KIND_OF, MAX_KEY, MAX_TEXT, by_kind, flat_of, key_of, text_of, with_inner

MAX_LIST = 8
FEW_KEYS, SHORT_KEYS = 24, 384  # most keys, and most characters in all of them, of a cached plan
KEPT_TEXTS = 4_096  # size of the caches of short texts, since most come again

NAME_KEYS = ("name", "tool", "function", "action")
REFUSED = frozenset({"denied", "forbidden", "unauthorized", "refused", "401", "403"})
"""Statuses of a refused request; other failures say nothing of the agent."""
REFUSALS = frozenset({401, 403})


class ActionFacts(msgspec.Struct, frozen=True, gc=False):
    """What the details say, case-folded and cut; an absent fact is None or empty.

    `tools` and `verbs` name the action, `tool` is what counts in the agent's habits. `amount`: in dollars, at
    least 0; None for an unknown currency. `leverage`: a ratio.
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


NOTHING = ActionFacts()
QUOTES = "'\"<>[] "
Read = TypeVar("Read")
Reader = Callable[[object], object]
Plan = tuple[tuple[str, int, Reader], ...]
MOST_PLANS = 2_048
_plans: dict[tuple[str, ...], Plan | None] = {}


def read(details: object) -> ActionFacts:
    """Return the facts of a details object; anything else has none."""
    if not isinstance(details, dict):
        return NOTHING
    keys = tuple(details)
    try:
        plain = _plans[keys]
    except KeyError:
        plain = _planned(keys)
    if plain is None:
        return _read_any(details)
    found: list[Any] = [(), (), (), (), None, None, (), (), None, False]
    for key, place, reader in plain:
        value = details[key]
        if value is not None:
            found[place] = reader(value)
    return _facts(found)


def _read_any(details: dict[str, object]) -> ActionFacts:
    flat = flat_of(details)
    top = stated = by_kind(flat)
    if "inner" in top:
        stated = by_kind(with_inner(flat, top["inner"]))
    return _facts([
        _each(_names, top.get("tool")),
        _each(_names, top.get("verb")),
        _each(_targets, stated.get("target")),
        _each(_stated_hosts, stated.get("host")),
        _first(_resource, stated.get("resource")),
        None if MONEY.isdisjoint(stated) else amount_of(stated),
        _first(_texts, stated.get("instrument")) or (),
        _first(_texts, stated.get("venue")) or (),
        _first(leverage_of, stated.get("leverage")),
        any(map(_is_refusal, top.get("status", ()))),
    ])  # fmt: skip


def _facts(found: list[Any]) -> ActionFacts:
    """Return the facts from the values found, in the order of `READERS`."""
    tools, verbs, targets, hosts, resource, amount, instruments, venues, leverage, refused = found
    if hosts or len(targets) > 1:
        hosts = tuple(dict.fromkeys((*chain.from_iterable(map(_hosts_of, targets)), *hosts)))
    elif targets:
        hosts = _hosts_of(targets[0])
    tool = tools[0] if tools else verbs[0] if verbs else None
    # By position, which is faster than by keyword
    return ActionFacts(
        tool, tools, verbs, targets, hosts, resource, amount, instruments, venues, leverage, refused
    )


def _each(reader: Callable[[object], tuple[str, ...]], values: list[object] | None) -> tuple[str, ...]:
    return tuple([text for value in values for text in reader(value)]) if values else ()


def _first(reader: Callable[[object], Read | None], values: list[object] | None) -> Read | None:
    for value in values or ():
        found = reader(value)
        if found is not None and found != ():
            return found
    return None


def _planned(keys: tuple[str, ...]) -> Plan | None:
    if len(keys) > FEW_KEYS or len("".join(keys)) > SHORT_KEYS:
        return None
    if len(_plans) >= MOST_PLANS:
        _plans.clear()
    return _plans.setdefault(keys, _plan(keys))


def _plan(keys: tuple[str, ...]) -> Plan | None:
    """Plan each known key's place and reader; None if two state one kind, or a kind needs other keys."""
    kinds = {key: KIND_OF[name] for key in keys if len(key) <= MAX_KEY and (name := key_of(key)) is not None}
    if len(set(kinds.values())) < len(kinds) or not READERS.keys() >= set(kinds.values()):
        return None
    return tuple((key, *READERS[kind]) for key, kind in kinds.items())


def _texts(value: object) -> tuple[str, ...]:
    """Return a text, or each in a list; the rest of a long list counts as one."""
    if not isinstance(value, list):
        if isinstance(value, str) and len(value) <= MAX_TEXT:
            return _text(value)
        text = text_of(value)
        return () if text is None else (text,)
    texts = [text for item in value[:MAX_LIST] if (text := text_of(item)) is not None]
    if len(value) > MAX_LIST:
        texts.append(f"{len(value) - MAX_LIST} more")
    return tuple(texts)


@lru_cache(maxsize=KEPT_TEXTS)
def _text(value: str) -> tuple[str, ...]:
    text = text_of(value)
    return () if text is None else (text,)


def _targets(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        return _target(value)
    return tuple([_destination(text) for text in _texts(value)])


@lru_cache(maxsize=KEPT_TEXTS)
def _target(value: str) -> tuple[str, ...]:
    return tuple(map(_destination, _text(value)))


def _stated_hosts(value: object) -> tuple[str, ...]:
    return tuple([_bare_host(text.partition("://")[2] or text).strip(QUOTES) for text in _texts(value)])


def _resource(value: object) -> str | None:
    texts = _texts(value)
    return texts[0] if texts else None


def _is_refusal(value: object) -> bool:
    if type(value) is int:
        return value in REFUSALS
    return not REFUSED.isdisjoint(_texts(value))


def _names(value: object) -> tuple[str, ...]:
    """Return action names: a text, an object with a name, or a list of either."""
    if isinstance(value, str):
        return _texts(value)
    names = []
    for item in value[:MAX_LIST] if isinstance(value, list) else (value,):
        name = _inner_name(item) if isinstance(item, dict) else text_of(item)
        if name is not None:
            names.append(name)
    return tuple(names)


def _inner_name(item: dict[str, object]) -> str | None:
    flat = flat_of(item)
    for key in NAME_KEYS:
        value = flat.get(key)
        if isinstance(value, dict):
            value = flat_of(value).get("name")
        if value is not None and (name := text_of(value)):
            return name
    return None


def _destination(text: str) -> str:
    return _bare_host(text.partition("://")[2]) if "://" in text else text.strip(QUOTES) or text


def _bare_host(text: str) -> str:
    host = text.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0]
    return host.rpartition("@")[2].partition(":")[0].rstrip(".") or text[:MAX_TEXT]


@lru_cache(maxsize=KEPT_TEXTS)
def _hosts_of(target: str) -> tuple[str, ...]:
    if "@" in target:
        host = target.rpartition("@")[2].strip(QUOTES)
        return (host,) if host else ()
    is_host = "." in target and " " not in target and not target.replace(".", "").isdigit()
    return (target,) if is_host else ()


READERS: dict[str, tuple[int, Reader]] = {
    "tool": (0, _names),
    "verb": (1, _names),
    "target": (2, _targets),
    "host": (3, _stated_hosts),
    "resource": (4, _resource),
    "dollars": (5, number),
    "instrument": (6, _texts),
    "venue": (7, _texts),
    "leverage": (8, leverage_of),
    "status": (9, _is_refusal),
}
"""The kinds of fact that a value states by itself: their place in `_facts()`, and their reader."""
