"""Base64 of either alphabet has one spelling for each string of octets."""

import base64
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from compliance.core.encodings import b64_decode, b64_encode, b64url_decode, b64url_encode

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@given(octets=st.binary(max_size=80))
def test_both_round_trip(octets: bytes) -> None:
    assert b64_decode(b64_encode(octets)) == octets
    assert b64url_decode(b64url_encode(octets)) == octets
    assert b64_encode(octets) == base64.b64encode(octets).decode()
    assert b64url_encode(octets) == base64.urlsafe_b64encode(octets).decode().rstrip("=")


@given(octets=st.binary(min_size=1, max_size=20), character=st.sampled_from(ALPHABET + "=- _\n"))
def test_no_last_character_but_one_spells_the_octets(octets: bytes, character: str) -> None:
    text = b64_encode(octets).rstrip("=")
    changed = text[:-1] + character + "=" * (-len(text) % 4)

    assert (spelled(b64_decode, changed) == octets) == (changed == b64_encode(octets))


@pytest.mark.parametrize(
    "text", ["A", "AA", "AAA", "AA=", "AA===", "AAAA=", "=AAA", "A A=", "AA==\n", "é", "__8=", "AA==AA=="]
)
def test_other_text_is_no_base64(text: str) -> None:
    assert spelled(b64_decode, text) is None


@pytest.mark.parametrize("text", ["A", "AA==", "AAA=", "AA\n", "é", "//8", "AAAAA"])
def test_other_text_is_no_base64url(text: str) -> None:
    assert spelled(b64url_decode, text) is None


def spelled(decode: Callable[[str], bytes], text: str) -> bytes | None:
    try:
        return decode(text)
    except ValueError:
        return None
