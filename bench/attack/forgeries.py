"""Forged delegation tokens: other spellings, signatures, keys, headers and claims than a genuine one has."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.keys.adaptors import HsmECPrivateKey
from compliance.keys.registry import private_key
from delegation.token_keys import keys as token_keys

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
JsonObject = dict[str, Any]
# Claims that no token may have; None leaves the claim out.
BAD_CLAIMS: dict[str, tuple[Any, ...]] = {
    "exp": (0, 1, None, "9999999999", 1e12, True, -1, 10**20, [9_999_999_999], {}),
    "nbf": (9_999_999_999, None, "0", True, 0.5, -1, []), "iat": (None, "0", True, 1.5, -1, {}),
    "iss": (None, "", "https://evil.example", 1, ["x"], "https://evil.example/\u0000", {}),
    "env": (None, "", "prod", 1, ["live"], "LIVE", "live "),
    "sub": (None, "", 1, ["a"], {}, "a\u0000b", "a\u202eb", "x" * 257),
    "sub_type": (None, "", "root", 1, "HUMAN", ["human"]), "agent_id": (None, "", "x", 1, [], "\u0661" * 36),
    "jti": (None, "", "x", 1), "scope": (None, 1, ["read"], {}), "aud": (1, ["a"], {}, True),
    "cert_serial": (1, ["a"], {}), "via": ("x", [1], ["x"], {}, 1),
    "act": (1, "x", [], {}, {"sub": 1, "sub_type": "agent"}, {"sub": "a"}, True),
}  # fmt: skip


def forgeries(genuine: str, environment: Environment) -> Iterator[tuple[str, str]]:
    """Tokens that must not count, each with its name; made from a genuine one of the environment."""
    header_text, payload_text, signature_text = genuine.split(".")
    header, payload = (json.loads(_decoded(text)) for text in (header_text, payload_text))
    signature = _decoded(signature_text)
    yield from _altered_texts(genuine)
    yield from _other_signatures(header_text, payload_text, signature)
    own = ec.generate_private_key(ec.SECP256R1())
    yield from _other_keys(header, payload, own, _known_key(environment))
    yield from _headers(header, payload, own)
    yield from _genuinely_signed(header, payload, environment)


def _altered_texts(genuine: str) -> Iterator[tuple[str, str]]:
    """The genuine octets, spelled otherwise, and pieces of them."""
    parts = genuine.split(".")
    for index in range(3):
        for name, text in (
            ("padding", parts[index] + "="), ("more padding", parts[index] + "=="),
            ("trailing bits", with_trailing_bits(parts[index])), ("a space", parts[index] + " "),
            ("a line break", parts[index] + "\n"),
            ("plain base64", base64.b64encode(_decoded(parts[index])).decode()), ("nothing", ""),
            ("twice", parts[index] * 2), ("a foreign digit", parts[index][:-1] + "\uff21"),
        ):  # fmt: skip
            changed = [*parts[:index], text, *parts[index + 1 :]]
            if changed != parts:
                yield f"segment {index + 1} with {name}", ".".join(changed)
    for name, text in (
        ("a dot more", genuine + "."), ("no signature", ".".join(parts[:2])), ("an empty one", "."),
        ("two dots", ".."), ("a JWE's parts", genuine + ".a.b"), ("a prefix", "Bearer " + genuine),
        ("the JSON form", json.dumps({"protected": parts[0], "payload": parts[1], "signature": parts[2]})),
        ("swapped segments", f"{parts[1]}.{parts[0]}.{parts[2]}"),
        ("very long", parts[0] + "." + "A" * 20_000 + "." + parts[2]),
        ("a NUL escaped", genuine[:-1] + "%00"),
    ):  # fmt: skip
        yield name, text


def _other_signatures(header: str, payload: str, signature: bytes) -> Iterator[tuple[str, str]]:
    """The genuine header and payload under another signature, the malleable one among them."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")

    def raw(first: int, second: int) -> bytes:
        return first.to_bytes(32, "big") + second.to_bytes(32, "big")

    for name, octets in (
        ("the other s", raw(r, ORDER - s)), ("r and s swapped", raw(s, r)), ("zeros", bytes(64)),
        ("r = 0", raw(0, s)), ("s = 0", raw(r, 0)), ("r = n", raw(ORDER, s)), ("s = n", raw(r, ORDER)),
        ("r + n", raw((r + ORDER) % (1 << 256), s)), ("one", raw(1, 1)),
        ("in DER", encode_dss_signature(r, s)), ("a zero before", b"\0" + signature),
        ("a zero behind", signature + b"\0"), ("short", signature[:-1]), ("ones", b"\xff" * 64),
    ):  # fmt: skip
        yield f"signature: {name}", f"{header}.{payload}.{_encoded(octets)}"


def _other_keys(
    header: JsonObject,
    payload: JsonObject,
    own: ec.EllipticCurvePrivateKey,
    published: ec.EllipticCurvePublicKey,
) -> Iterator[tuple[str, str]]:
    """`none`, HMAC with what is public, another curve, another key under a known or an odd kid."""
    pem = published.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    der = published.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    point = published.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    for algorithm in (
        "none", "None", "NONE", "nOnE", "", "HS256", "HS512", "RS256", "PS256", "ES384", "ES256K", "EdDSA",
    ):  # fmt: skip
        head = {**header, "alg": algorithm}
        yield f"alg {algorithm}: no signature", _token(head, payload, b"")
        yield f"alg {algorithm}: own key", _signed(head, payload, own)
    for name, secret in (
        ("PEM", pem), ("stripped PEM", pem.strip()), ("DER", der), ("point", point), ("empty", b""),
    ):  # fmt: skip
        for algorithm in ("HS256", "ES256"):
            head = {**header, "alg": algorithm}
            mac = hmac.new(secret, _signing_input(head, payload), hashlib.sha256).digest()
            yield f"HMAC: {algorithm} with the public key as {name}", _token(head, payload, mac)
            yield f"HMAC: {algorithm} with {name}, doubled", _token(head, payload, mac * 2)
    larger = ec.generate_private_key(ec.SECP384R1())
    r, s = decode_dss_signature(larger.sign(_signing_input(header, payload), ec.ECDSA(SHA384())))
    yield "another curve", _token(header, payload, r.to_bytes(48, "big") + s.to_bytes(48, "big"))
    for kid in (
        header["kid"], header["kid"].upper(), "", "x", "../../dev/null", "' OR 1=1 --", "\u0000", "a" * 5_000,
        1, None, True, [header["kid"]], {"kid": header["kid"]},
    ):  # fmt: skip
        yield f"kid: {str(kid)[:40]!r} and own key", _signed({**header, "kid": kid}, payload, own)


def _headers(
    header: JsonObject, payload: JsonObject, own: ec.EllipticCurvePrivateKey
) -> Iterator[tuple[str, str]]:
    """Keys brought along, extensions, other types, names that stand twice; nothing is ever fetched."""
    numbers = own.public_key().public_numbers()
    jwk = {
        "kty": "EC", "crv": "P-256", "x": _encoded(numbers.x.to_bytes(32, "big")),
        "y": _encoded(numbers.y.to_bytes(32, "big")),
    }  # fmt: skip
    for name, value in (
        ("jwk", jwk), ("jku", "http://127.0.0.1:9/keys"), ("x5u", "http://127.0.0.1:9/cert"),
        ("x5c", ["MII"]), ("crit", ["exp"]), ("crit", []), ("crit", ["b64"]), ("b64", False), ("zip", "DEF"),
        ("x5t", "x"), ("typ", "JWT"), ("typ", None), ("typ", "delegation+JWT"),
        ("typ", "application/delegation+jwt"), ("cty", "JWT"), ("enc", "A256GCM"), ("alg", ["ES256"]),
        ("alg", None), ("more", 1),
    ):  # fmt: skip
        yield f"header {name}: own key", _signed({**header, name: value}, payload, own)
        yield f"header {name}: own key, no kid", _signed({"alg": "ES256", name: value}, payload, own)
    for name, text in (
        ("alg", '{"alg":"none","alg":"ES256","typ":"delegation+jwt","kid":%s}'),
        ("kid", '{"alg":"ES256","typ":"delegation+jwt","kid":"x","kid":%s}'),
        ("alg escaped", '{"alg":"ES256","\\u0061lg":"none","typ":"delegation+jwt","kid":%s}'),
        ("array", '["alg","ES256",%s]'),
        ("NaN", '{"alg":"ES256","typ":NaN,"kid":%s}'),
        ("BOM", '\ufeff{"alg":"ES256","typ":"delegation+jwt","kid":%s}'),
        ("deep", '{"alg":"ES256","typ":' + "[" * 3_000 + "]" * 3_000 + ',"kid":%s}'),
    ):
        head = (text % json.dumps(header["kid"])).encode()
        body = _encoded(json.dumps(payload).encode())
        signed = f"{_encoded(head)}.{body}".encode()
        yield f"header, {name} twice or odd: own key", f"{signed.decode()}.{_encoded(_es256(own, signed))}"


def _genuinely_signed(
    header: JsonObject, payload: JsonObject, environment: Environment
) -> Iterator[tuple[str, str]]:
    """Under the genuine key: past and future, another environment, claims that are none."""
    with environments.use(environment):
        key = private_key(environment, token_keys.signing_key().uri)
    if not isinstance(key, HsmECPrivateKey):
        raise TypeError("the token key is no EC key")
    other = next(one.value for one in Environment if one is not environment)
    bad = [(name, value) for name, values in BAD_CLAIMS.items() for value in values]
    cases = [*bad, ("env", other), ("exp", int(time.time()) - 1), ("nbf", int(time.time()) + 3_600)]
    for name, value in cases:
        claims = {**payload, name: value}
        if value is None:
            del claims[name]
        yield f"claim {name}: {str(value)[:40]!r}", _signed(header, claims, key)
    deep: JsonObject = {"sub": "a", "sub_type": "agent"}
    for _ in range(8):
        deep = {"sub": "a", "sub_type": "agent", "act": deep}
    yield "claim act: nine actors", _signed(header, {**payload, "act": deep}, key)
    text = json.dumps(payload)
    for name, odd in (
        ("exp twice", text[:-1] + ',"exp":9999999999}'),
        ("sub twice", text[:-1] + ',"\\u0073ub":"user:mallory"}'), ("an array", f"[{text}]"),
        ("a string", '"x"'), ("nothing", ""), ("no UTF-8", "\udcff"),
    ):  # fmt: skip
        signed = f"{_encoded(json.dumps(header).encode())}.{_encoded(odd.encode('utf-8', 'surrogateescape'))}"
        yield f"payload: {name}", f"{signed}.{_encoded(_es256(key, signed.encode()))}"


def _known_key(environment: Environment) -> ec.EllipticCurvePublicKey:
    with environments.use(environment):
        jwk = token_keys.signing_key().public_jwk
    x, y = (int.from_bytes(_decoded(jwk[name]), "big") for name in ("x", "y"))
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def with_trailing_bits(text: str) -> str:
    """The same octets, the last character's unused bits set; the text itself where it has none."""
    bare = text.rstrip("=")
    plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    alphabet = plain + ("-_" if "=" not in text else "+/")
    if len(bare) % 4 in (0, 1):
        return text
    return bare[:-1] + alphabet[alphabet.index(bare[-1]) | 1] + text[len(bare) :]


def _signed(header: JsonObject, payload: JsonObject, key: ec.EllipticCurvePrivateKey) -> str:
    return _token(header, payload, _es256(key, _signing_input(header, payload)))


def _es256(key: ec.EllipticCurvePrivateKey, octets: bytes) -> bytes:
    r, s = decode_dss_signature(key.sign(octets, ec.ECDSA(SHA256())))
    return r.to_bytes(32, "big") + min(s, ORDER - s).to_bytes(32, "big")


def _signing_input(header: JsonObject, payload: JsonObject) -> bytes:
    return f"{_encoded(json.dumps(header).encode())}.{_encoded(json.dumps(payload).encode())}".encode()


def _token(header: JsonObject, payload: JsonObject, signature: bytes) -> str:
    return f"{_signing_input(header, payload).decode()}.{_encoded(signature)}"


def _encoded(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
