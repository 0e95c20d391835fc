"""ID tokens that are not what they seem, and the reason for which each is refused."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from compliance.core.encodings import b64url_encode
from delegation.issuers import id_tokens, key_sets
from delegation.issuers.errors import IdTokenFault, IdTokenRefused
from delegation.issuers.id_tokens import IssuerTrust, VerifiedHuman
from delegation.issuers.tests.providers import EC_KEY, OTHER_KEY, RSA_KEY, public
from delegation.jose.tokens import ChainActor, ChainActorType, SubjectIdentifier

ISSUER, AUDIENCE = "https://login.example.com", "research-app"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
MOMENT = int(NOW.timestamp())
TRUST = IssuerTrust(
    issuer=ISSUER,
    audiences=frozenset({AUDIENCE, "desk"}),
    algorithms=frozenset({"RS256", "ES256"}),
    subject_claim="email",
    required_claims={},
    max_age=timedelta(hours=1),
)
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "248289761001",
    "aud": AUDIENCE,
    "iat": MOMENT,
    "exp": MOMENT + 300,
    "email": "alice@example.com",
    "email_verified": True,
}
NO_TIMES: tuple[Any, ...] = (..., "1", True, -1, 10**20, [], {})
RS256 = {"alg": "RS256", "kid": "rsa"}
KEYS = {"keys": [public(RSA_KEY, "rsa"), public(EC_KEY, "ec")]}


def claims(**changed: Any) -> dict[str, Any]:
    return {name: value for name, value in {**CLAIMS, **changed}.items() if value is not ...}


def signed(found: dict[str, Any] | None = None, key: Any = RSA_KEY, alg: str = "RS256", **header: Any) -> str:
    named = {"kid": "ec" if isinstance(key, ec.EllipticCurvePrivateKey) else "rsa", **header}
    named = {name: value for name, value in named.items() if value is not ...}
    return jwt.encode(claims() if found is None else found, key, alg, headers=named)


def verify(token: str, keys: Any = None, **trust: Any) -> VerifiedHuman:
    found = key_sets.read(KEYS if keys is None else {"keys": keys})
    demanded = IssuerTrust(**{**vars(TRUST), **trust})
    return id_tokens.verify(id_tokens.parse(token)[0], trust=demanded, keys=lambda _: found, now=NOW)


def fault_of(token: str, keys: Any = None, **trust: Any) -> IdTokenFault:
    with pytest.raises(IdTokenRefused) as refused:
        verify(token, keys, **trust)
    return refused.value.fault


def raw(header: str | dict[str, Any], payload: str | dict[str, Any], key: Any = RSA_KEY) -> str:
    """A token signed by RS256, whatever stands in it."""
    texts = [part if isinstance(part, str) else json.dumps(part) for part in (header, payload)]
    text = ".".join(b64url_encode(part.encode()) for part in texts)
    signature = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(text.encode(), key)
    return f"{text}.{b64url_encode(signature)}"


def test_a_sound_token_names_its_human() -> None:
    assert verify(signed()) == VerifiedHuman(
        ChainActor("alice@example.com", ChainActorType.HUMAN), SubjectIdentifier(ISSUER, "248289761001")
    )


@pytest.mark.parametrize(
    "token",
    [
        lambda: signed(key=EC_KEY, alg="ES256"),
        lambda: signed(kid=...),
        lambda: signed(typ=...),
        lambda: signed(typ="jwt"),
        lambda: signed(typ="application/JWT"),
        lambda: signed(x5t="abc", unknown=1),
        lambda: signed(claims(aud=[AUDIENCE])),
        lambda: signed(claims(aud=[AUDIENCE, "desk"], azp="desk")),
        lambda: signed(claims(azp=AUDIENCE)),
        lambda: signed(claims(exp=MOMENT - 59)),
        lambda: signed(claims(iat=MOMENT + 60)),
        lambda: signed(claims(nbf=MOMENT + 60)),
        lambda: signed(claims(iat=MOMENT - 3_659)),
        lambda: signed(claims(iat=MOMENT + 0.5, nbf=MOMENT + 0.25, exp=MOMENT + 0.75)),
        lambda: signed(claims(nonce="x", at_hash="y", amr=["pwd"])),
    ],
)
def test_what_the_standards_leave_open_is_accepted(token: Callable[[], str]) -> None:
    assert verify(token()).actor.sub == "alice@example.com"


@pytest.mark.parametrize(
    ("token", "fault"),
    [
        (lambda: "", "malformed"),
        (lambda: "a.b", "malformed"),
        (lambda: signed() + ".x", "malformed"),
        (lambda: signed()[:-1] + "=", "malformed"),
        (lambda: signed(claims(padding="x" * 16_384)), "malformed"),
        (lambda: raw('{"alg":"none","alg":"RS256","kid":"rsa"}', CLAIMS), "malformed"),
        (lambda: raw(RS256, '{"iss":"https://evil.example","iss":"https://b.example"}'), "malformed"),
        (lambda: raw({"alg": "RS256"}, '{"exp":NaN}'), "malformed"),
        (lambda: raw('["alg"]', CLAIMS), "malformed"),
        (lambda: raw({"alg": "RS256", "kid": 1}, CLAIMS), "malformed"),
        (lambda: raw('{"alg":"RS256","x":' + "[" * 3_000 + "]" * 3_000 + "}", CLAIMS), "malformed"),
        (lambda: signed(alg="none", key=None), "unsupported_algorithm"),
        (lambda: signed(alg="RS384"), "unsupported_algorithm"),
        (lambda: raw({"alg": "rs256", "kid": "rsa"}, CLAIMS), "unsupported_algorithm"),
        (lambda: raw({"alg": ["RS256"], "kid": "rsa"}, CLAIMS), "unsupported_algorithm"),
        (lambda: raw({"kid": "rsa"}, CLAIMS), "unsupported_algorithm"),
        *((lambda name=name, value=value: signed(**{name: value}), "unsupported_header") for name, value in (
            ("jku", "https://evil.example/keys"), ("jwk", public(OTHER_KEY, "rsa")), ("x5u", "https://evil.example"),
            ("x5c", ["MII"]), ("zip", "DEF"), ("cty", "JWT"), ("enc", "A256GCM"),
        )),
        (lambda: raw({"alg": "RS256", "kid": "rsa", "crit": ["exp"]}, CLAIMS), "unsupported_header"),
        (lambda: raw({"alg": "RS256", "kid": "rsa", "b64": False}, CLAIMS), "unsupported_header"),
        *((lambda kind=kind: signed(typ=kind), "unsupported_type") for kind in (
            "at+jwt", "logout+jwt", "delegation+jwt", "dpop+jwt", "secevent+jwt",
        )),
        (lambda: raw({"alg": "RS256", "kid": "rsa", "typ": None}, CLAIMS), "unsupported_type"),
        (lambda: signed(kid="other"), "unknown_key"),
        (lambda: signed(kid="ec"), "unknown_key"),
        (lambda: signed(key=EC_KEY, alg="ES256", kid="rsa"), "unknown_key"),
        (lambda: signed(key=OTHER_KEY), "invalid_signature"),
        (lambda: signed(key=ec.generate_private_key(ec.SECP256R1()), alg="ES256"), "invalid_signature"),
        (lambda: signed().rpartition(".")[0] + ".", "invalid_signature"),
        (lambda: signed(claims(iss="https://login.example.com/")), "untrusted_issuer"),
        (lambda: signed(claims(events={"https://schemas.openid.net/x": {}})), "not_an_id_token"),
        (lambda: signed(claims(cnf={"jkt": "x"})), "not_an_id_token"),
        *((lambda aud=aud: signed(claims(aud=aud)), "wrong_audience") for aud in (
            "other", ..., [], ["other"], [AUDIENCE, "other"], [AUDIENCE, 1], {"a": 1}, f" {AUDIENCE}",
            AUDIENCE.upper(), [AUDIENCE] * 21,
        )),
        (lambda: signed(claims(aud=[AUDIENCE, "desk"])), "wrong_authorized_party"),
        (lambda: signed(claims(azp="other")), "wrong_authorized_party"),
        (lambda: signed(claims(azp=[AUDIENCE])), "wrong_authorized_party"),
        (lambda: signed(claims(exp=MOMENT - 60)), "expired"),
        (lambda: signed(claims(iat=MOMENT + 61)), "not_yet_valid"),
        (lambda: signed(claims(nbf=MOMENT + 61)), "not_yet_valid"),
        (lambda: signed(claims(iat=MOMENT - 3_660)), "too_old"),
        *((lambda name=name, value=value: signed(claims(**{name: value})), "malformed")
          for name in ("exp", "iat") for value in NO_TIMES),
        (lambda: signed(claims(nbf="0")), "malformed"),
        *((lambda sub=sub: raw(RS256, {**CLAIMS, "sub": sub}), "invalid_subject") for sub in (
            None, "", 1, "x" * 256, "Zo\u00eb", "a\nb", ["a"],
        )),
        (lambda: signed(claims(email=...)), "invalid_subject"),
        (lambda: signed(claims(email=["a"])), "invalid_subject"),
        *((lambda value=value: signed(claims(email_verified=value)), "email_not_verified") for value in (
            ..., False, "true", 1,
        )),
    ],
)  # fmt: skip
def test_each_fault_has_its_name(token: Callable[[], str], fault: str) -> None:
    assert fault_of(token()) == IdTokenFault(fault)


def test_a_public_key_is_no_secret_of_an_hmac() -> None:
    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, json.dumps(public(RSA_KEY, "rsa")).encode()):
        text = ".".join(
            b64url_encode(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "rsa"}, CLAIMS)
        )
        forged = f"{text}.{b64url_encode(hmac.digest(secret, text.encode(), hashlib.sha256))}"
        # Even a tenant that managed to allow it finds no key for it.
        assert fault_of(forged) is IdTokenFault.UNSUPPORTED_ALGORITHM
        assert fault_of(forged, algorithms=frozenset({"HS256"})) is IdTokenFault.UNSUPPORTED_ALGORITHM


def test_two_keys_of_one_name_verify_nothing() -> None:
    twice = [public(RSA_KEY, "rsa"), public(OTHER_KEY, "rsa")]

    assert fault_of(signed(), twice) is IdTokenFault.AMBIGUOUS_KEY


def test_without_a_name_there_must_be_no_choice() -> None:
    assert fault_of(signed(kid=...), [public(RSA_KEY, "a"), public(OTHER_KEY, "b")]) is (
        IdTokenFault.AMBIGUOUS_KEY
    )
    assert verify(signed(kid=...), [public(RSA_KEY, None)])


@pytest.mark.parametrize(
    ("value", "is_permitted"),
    [
        ("traders", True),
        (["x", "traders"], True),
        ("x", False),
        ([], False),
        (..., False),
        ([["traders"]], False),
        ({"traders": 1}, False),
        ("traders ", False),
    ],
)
def test_required_claims(value: Any, is_permitted: bool) -> None:
    token, required = signed(claims(groups=value)), {"groups": ["traders", "desk"]}

    if is_permitted:
        assert verify(token, required_claims=required)
    else:
        assert fault_of(token, required_claims=required) is IdTokenFault.CLAIM_NOT_PERMITTED


def test_the_subject_may_be_another_claim() -> None:
    assert verify(signed(), subject_claim="sub").actor.sub == "248289761001"
    assert verify(signed(claims(email_verified=False)), subject_claim="sub")


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()])
def test_a_curve_serves_its_own_algorithm(curve: ec.EllipticCurve) -> None:
    key = ec.generate_private_key(curve)

    (found,) = key_sets.read({"keys": [public(key, "x")]})

    assert found.algorithms == {"ES384" if curve.name == "secp384r1" else "ES512"}


def test_ed25519_verifies() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    x = b64url_encode(key.public_key().public_bytes_raw())

    token = signed(key=key, alg="EdDSA", kid=...)

    assert verify(token, [{"kty": "OKP", "crv": "Ed25519", "x": x}], algorithms=frozenset({"EdDSA"}))


@pytest.mark.parametrize(
    "jwk",
    [
        {},
        "x",
        {"kty": "oct", "k": "c2VjcmV0"},
        {**public(RSA_KEY, "rsa"), "d": "AQAB"},
        {**public(RSA_KEY, "rsa"), "use": "enc"},
        {**public(RSA_KEY, "rsa"), "key_ops": ["encrypt"]},
        {**public(RSA_KEY, "rsa"), "key_ops": "verify"},
        {**public(RSA_KEY, "rsa"), "kid": 1},
        {**public(RSA_KEY, "rsa"), "alg": "HS256"},
        {**public(RSA_KEY, "rsa"), "alg": 1},
        {**public(RSA_KEY, "rsa"), "e": "AQ"},
        {**public(RSA_KEY, "rsa"), "n": 1},
        {**public(EC_KEY, "ec"), "crv": "P-521"},
        {**public(EC_KEY, "ec"), "crv": "secp256k1"},
        {**public(EC_KEY, "ec"), "crv": ["P-256"]},
        {**public(EC_KEY, "ec"), "x": "AAAA"},
        {"kty": "OKP", "crv": "X25519", "x": base64.urlsafe_b64encode(bytes(32)).decode().rstrip("=")},
        public(rsa.generate_private_key(public_exponent=65537, key_size=1024), "small"),  # noqa: S505
    ],
)
def test_other_keys_are_left_out(jwk: Any) -> None:
    with pytest.raises(key_sets.InvalidKeySet):
        key_sets.read({"keys": [jwk]})

    assert len(key_sets.read({"keys": [jwk, public(EC_KEY, "good")]})) == 1


@pytest.mark.parametrize("document", [None, [], {}, {"keys": None}, {"keys": {}}, {"keys": [{}] * 101}, "x"])
def test_what_is_no_key_set_is_refused(document: Any) -> None:
    with pytest.raises(key_sets.InvalidKeySet):
        key_sets.read(document)
