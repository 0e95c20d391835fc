"""Messages as detached JWS (RFC 7797): what others can check, and what the service refuses."""

import base64
import json
from typing import Any

import jwt
import pytest
import rfc8785
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jws as joserfc_jws
from joserfc.jwk import RSAKey

from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.pki import jws as jose
from certificates.pki.serials import format_serial, new_serial
from certificates.public import messages
from certificates.public.messages import key_id, sign_octets
from certificates.tests.factories import make_certificate, revoke_certificate
from compliance.core.encodings import b64url_decode, b64url_encode
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from events.tests.conftest import World, shared_world

PAYLOAD: dict[str, Any] = {"order": 7, "note": "é.", "amount": 1.5}
BROKER = "https://broker.example"


world = shared_world


def sign(world: World, **more: Any) -> dict[str, Any]:
    answer = world.api.post(f"/v1/agents/{world.agent.id}/sign", {"payload": PAYLOAD, **more})
    assert answer.status_code == 200, answer.content
    data: dict[str, Any] = answer.json()["data"]
    return data


def verdict(api: ApiClient, jws: str, payload: Any = PAYLOAD, **more: Any) -> str:
    answer = api.post("/v1/verify/message", {"payload": payload, "jws": jws, **more})
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.json()['error']}"
    data = answer.json()["data"]
    return "valid" if data["valid"] else str(data["reason"])


def leaf_of(world: World) -> x509.Certificate:
    row = Certificate.objects.get(agent=world.agent)
    return x509.load_pem_x509_certificate(row.certificate_pem.encode())


def header_of(jws: str) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(b64url_decode(jws.split(".", maxsplit=1)[0]))
    return header


def with_header(jws: str, **changes: Any) -> str:
    header = {name: value for name, value in {**header_of(jws), **changes}.items() if value is not None}
    return b64url_encode(rfc8785.dumps(header)) + jws[jws.index(".") :]


def test_jws_is_made_only_where_it_is_asked_for(world: World) -> None:
    assert "jws" not in sign(world)
    assert sign(world, format="jws")["jws"].count(".") == 2
    assert sign(world, audience=BROKER)["jws"].count(".") == 2


def test_jws_names_its_key_and_certificate(world: World) -> None:
    jws = sign(world, format="jws", audience=BROKER)["jws"]
    leaf = leaf_of(world)

    assert header_of(jws) == {
        "alg": "RS256",
        "b64": False,
        "crit": ["b64"],
        "kid": f"{world.agent.did}#{leaf.serial_number:040x}",
        "typ": "agent-message+jws",
        "x5t#S256": b64url_encode(leaf.fingerprint(hashes.SHA256())),
        "aud": BROKER,
    }


@pytest.mark.parametrize("audience", [{}, {"audience": BROKER}])
def test_others_can_check_a_jws(world: World, audience: dict[str, str]) -> None:
    """PyJWT, joserfc as the documents say, and `cryptography` over the octets of RFC 7797 §3."""
    jws = sign(world, format="jws", **audience)["jws"]
    protected, _, signature = jws.split(".")
    message, key = rfc8785.dumps(PAYLOAD), leaf_of(world).public_key()
    assert isinstance(key, rsa.RSAPublicKey)

    registry = joserfc_jws.JWSRegistry(algorithms=["RS256"], strict_check_header=False)
    numbers = RSAKey.import_key(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    theirs = joserfc_jws.deserialize_compact(jws, numbers, registry=registry, payload=message)
    assert theirs.headers().get("aud") == audience.get("audience")
    found = jwt.PyJWS().decode_complete(jws, key, algorithms=["RS256"], detached_payload=message)
    key.verify(
        base64.urlsafe_b64decode(signature + "=="),
        protected.encode() + b"." + message,
        padding.PKCS1v15(),
        hashes.SHA256(),
    )

    assert found["payload"] == message


def test_service_checks_a_jws(world: World, api: ApiClient) -> None:
    jws = sign(world, format="jws")["jws"]

    data = api.post("/v1/verify/message", {"payload": PAYLOAD, "jws": jws}).json()["data"]

    assert (data["valid"], data["agent_id"]) == (True, str(world.agent.id))
    assert verdict(api, jws, {**PAYLOAD, "order": 8}) == "invalid_signature"


def test_raw_and_detached_signature_are_not_interchangeable(world: World, api: ApiClient) -> None:
    signed = sign(world, format="jws")
    raw = b64url_encode(base64.b64decode(signed["signature"]))

    assert verdict(api, signed["jws"].rpartition(".")[0] + "." + raw) == "invalid_signature"


@pytest.mark.parametrize(
    ("signed_for", "stated", "expected"),
    [
        (None, None, "valid"),
        (BROKER, BROKER, "valid"),
        (BROKER, None, "invalid_audience"),
        (None, BROKER, "invalid_audience"),
        (BROKER, "https://other.example", "invalid_audience"),
        (BROKER, BROKER + "/", "invalid_audience"),
        (BROKER, BROKER.upper(), "invalid_audience"),
    ],
)
def test_message_counts_only_for_its_audience(
    world: World, api: ApiClient, signed_for: str | None, stated: str | None, expected: str
) -> None:
    jws = sign(world, format="jws", **({"audience": signed_for} if signed_for else {}))["jws"]

    assert verdict(api, jws, **({"audience": stated} if stated else {})) == expected


def test_raw_signature_has_no_audience(world: World, api: ApiClient) -> None:
    signed = sign(world)
    body = {name: signed[name] for name in ("signature", "certificate_serial")}

    data = api.post("/v1/verify/message", {"payload": PAYLOAD, **body, "audience": BROKER}).json()["data"]

    assert (data["valid"], data["reason"]) == (False, "invalid_audience")


def test_jws_of_a_revoked_certificate_is_invalid(world: World, api: ApiClient) -> None:
    jws = sign(world, format="jws")["jws"]
    revoke_certificate(Certificate.objects.get(agent=world.agent))

    assert verdict(api, jws) == "certificate_revoked"


@pytest.mark.parametrize(
    "changes",
    [
        {"alg": "none"},
        {"alg": "PS256"},
        {"alg": "HS256"},
        {"typ": "JWT"},
        {"typ": None},
        {"aud": BROKER},
        {"b64": True},
        {"b64": None, "crit": None},
        {"crit": ["b64", "exp"]},
        {"jku": "https://evil.example/keys"},
        {"jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}},
        {"x5u": "https://evil.example/leaf"},
        {"x5c": ["AAAA"]},
        {"x5t#S256": None},
        {"x5t#S256": "A" * 43},
    ],
)
def test_no_other_header_is_accepted(world: World, api: ApiClient, changes: dict[str, Any]) -> None:
    jws = sign(world, format="jws")["jws"]

    assert verdict(api, with_header(jws, **changes)) == "invalid_signature"


def test_kid_of_another_agent_does_not_verify(world: World, api: ApiClient) -> None:
    jws = sign(world, format="jws")["jws"]
    other = make_certificate(make_agent(world.tenant))
    swapped = f"{world.agent.did}#{other.serial_number}"

    assert verdict(api, with_header(jws, kid=key_id(other))) == "invalid_signature"
    assert verdict(api, with_header(jws, kid=swapped)) == "invalid_signature"
    unknown = f"{world.agent.did}#{format_serial(new_serial(Environment.LIVE))}"
    assert verdict(api, with_header(jws, kid=unknown)) == "404 Certificate not found"


def test_signature_has_one_spelling(world: World, api: ApiClient) -> None:
    jws = sign(world, format="jws")["jws"]
    protected, _, signature = jws.split(".")
    spaced = b64url_encode(b" " + b64url_decode(protected))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet[alphabet.index(signature[-1]) + 1]

    assert verdict(api, f"{spaced}..{signature}") == "invalid_signature"
    for other in (jws + "=", jws + "\n", f"{protected}=..{signature}", jws[:-1] + last):
        assert verdict(api, other).startswith("400"), other


@pytest.mark.parametrize(
    "jws",
    [
        "x",
        "..",
        "a..b",
        "a.b.c.d",
        ".." + "A" * 342,
        b64url_encode(b"[]") + "..AAAA",
        b64url_encode(b"{}") + "..AAAA",
        b64url_encode(b'{"kid": 5}') + "..AAAA",
        b64url_encode(b'{"kid": null}') + "..AAAA",
        b64url_encode(b'{"kid": "x", "aud": ["x"]}') + "..AAAA",
        b64url_encode(b"\xff\xfe{") + "..AAAA",
        b64url_encode(b"[" * 3_000) + "..AAAA",
        b64url_encode(b"1" * 3_000) + "..AAAA",
        "é..AAAA",
        "A" * 4_097,
        5,
        None,
        ["a..b"],
    ],
)
def test_what_is_no_detached_jws_is_400(api: ApiClient, jws: Any) -> None:
    assert verdict(api, jws).startswith("400")


@pytest.mark.parametrize("kid", ["x", "did:service:live:x#", "#" + "4" * 40, "\ud800", "4" * 40 + "\n"])
def test_kid_that_names_no_certificate_is_404(api: ApiClient, kid: str) -> None:
    header = json.dumps({"kid": kid}).encode()

    assert verdict(api, b64url_encode(header) + "..AAAA") == "404 Certificate not found"


def test_attached_payload_is_refused(world: World, api: ApiClient) -> None:
    protected, _, signature = sign(world, format="jws")["jws"].split(".")

    attached = f"{protected}.{b64url_encode(rfc8785.dumps(PAYLOAD))}.{signature}"

    assert verdict(api, attached).startswith("400")


def test_card_signature_is_no_message(world: World, api: ApiClient) -> None:
    """Even under a message's header: a card's payload is signed in base64url."""
    certificate = Certificate.objects.get(agent=world.agent)
    real = messages.sign_message(certificate=certificate, payload=PAYLOAD, as_jws=True).jws
    assert real is not None
    protected = real.split(".")[0]
    forged = sign_octets(certificate, jose.card_input(protected, rfc8785.dumps(PAYLOAD)))

    assert verdict(api, jose.detached(protected, forged)) == "invalid_signature"


def test_event_and_audit_name_the_audience(world: World) -> None:
    sign(world, audience=BROKER)

    assert world.events().get().details["audience"] == BROKER
