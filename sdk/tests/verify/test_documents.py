"""Detached JWS of messages and signed agent cards: of the service, and forgeries of them."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agentid import Client
from agentid.jose import b64url_decode, b64url_encode
from agentid.verify import (
    Reason,
    TrustedAuthorities,
    VerifiedCard,
    VerifiedCertificate,
    canonical,
    verify_card,
    verify_message_jws,
)
from tests.verify.conftest import certified
from tests.verify.test_certificates import reason_of

PAYLOAD = {"order": 1, "price": 1e21, "größe": "naïve"}
AUDIENCE = "https://broker.example"
CARD = {"url": "https://agents.example/a"}
STRANGER = rsa.generate_private_key(65537, 2048)


def header_of(jws: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b64url_decode(jws.split(".", maxsplit=1)[0]))
    return found


def by_stranger(header: dict[str, Any]) -> str:
    protected = b64url_encode(canonical(header))
    octets = protected.encode() + b"." + canonical(PAYLOAD)
    return f"{protected}..{b64url_encode(STRANGER.sign(octets, padding.PKCS1v15(), hashes.SHA256()))}"


def test_jws_counts_for_its_payload_signer_and_audience_only(
    client: Client, trusted: TrustedAuthorities
) -> None:
    first, second = certified(client, trusted), certified(client, trusted)
    for_one = client.messages.sign(first.agent_id, payload=PAYLOAD, audience=AUDIENCE).jws or ""
    for_nobody = client.messages.sign(first.agent_id, payload=PAYLOAD, format_="jws").jws or ""

    verify_message_jws(PAYLOAD, for_one, signer=first, audience=AUDIENCE)
    verify_message_jws(PAYLOAD, for_nobody, signer=first)

    def refused(jws: str, audience: str | None = None, payload: Any = PAYLOAD) -> Reason:
        return reason_of(lambda: verify_message_jws(payload, jws, signer=first, audience=audience))

    assert refused(for_one, AUDIENCE, {"order": 2}) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: verify_message_jws(PAYLOAD, for_nobody, signer=second)) is Reason.WRONG_KEY
    assert refused(for_one, "https://other.example") is Reason.WRONG_AUDIENCE
    assert refused(for_one) is Reason.WRONG_AUDIENCE
    assert refused(for_nobody, AUDIENCE) is Reason.WRONG_AUDIENCE
    # The signature of another header, with this audience put in.
    moved = b64url_encode(canonical(header_of(for_nobody) | {"aud": AUDIENCE}))
    assert refused(f"{moved}..{for_nobody.split('.')[2]}", AUDIENCE) is Reason.INVALID_SIGNATURE


def test_forged_jws_are_refused(client: Client, trusted: TrustedAuthorities) -> None:
    signer = certified(client, trusted)
    made = client.messages.sign(signer.agent_id, payload=PAYLOAD, format_="jws").jws or ""
    header = header_of(made)

    def refused(jws: str) -> Reason:
        return reason_of(lambda: verify_message_jws(PAYLOAD, jws, signer=signer))

    assert refused(by_stranger(header)) is Reason.INVALID_SIGNATURE
    for change in ({"alg": "none"}, {"alg": "HS256"}, {"alg": "PS256"}):
        assert refused(by_stranger(header | change)) is Reason.UNSUPPORTED_ALGORITHM
    changes: list[dict[str, Any]] = [
        {"jku": "https://evil.example"},
        {"x5c": []},
        {"typ": "JOSE"},
        {"b64": True},
        {"b64": 0},
        {"crit": []},
    ]
    for more in changes:
        assert refused(by_stranger(header | more)) is Reason.MALFORMED
    assert refused(by_stranger(header | {"kid": ["x"]})) is Reason.WRONG_KEY
    protected, _, signature = made.split(".")
    attached = f"{protected}.{b64url_encode(canonical(PAYLOAD))}.{signature}"
    for text in (attached, f"{made}.", made + "=", "", "..", "\ud800..", "x" * 5000):
        assert refused(text) is Reason.MALFORMED


@pytest.fixture
def signer(client: Client, trusted: TrustedAuthorities) -> VerifiedCertificate:
    return certified(client, trusted, agent_card=CARD)


Check = Callable[..., VerifiedCard]


@pytest.fixture
def check(client: Client, trusted: TrustedAuthorities, signer: VerifiedCertificate) -> Check:
    did = signer.identity.did
    known = dict(client.agents.resolve(did))

    def run(card: Any, document: Any = known, did: str = did, **more: Any) -> VerifiedCard:
        given: dict[str, Any] = {"trusted": trusted, "revocation": None, "now": datetime.now(UTC), **more}
        return verify_card(card, document=document, did=did, **given)

    return run


def test_card_is_verified_by_the_certificate_of_its_did(
    client: Client, signer: VerifiedCertificate, check: Check, trusted: TrustedAuthorities
) -> None:
    card = dict(client.agents.card(signer.identity.did))
    other = certified(client, trusted, "other", agent_card=CARD)

    found = check(card)

    assert (found.card["name"], found.signer.agent_id) == ("signer", signer.agent_id)
    assert reason_of(lambda: check({**card, "name": "evil"})) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: check({**card, "more": 1})) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: check(card, did=other.identity.did)) is Reason.WRONG_KEY
    elsewhere = dict(client.agents.resolve(other.identity.did))
    assert reason_of(lambda: check(card, elsewhere)) is Reason.UNKNOWN_KEY
    assert reason_of(lambda: check(card, trusted=TrustedAuthorities(()))) is Reason.UNTRUSTED_ISSUER


def test_forged_cards_are_refused(
    client: Client, signer: VerifiedCertificate, check: Check, trusted: TrustedAuthorities
) -> None:
    card = dict(client.agents.card(signer.identity.did))
    content = {name: value for name, value in card.items() if name != "signatures"}
    header = json.loads(b64url_decode(card["signatures"][0]["protected"]))

    def forged(**change: Any) -> dict[str, Any]:
        protected = b64url_encode(canonical({**header, **change}))
        octets = f"{protected}.{b64url_encode(canonical(content))}".encode()
        made = b64url_encode(STRANGER.sign(octets, padding.PKCS1v15(), hashes.SHA256()))
        return {**content, "signatures": [{"protected": protected, "signature": made}]}

    assert reason_of(lambda: check(forged())) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: check(forged(alg="none"))) is Reason.UNSUPPORTED_ALGORITHM
    assert reason_of(lambda: check(forged(alg="ES256"))) is Reason.UNSUPPORTED_ALGORITHM
    changes: list[dict[str, Any]] = [{"jku": "https://evil.example"}, {"x5c": []}, {"typ": "x"}, {"kid": 1}]
    for change in changes:
        assert reason_of(lambda: check(forged(**change))) is Reason.MALFORMED  # noqa: B023
    own = card["signatures"][0]
    for signatures in (None, [], [own, own], ["x"], [{**own, "header": {}}], [{"protected": 1}]):
        assert reason_of(lambda: check({**content, "signatures": signatures})) is Reason.MALFORMED  # noqa: B023


def test_did_document_brings_no_key_of_a_stranger(
    client: Client, signer: VerifiedCertificate, check: Check, trusted: TrustedAuthorities
) -> None:
    """A resolver that lies can withhold a key, but not put another agent's, or its own, in its place."""
    card = dict(client.agents.card(signer.identity.did))
    document: Any = copy.deepcopy(dict(client.agents.resolve(signer.identity.did)))
    other = certified(client, trusted, "other", agent_card=CARD)
    theirs: Any = client.agents.resolve(other.identity.did)
    own = document["didDocument"]["verificationMethod"][0]["publicKeyJwk"]

    own["x5c"] = theirs["didDocument"]["verificationMethod"][0]["publicKeyJwk"]["x5c"]
    assert reason_of(lambda: check(card, document)) is Reason.WRONG_KEY
    for chain in (None, [], [1], ["!"], ["AAAA"], "x"):
        own["x5c"] = chain
        assert reason_of(lambda: check(card, document)) in (Reason.UNKNOWN_KEY, Reason.MALFORMED)
    lies: list[dict[str, Any]] = [
        {},
        {"didDocument": []},
        {"verificationMethod": "x"},
        {"verificationMethod": [1]},
    ]
    for hostile in lies:
        assert reason_of(lambda: check(card, hostile)) is Reason.UNKNOWN_KEY  # noqa: B023
