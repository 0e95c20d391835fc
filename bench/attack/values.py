"""Values and bodies that programs stumble over, and changes that make a valid request a hostile one."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

NUL, SURROGATE = "a\x00b", "\ud800"
LARGEST_BODY = 1024 * 1024
TEXTS = (
    "", " ", "\t", "\n", "\r\n", NUL, SURROGATE, "\udfff\ud800", "\ufeff", "\u200b", "\u202e", "\u2066",
    "\u0661\u0662", "\uff11", "é" * 300, "😀" * 200, "x" * 256, "x" * 70_000, "%00", "../../etc/passwd",
    "'; DROP TABLE x; --", "{{7*7}}", "${jndi:ldap://127.0.0.1/}", "<script>", "null", "true", "NaN", "1e999",
    "2026-01-01", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "-1",
    "2026-01-01T00:00:00+99:99", "2026-W01-1", "20260101T000000Z", "2026-01-01T24:00:00Z",
    "00000000-0000-0000-0000-000000000000", "{00000000-0000-0000-0000-000000000000}",
    "0000000000000000000000000000000\u0661", "0000000\u0661-0000-0000-0000-000000000000", "g" * 36,
)  # fmt: skip
NUMBERS = (
    *(0, -0.0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**300, 10**4_000, 1e308, 5e-324),
    *(0.1, 60, 86_401, 1.0, 1e22),
)
OTHERS: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [None], [{}], {"": ""}, {"a": {"b": [1]}}, ["a"] * 200,
)  # fmt: skip


def hostile_values(chance: Random) -> Iterator[Any]:
    """Values of every JSON type; none is refused by `json.dumps`."""
    yield from TEXTS
    yield from (number for number in NUMBERS if not isinstance(number, int) or abs(number) < 10**4_000)
    yield from OTHERS
    yield nested(chance.choice([31, 33, 200]))
    yield "".join(
        chr(chance.choice([chance.randrange(32, 127), chance.randrange(0x2FFF)])) for _ in range(20)
    )
    yield chance.uniform(-1e18, 1e18)


def nested(depth: int) -> Any:
    """Lists and objects in turns, so deep."""
    found: Any = 1
    for level in range(depth):
        found = [found] if level % 2 else {"a": found}
    return found


def hostile_bodies(chance: Random, plain: Any) -> Iterator[bytes]:
    """Texts that are no JSON, almost JSON, or JSON as nobody writes it, made from a valid body."""
    whole = json.dumps(plain).encode()
    inside = whole[1:-1]
    yield from (
        b"", b" ", b"null", b"true", b"0", b'""', b"[]", b"{}", b"[{}]", b"{", b"}", b"\xff\xfe", b"\x00",
    )  # fmt: skip
    yield from (
        b"\xef\xbb\xbf" + whole, whole.decode().encode("utf-16"), whole + b"x", whole + whole, b"," + whole,
    )  # fmt: skip
    yield whole[: chance.randrange(1, len(whole))]
    yield b"{" + inside + b"," + inside + b"}"
    yield whole.replace(b'":', b'" :').replace(b", ", b" ,\n")
    yield b"{" + inside + b',"details":{"a":1,"a":2}}'
    yield b"{" + inside + b',"\\u0000":1}'
    for value in (
        b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"01", b"+1", b".5", b"0x10", b"1_000",
        b"9" * 4_400, b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\x00"', b'"\xed\xa0\x80"',
        b'"\xc3\x28"', b'"\\x41"', b"'a'", b"undefined", b"[1,]", b'{"a":1,}', b"/**/1", b'"\n"',
        b'"\\uD83D\\uDE00"', b"1E400", b"-", b"1.", b"[" * 100_000, b"[" * 40 + b"]" * 40,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"[" * 31 + b"]" * 31,
    ):  # fmt: skip
        yield b"{" + inside + b',"details":' + value + b"}"
    yield b"{" + inside + b',"more":"' + b"x" * LARGEST_BODY + b'"}'
    yield b" " * (LARGEST_BODY - len(whole)) + whole
    yield bytes(chance.randrange(256) for _ in range(chance.randrange(1, 400)))


def changed(chance: Random, body: Any) -> Any:
    """A copy of a JSON value with one to three changes somewhere in it."""
    found = deepcopy(body)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        found = _changed_once(chance, found)
    return found


def _changed_once(chance: Random, body: Any) -> Any:
    places = list(_places(body))
    if not places:
        return _value(chance)
    holder, name = chance.choice(places)
    kind = chance.random()
    if kind < 0.12 and isinstance(holder, dict):
        del holder[name]
    elif kind < 0.2 and isinstance(holder, dict):
        holder[_name(chance)] = _value(chance)
    elif kind < 0.25:
        holder[name] = [deepcopy(holder[name]) for _ in range(chance.choice([1, 2, 150]))]
    else:
        holder[name] = _value(chance)
    return body


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in list(items):
        yield value, name
        yield from _places(item)


def _value(chance: Random) -> Any:
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(TEXTS)
    if kind < 0.7:
        return chance.choice(NUMBERS[:10] + NUMBERS[12:])
    return deepcopy(chance.choice(OTHERS)) if kind < 0.95 else nested(chance.choice([5, 31, 32, 33, 100]))


def _name(chance: Random) -> str:
    return chance.choice(
        ["", "__proto__", "id", "tenant_id", "status", "agent_id", "\u202e", "a" * 300, "a.b", NUL]
    )


def garbled(chance: Random, octets: bytes) -> bytes:
    """Octets with a few of them changed, left out, doubled or cut off."""
    found = bytearray(octets)
    for _ in range(chance.randrange(1, 4)):
        if not found:
            return bytes(found)
        place, kind = chance.randrange(len(found)), chance.randrange(4)
        if kind == 0:
            found[place] = chance.randrange(256)
        elif kind == 1:
            del found[place : place + chance.randrange(1, 8)]
        elif kind == 2:
            found[place:place] = found[place : place + chance.randrange(1, 30)]
        else:
            del found[place:]
    return bytes(found)
