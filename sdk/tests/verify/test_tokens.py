"""Delegation tokens of the service, offline, and forgeries of them."""

import hashlib
import hmac
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agentid import Client, jose
from agentid.jose import P256_ORDER, b64url_decode, b64url_encode
from agentid.keys import DpopKey
from agentid.verify import NotValid, PresentedProof, Reason, TokenKeys, TokenRules, check_status, verify_token
from agentid.verify.key_sets import KeyAges, read_keys
from agentid.verify.tokens import Actor
from compliance.tests.waiting import eventually
from tests.conftest import Reported

CHAIN = [{"sub": "alice@example.com", "type": "human"}, {"sub": "checker", "type": "agent"}]
AUDIENCE = "https://api.example.com"
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
RULES = TokenRules("https://service.example", AUDIENCE)
KEY = ec.generate_private_key(ec.SECP256R1())
KID = jose.thumbprint(KEY.public_key())
KEYS = {KID: KEY.public_key()}
HEADER = {"alg": "ES256", "typ": "delegation+jwt", "kid": KID}
CLAIMS: dict[str, Any] = {
    "iss": RULES.issuer,
    "env": "live",
    "sub": "alice@example.com",
    "sub_type": "human",
    "act": {"sub": "checker", "sub_type": "agent", "act": {"sub": "planner", "sub_type": "agent"}},
    "aud": AUDIENCE,
    "scope": "read write",
    "iat": int(NOW.timestamp()),
    "nbf": int(NOW.timestamp()),
    "exp": int(NOW.timestamp()) + 600,
    "jti": "0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f",
    "agent_id": "0193d2a4-7b5e-7cc3-98c4-dc0c0c073990",
}


def signed(
    claims: Mapping[str, Any] | str, header: Mapping[str, Any] | str = HEADER, *, low: bool = True
) -> str:
    """A token of our own key; texts are taken as they are."""
    segments = [
        b64url_encode((each if isinstance(each, str) else json.dumps(each)).encode())
        for each in (header, claims)
    ]
    text = ".".join(segments)
    r, s = decode_dss_signature(KEY.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    s = min(s, P256_ORDER - s) if low else max(s, P256_ORDER - s)
    return f"{text}.{b64url_encode(r.to_bytes(32) + s.to_bytes(32))}"


def reason_of(
    token: str, rules: TokenRules = RULES, *, at: datetime = NOW, proof: PresentedProof | None = None
) -> Reason:
    with pytest.raises(NotValid) as refused:
        verify_token(token, keys=KEYS, rules=rules, now=at, proof=proof)
    return refused.value.reason


def test_token_of_the_service_is_verified_with_its_keys(client: Client, reported: Reported) -> None:
    base_url = client.transport.configuration.base_url
    issued = client.delegation.issue(str(reported.agent.id), chain=CHAIN, audience=AUDIENCE)

    found = TokenKeys(client).verify(issued.token, rules=TokenRules(base_url, AUDIENCE))

    assert found.principal == "checker"
    assert [(each.sub, each.kind) for each in found.chain] == [
        ("alice@example.com", "human"),
        ("checker", "agent"),
    ]
    assert (found.agent_id, found.expires_at) == (str(reported.agent.id), issued.expires_at)
    with pytest.raises(NotValid, match="wrong_audience"):
        TokenKeys(client).verify(issued.token, rules=TokenRules(base_url, "https://other.example"))


def test_revoked_token_is_in_its_status_list(client: Client, reported: Reported) -> None:
    base_url = client.transport.configuration.base_url
    rules = TokenRules(base_url, AUDIENCE)
    key = DpopKey.generate()
    issued = client.delegation.issue(
        str(reported.agent.id), chain=CHAIN, audience=AUDIENCE, dpop_jkt=key.thumbprint
    )
    keys = read_keys(client.delegation.jwks())
    shown = PresentedProof(key.proof("GET", AUDIENCE, access_token=issued.token), "GET", AUDIENCE)
    found = verify_token(issued.token, keys=keys, rules=rules, now=datetime.now(UTC), proof=shown)
    assert found.status_uri is not None

    def stands() -> bool:
        text = client.delegation.status_list(str(found.status_uri).rpartition("/")[2])
        try:
            check_status(found, text, keys=keys, issuer=base_url, now=datetime.now(UTC))
        except NotValid as refused:
            return refused.reason is not Reason.REVOKED
        return True

    assert stands()
    client.delegation.revoke(issued.token_id, reason="done")
    assert eventually(lambda: not stands(), seconds=30)
    assert not client.oauth.introspect(token=issued.token).active


def status_list(claims: Mapping[str, Any] | None = None, **header: Any) -> str:
    octets = zlib.compress(bytes([0b10]))
    made = {
        "iss": RULES.issuer,
        "sub": "u",
        "exp": CLAIMS["exp"],
        "status_list": {"bits": 1, "lst": b64url_encode(octets)},
    }
    return signed({**made, **(claims or {})}, {**HEADER, "typ": "statuslist+jwt", **header})


@pytest.mark.parametrize(
    ("text", "index", "reason"),
    [
        (status_list(), 1, Reason.REVOKED),
        (status_list(), 8, Reason.NOT_COVERED),
        (status_list({"sub": "other"}), 0, Reason.NOT_COVERED),
        (status_list({"iss": "other"}), 0, Reason.INVALID_ISSUER),
        (status_list({"exp": 1}), 0, Reason.STALE),
        (status_list({"status_list": {"bits": 2, "lst": ""}}), 0, Reason.MALFORMED),
        (status_list({"status_list": {"bits": 1, "lst": "AAAA"}}), 0, Reason.MALFORMED),
        (
            status_list({"status_list": {"bits": 1, "lst": b64url_encode(zlib.compress(bytes(1 << 24)))}}),
            0,
            Reason.MALFORMED,
        ),
        (status_list(typ="delegation+jwt"), 0, Reason.MALFORMED),
        (status_list(kid="other"), 0, Reason.UNKNOWN_KEY),
        (signed(CLAIMS), 0, Reason.MALFORMED),
    ],
)
def test_other_status_lists_say_nothing(text: str, index: int, reason: Reason) -> None:
    listed = {**CLAIMS, "status": {"status_list": {"idx": index, "uri": "u"}}}
    token = verify_token(signed(listed), keys=KEYS, rules=RULES, now=NOW)

    with pytest.raises(NotValid) as refused:
        check_status(token, text, keys=KEYS, issuer=RULES.issuer, now=NOW)

    assert refused.value.reason is reason


def test_token_that_is_not_marked_stands() -> None:
    listed = {**CLAIMS, "status": {"status_list": {"idx": 0, "uri": "u"}}}
    token = verify_token(signed(listed), keys=KEYS, rules=RULES, now=NOW)

    check_status(token, status_list(), keys=KEYS, issuer=RULES.issuer, now=NOW)


def test_claims_are_read() -> None:
    found = verify_token(signed(CLAIMS), keys=KEYS, rules=RULES, now=NOW)

    assert [each.sub for each in found.chain] == ["alice@example.com", "planner", "checker"]
    assert found.scope == {"read", "write"}
    assert (found.bound_to, found.root_issuer, found.status_uri) == (None, None, None)


def without(name: str) -> dict[str, Any]:
    return {each: value for each, value in CLAIMS.items() if each != name}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({**HEADER, "alg": "none"}, Reason.UNSUPPORTED_ALGORITHM),
        ({**HEADER, "alg": "HS256"}, Reason.UNSUPPORTED_ALGORITHM),
        ({**HEADER, "alg": "ES384"}, Reason.UNSUPPORTED_ALGORITHM),
        ({**HEADER, "typ": "JWT"}, Reason.MALFORMED),
        ({**HEADER, "typ": "dpop+jwt"}, Reason.MALFORMED),
        ({**HEADER, "jwk": jose.public_jwk(KEY.public_key())}, Reason.MALFORMED),
        ({**HEADER, "jku": "https://evil.example/jwks"}, Reason.MALFORMED),
        ({**HEADER, "x5c": ["AAAA"]}, Reason.MALFORMED),
        ({**HEADER, "crit": ["b64"], "b64": False}, Reason.MALFORMED),
        ({**HEADER, "kid": "other"}, Reason.UNKNOWN_KEY),
        ({**HEADER, "kid": 1}, Reason.MALFORMED),
        ({"alg": "ES256", "typ": "delegation+jwt"}, Reason.MALFORMED),
        (f'{{"alg":"none","alg":"ES256","typ":"delegation+jwt","kid":"{KID}"}}', Reason.MALFORMED),
        ("[]", Reason.MALFORMED),
    ],
)
def test_only_one_header_is_accepted(header: Any, reason: Reason) -> None:
    assert reason_of(signed(CLAIMS, header)) is reason


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({**CLAIMS, "iss": "https://evil.example"}, Reason.INVALID_ISSUER),
        ({**CLAIMS, "env": "test"}, Reason.WRONG_ENVIRONMENT),
        ({**CLAIMS, "aud": "https://other.example"}, Reason.WRONG_AUDIENCE),
        (without("aud"), Reason.WRONG_AUDIENCE),
        ({**CLAIMS, "aud": [AUDIENCE]}, Reason.MALFORMED),
        ({**CLAIMS, "aud": None}, Reason.MALFORMED),
        ({**CLAIMS, "exp": True}, Reason.MALFORMED),
        ({**CLAIMS, "exp": 10**20}, Reason.MALFORMED),
        ({**CLAIMS, "exp": CLAIMS["exp"] + 0.5}, Reason.MALFORMED),
        ({**CLAIMS, "nbf": -1}, Reason.MALFORMED),
        (without("scope"), Reason.MALFORMED),
        (without("exp"), Reason.MALFORMED),
        ({**CLAIMS, "jti": "x"}, Reason.MALFORMED),
        ({**CLAIMS, "act": None}, Reason.MALFORMED),
        ({**CLAIMS, "act": {"sub": "a"}}, Reason.MALFORMED),
        ({**CLAIMS, "cnf": {}}, Reason.MALFORMED),
        ({**CLAIMS, "cnf": None}, Reason.MALFORMED),
        ({**CLAIMS, "status": {"status_list": {"uri": "x"}}}, Reason.MALFORMED),
        (json.dumps(CLAIMS)[:-1] + ', "scope": "admin"}', Reason.MALFORMED),
        ("NaN", Reason.MALFORMED),
        ("[" * 5000, Reason.MALFORMED),
    ],
)
def test_claims_are_strict(claims: Any, reason: Reason) -> None:
    assert reason_of(signed(claims)) is reason


def test_chain_of_nine_is_too_long() -> None:
    act: dict[str, Any] = {"sub": "a", "sub_type": "agent"}
    for _ in range(7):
        act = {"sub": "a", "sub_type": "agent", "act": act}

    assert reason_of(signed({**CLAIMS, "act": act})) is Reason.MALFORMED
    verify_token(signed({**CLAIMS, "act": act["act"]}), keys=KEYS, rules=RULES, now=NOW)


def test_longest_names_that_the_service_issues_fit() -> None:
    name = "\U0001f916" * 256
    act: dict[str, Any] = {"sub": name, "sub_type": "agent"}
    for _ in range(6):
        act = {"sub": name, "sub_type": "sub_agent", "act": act}
    via = [{"agent_id": CLAIMS["agent_id"], "cert_serial": "f" * 40, "jti": CLAIMS["jti"]} for _ in range(7)]
    root = {"format": "iss_sub", "iss": "\\" * 255, "sub": '"' * 255}
    status = {"status_list": {"idx": 1, "uri": "h" * 256}}
    said = {"sub": name, "act": act, "aud": name, "scope": "s" * 500, "sub_id": root}
    claims = {**CLAIMS, **said, "via": via, "status": status}
    token = signed(json.dumps(claims, ensure_ascii=False, separators=(",", ":")))
    assert len(token) > 16_384

    found = verify_token(token, keys=KEYS, rules=replace(RULES, audience=name), now=NOW)

    assert found.chain == (Actor(name, "human"), Actor(name, "agent"), *[Actor(name, "sub_agent")] * 6)


def test_clocks_may_differ_by_a_minute() -> None:
    token = signed(CLAIMS)
    ends = NOW + timedelta(seconds=600)

    for at in (NOW - timedelta(seconds=60), ends + timedelta(seconds=59)):
        verify_token(token, keys=KEYS, rules=RULES, now=at)
    assert reason_of(token, at=NOW - timedelta(seconds=61)) is Reason.NOT_YET_VALID
    assert reason_of(token, at=ends + timedelta(seconds=60)) is Reason.EXPIRED


def test_token_for_anyone_is_accepted_only_by_choice() -> None:
    token = signed(without("aud"))

    verify_token(token, keys=KEYS, rules=replace(RULES, accept_any_audience=True), now=NOW)
    other = signed({**CLAIMS, "aud": "x"})
    assert reason_of(other, replace(RULES, accept_any_audience=True)) is Reason.WRONG_AUDIENCE


def test_signature_has_one_form() -> None:
    good = signed(CLAIMS)
    head, payload, signature = good.split(".")
    octets = b64url_decode(signature)

    assert reason_of(signed(CLAIMS, low=False)) is Reason.INVALID_SIGNATURE
    assert reason_of(f"{head}.{payload}.{b64url_encode(octets[:-1])}") is Reason.INVALID_SIGNATURE
    assert reason_of(f"{head}.{payload}.{b64url_encode(bytes(64))}") is Reason.INVALID_SIGNATURE
    assert reason_of(f"{head}.{payload}.") is Reason.INVALID_SIGNATURE
    assert reason_of(f"{good}=") is Reason.MALFORMED
    assert reason_of(f"{good}.x") is Reason.MALFORMED
    assert reason_of(
        f"{head}.{b64url_encode(json.dumps({**CLAIMS, 'scope': 'admin'}).encode())}.{signature}"
    ) is (Reason.INVALID_SIGNATURE)
    assert reason_of("\ud800") is Reason.MALFORMED
    assert reason_of("a" * 20_000) is Reason.MALFORMED


def test_public_key_is_no_secret_of_hmac() -> None:
    """Algorithm confusion: the public key's octets as the key of HS256."""
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = ".".join(b64url_encode(json.dumps(each).encode()) for each in ({**HEADER, "alg": "HS256"}, CLAIMS))
    made = hmac.new(public, text.encode(), hashlib.sha256).digest()

    assert reason_of(f"{text}.{b64url_encode(made)}") is Reason.UNSUPPORTED_ALGORITHM


class TestBoundToken:
    """A token bound to a key counts only with a proof by that key, for this request and token."""

    key = DpopKey.generate()
    token = signed({**CLAIMS, "cnf": {"jkt": key.thumbprint}})

    def made(self, **other: Any) -> PresentedProof:
        key = other.pop("key", self.key)
        fields = {"method": "POST", "url": AUDIENCE, "access_token": self.token, "now": NOW, **other}
        method, url = fields.pop("method"), fields.pop("url")
        return PresentedProof(key.proof(method, url, **fields), "POST", f"{AUDIENCE}/")

    def test_proof_by_its_key_is_accepted(self) -> None:
        found = verify_token(self.token, keys=KEYS, rules=RULES, now=NOW, proof=self.made())

        assert found.bound_to == self.key.thumbprint

    def test_without_proof_it_is_refused(self) -> None:
        assert reason_of(self.token) is Reason.PROOF_REQUIRED

    @pytest.mark.parametrize(
        ("other", "reason"),
        [
            ({"method": "GET"}, Reason.WRONG_REQUEST),
            ({"url": "https://api.example.com/other"}, Reason.WRONG_REQUEST),
            ({"url": "http://api.example.com"}, Reason.WRONG_REQUEST),
            ({"key": DpopKey.generate()}, Reason.WRONG_KEY),
            ({"access_token": "other"}, Reason.WRONG_TOKEN),
            ({"access_token": None}, Reason.WRONG_TOKEN),
            ({"now": NOW - timedelta(seconds=61)}, Reason.EXPIRED),
            ({"now": NOW + timedelta(seconds=61)}, Reason.NOT_YET_VALID),
        ],
    )
    def test_other_proofs_are_refused(self, other: dict[str, Any], reason: Reason) -> None:
        assert reason_of(self.token, proof=self.made(**other)) is reason

    def test_nonce_and_replay_count(self) -> None:
        proof, seen = self.made(nonce="n"), set[tuple[str, str]]()

        def is_new(holder: str, name: str) -> bool:
            was = (holder, name) in seen
            seen.add((holder, name))
            return not was

        once = replace(proof, nonce="n", is_new=is_new)
        verify_token(self.token, keys=KEYS, rules=RULES, now=NOW, proof=once)

        assert reason_of(self.token, proof=once) is Reason.EXPIRED
        assert reason_of(self.token, proof=replace(proof, nonce="m")) is Reason.WRONG_NONCE
        assert reason_of(self.token, proof=replace(self.made(), nonce="n")) is Reason.WRONG_NONCE

    def test_private_key_in_a_proof_is_refused(self) -> None:
        head, payload, signature = self.made().text.split(".")
        header = json.loads(b64url_decode(head))
        header["jwk"]["d"] = "AAAA"
        text = f"{b64url_encode(json.dumps(header).encode())}.{payload}.{signature}"

        assert reason_of(self.token, proof=replace(self.made(), text=text)) is Reason.MALFORMED


def test_keys_are_kept_ten_minutes_and_fetched_for_unknown_ones_each_half_minute() -> None:
    moment = [1000.0]
    kept = KeyAges(clock=lambda: moment[0])
    assert kept.must_fetch(KID)
    kept.take(
        {"keys": [{**jose.public_jwk(KEY.public_key()), "kid": KID}, {"kty": "RSA", "kid": "x"}, "junk"]}
    )

    asked = []
    for seconds in (1, 29, 31, 32, 62, 601):
        moment[0] = 1000.0 + seconds
        asked.append((kept.must_fetch(KID), kept.must_fetch("unknown")))

    assert kept.keys.keys() == {KID}
    assert asked[:5] == [(False, False), (False, False), (False, True), (False, False), (False, True)]
    assert asked[5][0]
