"""Numbers in canonical JSON: the vectors of RFC 8785 §B, and what JavaScript writes."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from certificates.pki.signing import canonical
from compliance.core.errors import Invalid

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

FROM_NODE = json.loads(Path(__file__).with_name("canonical_numbers.json").read_text())["pairs"]
"""Each number as JSON, and what JavaScript's `JSON.stringify` makes of it."""


def number(bits: str) -> float:
    (found,) = struct.unpack(">d", bytes.fromhex(bits))
    return float(found)


@pytest.mark.parametrize("bits", NUMBERS)
def test_number_is_written_as_appendix_b_says(bits: str) -> None:
    assert canonical(number(bits)) == NUMBERS[bits].encode()


@pytest.mark.parametrize(("token", "written"), FROM_NODE)
def test_number_is_written_as_javascript_does(token: str, written: str) -> None:
    for text in (token, written):
        assert canonical({"n": [json.loads(text)]}) == f'{{"n":[{written}]}}'.encode()


@pytest.mark.parametrize(
    "value",
    [number("7fffffffffffffff"), number("7ff0000000000000"), 2**53 + 1, -(2**60) - 1, 10**400, "\ud800"],
)
def test_value_without_a_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        canonical(value)
