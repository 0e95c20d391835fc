"""The identity extension: what is written is read back, and nothing but DER is read."""

from dataclasses import replace

import pytest

from certificates.pki.identity_extension import IdentityClaims, InvalidExtension, decode, encode

FULL = IdentityClaims(
    operator="Example Trading GmbH",
    did="did:service:live:0192e4a0-0000-7000-8000-000000000001",
    environment="live",
    model="gpt-5",
    model_version="2.1.0",
    model_hash="sha256:9f86",
    permitted_actions=("read_market_data", "place_order"),
)


@pytest.mark.parametrize(
    "claims",
    [
        FULL,
        replace(FULL, model=None, model_version=None, model_hash=None, permitted_actions=None),
        replace(FULL, permitted_actions=()),
        replace(FULL, permitted_actions=tuple(f"action-{n}-" + "x" * 190 for n in range(200))),
        replace(FULL, operator="", model="", model_version="名前 \x01 \u202e", permitted_actions=("",)),
        replace(FULL, environment="test", model_hash="h" * 512),
    ],
)
def test_claims_survive_the_round_trip(claims: IdentityClaims) -> None:
    assert decode(encode(claims)) == claims


def test_encoding_is_as_documented() -> None:
    claims = IdentityClaims(
        operator="O", did="d", environment="live", model_hash="h", permitted_actions=("a",)
    )

    assert (
        encode(claims).hex(" ")
        == "30 17 02 01 01 0c 01 4f 0c 01 64 81 01 68 a2 03 0c 01 61 84 04 6c 69 76 65"
    )


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"\x00",
        b"\x30\x80\x00\x00",
        b"\x30\x00",
        encode(FULL) + b"\x00",
        encode(FULL)[:-1],
        encode(FULL).replace(b"\x02\x01\x01", b"\x02\x01\x02", 1),
        b"\x30\x81\x18"
        + encode(IdentityClaims("O", "d", "live", model_hash="h", permitted_actions=("a",)))[2:],
        bytes.fromhex("300902010 10c01ff0c0164".replace(" ", "")),
    ],
)
def test_anything_else_is_refused(der: bytes) -> None:
    with pytest.raises(InvalidExtension):
        decode(der)
