"""What counts as a DPoP proof, and attacks on each of its parts."""

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, strategies as st

from compliance.core.clock import now
from compliance.core.encodings import b64url_encode
from delegation.errors import ProofRejected
from delegation.jose import dpop
from delegation.jose.dpop import Proof
from delegation.jose.jws import P256_ORDER
from delegation.tests.holders import Holder, segment

URI = "https://api.example/v1/things"
HOLDER = Holder()
NOW = now().replace(microsecond=0)


def check(text: str, *, method: str = "POST", uri: str = URI, token: str | None = None) -> Proof:
    return dpop.check(text, method=method, uri=uri, access_token=token, now=NOW)


def refusal(text: str, **how: Any) -> str:
    """Why a proof does not count."""
    with pytest.raises(ProofRejected) as refused:
        check(text, **how)
    assert refused.value.error == "invalid_dpop_proof"
    assert refused.value.status == 400
    return refused.value.description


def made(**how: Any) -> str:
    return HOLDER.proof(**{"uri": URI, "at": NOW, **how})


@pytest.mark.parametrize("holder", [HOLDER, Holder(Ed25519PrivateKey.generate())])
def test_proof_of_either_algorithm_holds(holder: Holder) -> None:
    text = holder.proof(uri=URI, at=NOW, jti="j", nonce="n", token="t")

    assert check(text, token="t") == Proof(holder.jkt, "j", "n")


def test_ed25519_may_be_named_so() -> None:
    holder = Holder(Ed25519PrivateKey.generate())

    assert check(holder.proof(uri=URI, at=NOW, header={"alg": "Ed25519"})).jkt == holder.jkt


def test_names_that_are_not_known_are_ignored() -> None:
    assert check(made(header={"kid": "mine"}, iss="me", ath="of no token presented"))


@pytest.mark.parametrize("method", ["GET", "post", "POST ", ""])
def test_method_must_be_that_of_the_request(method: str) -> None:
    assert refusal(made(method=method)) == "htm is not the method of this request"


@pytest.mark.parametrize(
    "uri",
    [
        "HTTPS://API.Example/v1/things",
        "https://api.example:443/v1/things",
        "https://api.example:/v1/things",
        "https://api.example:0443/v1/things",
        "https://api.example/v1/things?a=b",
        "https://api.example/v1/things?",
        "https://api.example/v1/things#part",
        "https://api.example/v1/%74hings",
        "https://api.example/v1/./other/../things",
        "https://api.example/../v1/things",
    ],
)
def test_uri_is_compared_normalised(uri: str) -> None:
    assert check(made(uri=uri))
    assert check(made(), uri=uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://api.example/v1/things",
        "https://api.example:8443/v1/things",
        "https://api.example/v1/things/",
        "https://api.example/v1/Things",
        "https://api.example//v1/things",
        "https://api.example/v1%2Fthings",
        "https://api.example./v1/things",
        "https://api.example.evil.example/v1/things",
        "https://xn--pi-eia.example/v1/things",
        "https://api.example",
        "https://[::1]/v1/things",
    ],
)
def test_other_uri_is_refused(uri: str) -> None:
    assert refusal(made(uri=uri)) == "htu is not the URI of this request"


@pytest.mark.parametrize(
    "uri",
    [
        "https://user@api.example/v1/things",
        "https://api.example:443@evil.example/v1/things",
        "https://\u0430pi.example/v1/things",
        "https://api.example/v1/th\u0131ngs",
        "https://%61pi.example/v1/things",
        "https:api.example/v1/things",
        "//api.example/v1/things",
        "/v1/things",
        "ftp://api.example/v1/things",
        "https:///v1/things",
        "https://api.example\\v1\\things",
        "https://api.example/v1/things\n",
        " https://api.example/v1/things",
        "https://api.example/v1/things\x00",
        "https://api.example/v1/%7",
        "https://api.example/v1/%zz",
        "https://api.example:99999999/v1/things",
        "https://[::1/v1/things",
        "https://api.example/" + "a" * 2_040,
        "\ud800",
        "",
    ],
)
def test_text_that_is_no_uri_of_a_request_is_refused(uri: str) -> None:
    assert refusal(made(uri=uri)) == "htu is not an http or https URI"
    assert refusal(made(), uri=uri) == "htu is not an http or https URI"


@pytest.mark.parametrize("value", [None, 1, True, ["POST"], {}])
@pytest.mark.parametrize("name", ["htm", "htu"])
def test_method_and_uri_must_be_text(name: str, value: Any) -> None:
    assert refusal(made(**{name: value})) == "htm and htu are required"


@pytest.mark.parametrize("seconds", [-60, 0, 60])
def test_proof_of_the_window_holds(seconds: int) -> None:
    assert check(made(at=NOW + timedelta(seconds=seconds)))


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.999_999])
def test_time_may_have_a_fraction(fraction: float) -> None:
    assert check(made(iat=int(NOW.timestamp()) + fraction))


@pytest.mark.parametrize("iat", [-60.5, 60.5, -61, 61, -86_400, 86_400])
def test_proof_outside_the_window_is_refused(iat: float) -> None:
    assert refusal(made(iat=NOW.timestamp() + iat)) == "iat is too far from the time of this service"


@pytest.mark.parametrize("iat", [10**18, 10**400, 1e300, -(10**18), 0, -1])
def test_time_of_any_size_is_compared(iat: float) -> None:
    assert refusal(made(iat=iat)) == "iat is too far from the time of this service"


@pytest.mark.parametrize("change", [str, bool, lambda iat: [iat], lambda iat: {"iat": iat}])
def test_time_must_be_a_number(change: Any) -> None:
    assert refusal(made(iat=change(int(NOW.timestamp())))) == "iat must be a number of seconds"


def test_time_is_required() -> None:
    assert refusal(made(iat=None)) == "iat must be a number of seconds"


@pytest.mark.parametrize("jti", [None, "", "a" * 257, 1, ["a"], True])
def test_id_must_be_a_text_of_bounded_length(jti: Any) -> None:
    assert refusal(made(jti=jti)) == "jti must have 1 to 256 characters"


@pytest.mark.parametrize("nonce", [1, True, "a" * 257, ["a"], {}])
def test_nonce_must_be_a_text_of_bounded_length(nonce: Any) -> None:
    assert refusal(made(nonce=nonce)) == "nonce must have at most 256 characters"


@pytest.mark.parametrize("ath", [None, "", "other", 1, ["x"], "\ud800", dpop.token_hash("another")])
def test_hash_must_be_that_of_the_presented_token(ath: Any) -> None:
    assert refusal(made(ath=ath), token="t") == "ath is not the hash of the presented token"


@pytest.mark.parametrize("typ", [None, "JWT", "DPoP+JWT", "application/dpop+jwt", "delegation+jwt", 1, []])
def test_type_must_be_that_of_a_proof(typ: Any) -> None:
    assert refusal(made(header={"typ": typ})) == "typ is not dpop+jwt"


@pytest.mark.parametrize(
    "alg",
    [None, "none", "None", "NONE", "", "HS256", "es256", "ES384", "ES256K", "RS256", "PS256", 1, [], {}],
)
def test_algorithm_must_be_listed(alg: Any) -> None:
    assert refusal(made(header={"alg": alg})) == "alg is none of ES256 EdDSA Ed25519"


@pytest.mark.parametrize("name", ["crit", "b64", "jku", "x5u", "x5c", "x5t", "x5t#S256"])
def test_header_brings_no_other_key_and_no_extension(name: str) -> None:
    assert refusal(made(header={name: ["exp"]})) == "the header has a member that is not accepted"


NOT_PUBLIC_OR_NOT_OURS: dict[str, dict[str, Any]] = {
    "private": {"d": "AA"},
    "private, empty": {"d": ""},
    "part of an RSA key": {"p": "AA"},
    "symmetric member": {"k": "AA"},
    "symmetric": {"kty": "oct", "k": "AA"},
    "other type": {"kty": "OKP"},
    "no type": {"kty": None},
    "other curve": {"crv": "P-384"},
    "secp256k1": {"crv": "secp256k1"},
    "Ed25519 under ES256": {"kty": "OKP", "crv": "Ed25519"},
    "not on the curve": {"x": b64url_encode(b"\x01" * 32)},
    "short": {"x": b64url_encode(b"\x01" * 31)},
    "long": {"x": b64url_encode(b"\x00" + b"\x01" * 32)},
    "not canonical": {"x": HOLDER.jwk["x"] + "="},
    "number": {"x": 1},
    "missing": {"y": None},
    "for encryption": {"use": "enc"},
    "to sign only": {"key_ops": ["sign"]},
    "operations as a text": {"key_ops": "verify"},
    "other algorithm": {"alg": "ES384"},
}


@pytest.mark.parametrize("name", NOT_PUBLIC_OR_NOT_OURS)
def test_key_must_be_public_and_of_the_algorithm(name: str) -> None:
    jwk: dict[str, Any] = {**HOLDER.jwk, **NOT_PUBLIC_OR_NOT_OURS[name]}
    jwk = {member: value for member, value in jwk.items() if value is not None}

    assert refusal(made(header={"jwk": jwk})) == "jwk is not a public key of this alg"


@pytest.mark.parametrize("jwk", [None, "x", 1, [], [HOLDER.jwk], True])
def test_key_must_be_an_object(jwk: Any) -> None:
    assert refusal(made(header={"jwk": jwk})) == "jwk is missing"


def test_key_with_purpose_verify_is_accepted() -> None:
    jwk = {**HOLDER.jwk, "use": "sig", "key_ops": ["verify"], "alg": "ES256", "kid": "k", "ext": True}

    assert check(made(header={"jwk": jwk})).jkt == HOLDER.jkt


def test_another_key_did_not_sign() -> None:
    assert refusal(made(header={"jwk": Holder().jwk})) == "the signature is not valid"


def test_hmac_under_the_public_key_is_no_signature() -> None:
    header, claims, _ = made(header={"alg": "HS256"}).split(".")
    secret = json.dumps(HOLDER.jwk).encode()
    mac = hmac.digest(secret, f"{header}.{claims}".encode(), hashlib.sha256)

    assert refusal(f"{header}.{claims}.{segment(mac)}") == "alg is none of ES256 EdDSA Ed25519"


def test_rsa_is_not_accepted_of_any_size() -> None:
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505  (the attack)
    numbers = key.public_key().public_numbers()
    jwk = {"kty": "RSA", "e": "AQAB", "n": b64url_encode(numbers.n.to_bytes(128, "big"))}
    header, claims, _ = made(header={"alg": "RS256", "jwk": jwk}).split(".")
    signature = key.sign(f"{header}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())

    assert refusal(f"{header}.{claims}.{segment(signature)}") == "alg is none of ES256 EdDSA Ed25519"


def test_signature_must_have_the_form_of_jws() -> None:
    header, claims, _ = made().split(".")
    message = f"{header}.{claims}".encode()
    raw = HOLDER.sign(message)
    assert isinstance(HOLDER.key, ec.EllipticCurvePrivateKey)
    forms = [
        HOLDER.key.sign(message, ec.ECDSA(hashes.SHA256())),  # DER
        raw + b"\x00",
        raw[:-1],
        bytes(64),
        raw[:32] + bytes(32),
        bytes(32) + raw[32:],
        P256_ORDER.to_bytes(32, "big") * 2,
        b"\xff" * 64,
        b"",
    ]

    for form in forms:
        assert refusal(f"{header}.{claims}.{segment(form)}") == "the signature is not valid"


@pytest.mark.parametrize("changed", [0, 1])
def test_changed_segment_is_refused(changed: int) -> None:
    parts, others = made(jti="a").split("."), made(jti="b", header={"kid": "b"}).split(".")
    parts[changed] = others[changed]

    assert refusal(".".join(parts)) == "the signature is not valid"


MALFORMED = {
    "empty": "",
    "two segments": "a.b",
    "five segments": "a.b.c.d.e",
    "two proofs, as of two headers": f"{made()},{made()}",
    "not ASCII": made().replace(".", "é.", 1),
    "lone surrogate": "\ud800.\ud800.\ud800",
    "padded": made().replace(".", "=.", 1),
    "white space": made().replace(".", " .", 1),
    "a megabyte": "a" * 1_000_000,
    "long header": made(header={"kid": "a" * 4_096}),
}
HEADERS = {
    "not JSON": b"{",
    "not UTF-8": b"\xff{}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "a list": b"[]",
    "null": b"null",
    "not a number": b'{"alg": NaN}',
    "infinite": b'{"alg": Infinity}',
    "double name": b'{"alg": "ES256", "alg": "none"}',
    "double name within": b'{"jwk": {"kty": "EC", "kty": "oct"}}',
    "nested deeply": b"[" * 1_500 + b"]" * 1_500,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_text_that_is_not_one_jws_is_refused(name: str) -> None:
    assert refusal(MALFORMED[name]) == "the proof is not one compact JWS"


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("name", HEADERS)
def test_segment_that_is_not_strict_json_is_refused(name: str, position: int) -> None:
    parts = made().split(".")
    parts[position] = segment(HEADERS[name])

    assert refusal(".".join(parts)) == "the proof is not one compact JWS"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
HEADER_NAMES = st.sampled_from(["typ", "alg", "jwk", "crit", "kid"])
CLAIM_NAMES = st.sampled_from(["jti", "htm", "htu", "iat", "ath", "nonce"])


@given(st.dictionaries(HEADER_NAMES, JSON, max_size=2), st.dictionaries(CLAIM_NAMES, JSON, max_size=2))
def test_any_json_anywhere_is_accepted_or_refused(header: dict[str, Any], claims: dict[str, Any]) -> None:
    text = made(header=header, token="t", **claims)

    try:
        check(text, token="t")
    except ProofRejected:
        return
