"""What counts as a token at all, and forgeries of every kind that JOSE has seen."""

import hashlib
import hmac
import itertools
import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, strategies as st

from compliance.core.encodings import b64url_decode, b64url_encode
from delegation.errors import RejectionReason, TokenRejected
from delegation.jose import jws
from delegation.tests.holders import segment

KEY = ec.generate_private_key(ec.SECP256R1())
CLAIMS = {"sub": "alice", "exp": 2_000}
TOKEN = jws.sign(CLAIMS, kid="k1", key=KEY)
HEADER, PAYLOAD, SIGNATURE = TOKEN.split(".")


def with_payload(octets: bytes) -> str:
    return f"{HEADER}.{segment(octets)}.{SIGNATURE}"


def under(header: bytes) -> str:
    return f"{segment(header)}.{PAYLOAD}.{SIGNATURE}"


def reason_of(token: str) -> RejectionReason | None:
    """Why `token` does not count under `KEY`; None when it does."""
    try:
        jws.verify(jws.parse(token), KEY.public_key())
    except TokenRejected as rejected:
        return rejected.reason
    return None


def with_header(**changes: Any) -> str:
    """A token signed by the right key under another header; None leaves a member out."""
    header = {"alg": "ES256", "typ": "delegation+jwt", "kid": "k1", **changes}
    header = {name: value for name, value in header.items() if value is not None}
    signing_input = f"{segment(header)}.{PAYLOAD}".encode()
    signature = jws.with_lower_s(jwt.get_algorithm_by_name("ES256").sign(signing_input, KEY))
    return f"{signing_input.decode()}.{b64url_encode(signature)}"


def test_a_token_holds_and_its_header_is_exactly_ours() -> None:
    assert jws.verify(jws.parse(TOKEN), KEY.public_key()) == CLAIMS
    assert json.loads(b64url_decode(HEADER)) == {"alg": "ES256", "kid": "k1", "typ": "delegation+jwt"}
    assert reason_of(with_header()) is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        " ",
        "x",
        "a.b",
        "..",
        "a.b.c.d",
        "not a token",
        TOKEN + " ",
        "\n" + TOKEN,
        f"{HEADER}.{PAYLOAD}",
        f"{HEADER}.{PAYLOAD}.{SIGNATURE}.",
        f"{HEADER}..{SIGNATURE}",
        f".{PAYLOAD}.{SIGNATURE}",
        f"{HEADER}=.{PAYLOAD}.{SIGNATURE}",
        f"{HEADER}.{PAYLOAD}.{SIGNATURE}==",
        f"{HEADER}.{PAYLOAD}.{SIGNATURE[:-1]}+",
        f"{HEADER}.{PAYLOAD}.é",
        "a" * 20_000,
        under(b"[]"),
        under(b"null"),
        under(b"{"),
        under(bytes([0xFF, 0xFE])),
        f"{HEADER}.{segment([1])}.{SIGNATURE}",
        with_payload(b"[" * 9_000),
        with_payload(b'{"exp": NaN}'),
        with_payload(b'{"exp": ' + b"9" * 5_000 + b"}"),
        with_payload(b'{"sub": "a", "sub": "b"}'),
        with_payload(b'{"act": {"sub": "a", "sub": "b"}}'),
        under(b'{"alg":"ES256","alg":"none","typ":"delegation+jwt","kid":"k1"}'),
    ],
)
def test_what_is_no_token_is_malformed(token: str) -> None:
    assert reason_of(token) is RejectionReason.MALFORMED


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "HS256", "RS256", "ES384", "ES256K", "es256", "", 5, None, ["ES256"]]
)
def test_any_other_algorithm_is_unsupported(algorithm: Any) -> None:
    assert reason_of(with_header(alg=algorithm)) is RejectionReason.UNSUPPORTED_ALGORITHM


def test_none_without_a_signature_is_unsupported() -> None:
    header = segment({"alg": "none", "typ": "delegation+jwt", "kid": "k1"})

    assert reason_of(f"{header}.{PAYLOAD}.") is RejectionReason.UNSUPPORTED_ALGORITHM


@pytest.mark.parametrize(
    "encoding",
    [
        (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        (Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        (Encoding.X962, PublicFormat.UncompressedPoint),
    ],
)
def test_the_public_key_is_no_hmac_secret(encoding: tuple[Encoding, PublicFormat]) -> None:
    header = segment({"alg": "HS256", "typ": "delegation+jwt", "kid": "k1"})
    secret = KEY.public_key().public_bytes(*encoding)
    mac = hmac.new(secret, f"{header}.{PAYLOAD}".encode(), hashlib.sha256).digest()

    assert reason_of(f"{header}.{PAYLOAD}.{segment(mac)}") is RejectionReason.UNSUPPORTED_ALGORITHM


@pytest.mark.parametrize(
    "changes",
    [
        {"typ": "JWT"},
        {"typ": "at+jwt"},
        {"typ": "DELEGATION+JWT"},
        {"typ": None},
        {"kid": None},
        {"kid": 5},
        {"kid": ["k1"]},
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"b64": False},
        {"jku": "https://attacker.example/jwks.json"},
        {"jwk": {"kty": "EC"}},
        {"x5u": "https://attacker.example/cert.pem"},
        {"x5c": ["MII="]},
        {"zip": "DEF"},
        {"cty": "JWT"},
    ],
)
def test_a_header_that_is_not_ours_is_malformed_even_if_our_key_signed(changes: dict[str, Any]) -> None:
    assert reason_of(with_header(**changes)) is RejectionReason.MALFORMED


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        b"\x00" * 64,
        b"\x00" * 63 + b"\x01",
        b"\xff" * 64,
        b64url_decode(SIGNATURE)[:-1],
        b64url_decode(SIGNATURE) + b"\x00",
        b64url_decode(SIGNATURE)[::-1],
        KEY.sign(f"{HEADER}.{PAYLOAD}".encode(), ec.ECDSA(hashes.SHA256())),
    ],
    ids=itertools.count(),
)
def test_other_signatures_do_not_hold(signature: bytes) -> None:
    assert reason_of(f"{HEADER}.{PAYLOAD}.{segment(signature)}") is RejectionReason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "changed", [{**CLAIMS, "sub": "mallory"}, {**CLAIMS, "exp": 9_999}, {}, {**CLAIMS, "scope": "all"}]
)
def test_changed_claims_do_not_hold(changed: dict[str, Any]) -> None:
    assert reason_of(f"{HEADER}.{segment(changed)}.{SIGNATURE}") is RejectionReason.INVALID_SIGNATURE


def test_another_key_does_not_hold() -> None:
    other = jws.sign(CLAIMS, kid="k1", key=ec.generate_private_key(ec.SECP256R1()))

    assert reason_of(other) is RejectionReason.INVALID_SIGNATURE


@given(position=st.integers(0, len(TOKEN) - 1), character=st.sampled_from("ABab01-_.=+ é"))
def test_no_single_character_can_be_changed(position: int, character: str) -> None:
    changed = TOKEN[:position] + character + TOKEN[position + 1 :]

    assert (reason_of(changed) is None) == (changed == TOKEN)


def with_s(change: Callable[[int], int], token: str = TOKEN) -> str:
    """`token` with another s in its signature r ‖ s."""
    signed, _, signature = token.rpartition(".")
    octets = b64url_decode(signature)
    s = change(int.from_bytes(octets[32:], "big"))
    return f"{signed}.{b64url_encode(octets[:32] + s.to_bytes(32, 'big'))}"


def test_every_token_has_one_signature_that_counts() -> None:
    for number in range(40):
        token = jws.sign({**CLAIMS, "jti": number}, kid="k1", key=KEY)
        other = with_s(lambda s: jws.P256_ORDER - s, token)

        assert reason_of(token) is None
        assert reason_of(other) is RejectionReason.INVALID_SIGNATURE
        jwt.PyJWS(algorithms=["ES256"]).decode(token, KEY.public_key(), algorithms=["ES256"])


@pytest.mark.parametrize("s", [0, jws.P256_ORDER // 2 + 1, jws.P256_ORDER - 1, jws.P256_ORDER, 2**256 - 1])
def test_no_s_out_of_the_lower_half_holds(s: int) -> None:
    assert reason_of(with_s(lambda _: s)) is RejectionReason.INVALID_SIGNATURE


@pytest.mark.parametrize("r", [0, jws.P256_ORDER, 2**256 - 1])
def test_no_r_out_of_range_holds(r: int) -> None:
    octets = r.to_bytes(32, "big") + b64url_decode(SIGNATURE)[32:]

    assert reason_of(f"{HEADER}.{PAYLOAD}.{segment(octets)}") is RejectionReason.INVALID_SIGNATURE


@given(text=st.text(max_size=300))
def test_no_text_crashes_the_parser(text: str) -> None:
    assert reason_of(text) is not None
