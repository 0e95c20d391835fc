"""Vectors of others for canonical JSON: cyberphone/json-canonicalization (Apache-2.0) and RFC 8785 §B."""

import json
import struct
from typing import Any

import pytest

from certificates.pki.signing import canonical
from compliance.core.errors import Invalid

TEXTS = {
    "arrays": ('[56,{"d":true,"10":null,"1":[]}]', '[56,{"1":[],"10":null,"d":true}]'),
    "french": (
        '{"peach":"This sorting order","péché":"is wrong according to French",'
        '"pêche":"but canonicalization MUST","sin":"ingnore locale"}',
        '{"peach":"This sorting order","péché":"is wrong according to French",'
        '"pêche":"but canonicalization MUST","sin":"ingnore locale"}',
    ),
    "structures": (
        r'{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{},"":"empty","a":{},"111":[{}],"A":{}}',
        r'{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}}',
    ),
    "unicode": (
        r'{"Unnormalized Unicode":"\u1e0d\u0307"}',
        '{"Unnormalized Unicode":"\u1e0d\u0307"}',
    ),
    "values": (
        r'{"numbers":[1E30,4.50,333333333.33333329,2e-3,0.000000000000000000000000001],'
        r'"escaping":"\u20ac$\u000F\u000aA'
        + r"'"
        + r'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}',
        r'{"escaping":"€$\u000f\nA' + "'" + r'B\"\\\\\"/","literals":[null,true,false],'
        r'"numbers":[1e+30,4.5,333333333.3333333,0.002,1e-27]}',
    ),
    "weird": (
        r'{"\u20ac":"Euro Sign","1":"One","\u0080":"Control\u007f","\ud83d\ude02":"Smiley",'
        r'"\u00f6":"Latin Small Letter O With Diaeresis","\ufb33":"Hebrew Letter Dalet With Dagesh",'
        r'"</script>":"Browser Challenge"}',
        '{"1":"One","</script>":"Browser Challenge","\u0080":"Control\u007f",'
        '"\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign","\U0001f602":"Smiley",'
        '"\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
}

NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def number(bits: str) -> float:
    (found,) = struct.unpack(">d", bytes.fromhex(bits))
    return float(found)


@pytest.mark.parametrize("name", TEXTS)
def test_text_has_the_canonical_form_of_the_vector(name: str) -> None:
    given, expected = TEXTS[name]

    assert canonical(json.loads(given)) == expected.encode()


@pytest.mark.parametrize("bits", NUMBERS)
def test_number_is_written_as_appendix_b_says(bits: str) -> None:
    assert canonical(number(bits)) == NUMBERS[bits].encode()


@pytest.mark.parametrize("value", [number("7fffffffffffffff"), number("7ff0000000000000"), 2**53, "\ud800"])
def test_value_without_a_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        canonical(value)
