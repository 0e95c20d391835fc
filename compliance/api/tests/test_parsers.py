"""The quick way of reading JSON accepts what the strict one accepts, and finds the same in it."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from compliance.api.rest.parsers import _UNSURE, MAX_DEPTH, PLAIN_LEVELS, _loads_plain, _loads_strictly, loads
from compliance.core.errors import Invalid

NAMES = ["a", "b", 'a\\"', 'a\\":', "a\\\\", "\\u0061", "é", ":", "", " ", "a:", "\\u0000", "\\ud800", "\\/"]
ATOMS = [
    "1",
    "-0",
    "-0.0",
    "1e400",
    "-1e400",
    "1e-400",
    "1E5",
    "0.1",
    "01",
    "1.",
    ".5",
    "+1",
    "NaN",
    "Infinity",
    "-Infinity",
    "9" * 25,
    "9" * 4301,
    "18446744073709551616",
    "null",
    "true",
    "True",
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\uDC00\\uD800"',
    '"\\\\u0000"',
    '"\\u0000"',
    '"\x01"',
    '"\\x"',
    '"":',
    '":a"',
    '"\\":"',
    '"\\\\":1',
    '"\\"',
    "'a'",
    "",
    "//",
]
SPACES = ["", "", "", " ", "\n", "\t", "\r", "\r\n ", "\x0b", "\u00a0"]

space = st.sampled_from(SPACES)
text = st.text(alphabet='ab":\\u0d8\n \x00é\ud800', max_size=6)
atom = st.sampled_from(ATOMS) | text.map(lambda found: f'"{found}"') | text.map(json.dumps)
name = st.sampled_from(NAMES).map(lambda found: f'"{found}"') | text.map(json.dumps)


@st.composite
def an_object(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    members = draw(st.lists(st.tuples(space, name, space, space, values), max_size=4))
    return "{" + ",".join(f"{a}{b}{c}:{d}{e}" for a, b, c, d, e in members) + "}"


nasty = st.recursive(
    atom,
    lambda inner: an_object(inner) | st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
    max_leaves=12,
)


def as_bytes(found: str) -> bytes:
    return found.encode("utf-8", errors="surrogatepass")


def strictly(raw: bytes) -> Any:
    """What the strict way finds; `Invalid` itself where it refuses."""
    try:
        return _loads_strictly(raw)
    except Invalid:
        return Invalid


def same(ours: Any, theirs: Any) -> bool:
    """Equal in value, type and sign, all the way down."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[name], theirs[name]) for name in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float):
        return ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
    return bool(ours == theirs)


@settings(max_examples=400)
@given(nasty)
@example('{"a":1,"a":2}')
@example('{"a":":","a":2}')
@example('{"a" :1,"a":2}')
@example('{"a":"\\":","a":2}')
@example('{"a\\\\":1,"a\\\\":2}')
@example('{"a\\"":1,"a\\"":2}')
@example('{"a":1,"\\u0061":2}')
@example('{"x":"\\\\\\":","a":1,"a":2}')
@example('{"a":{"b":1},"b":{"a":1},"a":0}')
def test_quick_way_finds_what_the_strict_one_finds_or_leaves_it_to_that(found: str) -> None:
    raw = as_bytes(found)

    quick, strict = _loads_plain(raw), strictly(raw)

    if quick is not _UNSURE:
        assert strict is not Invalid
        assert same(quick, strict)


@settings(max_examples=200)
@given(st.binary(max_size=20) | nasty.map(as_bytes))
def test_nothing_but_a_value_or_a_refusal_comes_out(raw: bytes) -> None:
    try:
        found = loads(raw)
    except Invalid as error:
        found, refusal = Invalid, error.message
        assert refusal

    assert found is Invalid or same(found, strictly(raw))


@pytest.mark.parametrize("ends", ["[]", '{"a":'])
def test_nesting_is_accepted_to_32_levels_and_no_deeper(ends: str) -> None:
    def nested(levels: int) -> bytes:
        if ends == "[]":
            return b"[" * levels + b"]" * levels
        return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)

    assert _loads_plain(nested(PLAIN_LEVELS)) is not _UNSURE
    assert _loads_plain(nested(PLAIN_LEVELS + 1)) is _UNSURE
    assert same(loads(nested(MAX_DEPTH)), _loads_strictly(nested(MAX_DEPTH)))
    for levels in (MAX_DEPTH + 1, 200_000):
        with pytest.raises(Invalid, match="deeper than 32"):
            loads(nested(levels))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"agentId":"0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f","actionType":"api_call","details":{"a":[1,2.5]}}',
        b'{"agent_id": "a", "details": {"text": "caf\xc3\xa9: \\"yes\\": 1", "n": 123456789012345678901234}}',
    ],
)
def test_ordinary_text_is_read_the_quick_way(raw: bytes) -> None:
    assert same(_loads_plain(raw), _loads_strictly(raw))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,"\\u0061":2}',
        b'{"x":{"a":1,"a":1}}',
        b'{"a":"\\u0000"}',
        b'{"\\u0000":1}',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        b'"\x00"',
        b"1e400",
        b"-1e400",
        b"NaN",
        b"9" * 4301,
        b"",
        b" ",
        b"{} {}",
        b"[1,]",
        b'{"a":1,}',
        b"01",
    ],
)
def test_what_is_no_sound_json_is_refused(raw: bytes) -> None:
    with pytest.raises(Invalid):
        loads(raw)


@pytest.mark.parametrize("number", ["1e308", "5e-324", "-1e300"])
def test_numbers_that_grow_past_a_megabyte_when_stored_are_refused(number: str) -> None:
    few, many = ([float(number)] * count for count in (1_000, 10_000))

    assert loads(json.dumps({"a": few}).encode()) == {"a": few}
    with pytest.raises(Invalid, match="written out"):
        loads(json.dumps({"a": [{"b": many}]}).encode())


def test_a_megabyte_of_ordinary_numbers_is_accepted() -> None:
    numbers = [0.1, 1e-5, 123456.789, 1e15] * 25_000

    assert loads(json.dumps(numbers).encode()) == numbers
