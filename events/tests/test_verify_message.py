"""`POST /v1/verify/message`, and the signature that it checks."""

import json
from typing import Any

import pytest

from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.pki.serials import format_serial, new_serial
from certificates.public import messages
from certificates.tests.factories import make_certificate, make_certified_agent
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
PAYLOAD = {"order": 17, "amount_usd": 250.5, "note": "é\u20ac", "nested": {"b": [1, None, True], "a": {}}}


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def certificate(tenant: Tenant) -> Certificate:
    return make_certificate(make_agent(tenant))


def check(api: ApiClient, certificate: Certificate, payload: Any, signature: Any) -> Any:
    body = {"payload": payload, "signature": signature, "certificate_serial": certificate.serial_number}
    return api.post("/v1/verify/message", body)


def test_signed_message_verifies(api: ApiClient, certificate: Certificate) -> None:
    signed = messages.sign_message(certificate=certificate, payload=PAYLOAD)

    answer = check(api, certificate, PAYLOAD, signed.signature)

    assert answer.status_code == 200
    assert answer.json()["data"] == {
        "valid": True,
        "agent_id": str(certificate.agent_id),
        "certificate_serial": certificate.serial_number,
        "certificate_status": "active",
        "payload_hash": signed.payload_hash,
        "algorithm": "RSASSA_PKCS1_V1_5_SHA_256",
        "valid_when_signed": None,
    }


@pytest.mark.parametrize("payload", [{}, [], "text", 5, None, True, {"deep": [[[{}]]]}])
def test_any_json_value_can_be_signed(api: ApiClient, certificate: Certificate, payload: Any) -> None:
    signed = messages.sign_message(certificate=certificate, payload=payload)

    assert check(api, certificate, payload, signed.signature).json()["data"]["valid"] is True


@pytest.mark.parametrize("payload", [{**PAYLOAD, "order": 18}, {}, None, [PAYLOAD]])
def test_changed_message_is_invalid(api: ApiClient, certificate: Certificate, payload: Any) -> None:
    signed = messages.sign_message(certificate=certificate, payload=PAYLOAD)

    data = check(api, certificate, payload, signed.signature).json()["data"]

    assert (data["valid"], data["reason"]) == (False, "invalid_signature")


@pytest.mark.parametrize("signature", ["AAAA", "not base64!", "é", "=" * 100])
def test_nonsense_signature_is_invalid(api: ApiClient, certificate: Certificate, signature: str) -> None:
    data = check(api, certificate, PAYLOAD, signature).json()["data"]

    assert (data["valid"], data["reason"]) == (False, "invalid_signature")


def test_a_signature_has_one_spelling(api: ApiClient, certificate: Certificate) -> None:
    signature = messages.sign_message(certificate=certificate, payload=PAYLOAD).signature
    last = ALPHABET.index(signature[-3])
    # 256 octets leave four bits of the last character unused.
    others = [signature[:-3] + ALPHABET[last + bits] + "==" for bits in range(1, 16)]
    others += [signature.rstrip("="), signature + "=", signature + "\n", signature.replace("+", "-")[:-2]]

    for other in others:
        data = check(api, certificate, PAYLOAD, other).json()["data"]
        assert (data["valid"], data["reason"]) == (False, "invalid_signature"), other


def test_another_agents_certificate_does_not_verify(
    api: ApiClient, tenant: Tenant, certificate: Certificate
) -> None:
    signed = messages.sign_message(certificate=certificate, payload=PAYLOAD)
    other = make_certificate(make_agent(tenant))

    assert check(api, other, PAYLOAD, signed.signature).json()["data"]["valid"] is False


def test_unknown_serial_is_404(api: ApiClient) -> None:
    for serial in ("nonsense", format_serial(new_serial(Environment.LIVE))):
        body = {"payload": {}, "signature": "AAAA", "certificate_serial": serial}
        assert api.post("/v1/verify/message", body).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"payload": {}, "signature": "AAAA"},
        {"payload": {}, "certificate_serial": "4" * 40},
        {"signature": "AAAA", "certificate_serial": "4" * 40},
        {"payload": {}, "signature": "", "certificate_serial": "4" * 40},
        {"payload": {}, "signature": "AAAA", "certificate_serial": "4" * 40, "jws": "a..b"},
        {"payload": {}, "signature": "AAAA", "jws": "a..b"},
        {"payload": {}, "certificate_serial": "4" * 40, "jws": "a..b"},
        {"payload": {"n": 2**53 + 1}, "signature": "AAAA", "certificate_serial": "4" * 40},
    ],
)
def test_malformed_requests_are_400(api: ApiClient, body: Any) -> None:
    assert api.post("/v1/verify/message", body).status_code == 400


@pytest.mark.parametrize("payload", [2**53 + 1, {"n": -(2**53) - 1}, float("nan"), {"x": float("inf")}])
def test_numbers_that_json_can_not_keep_are_refused(certificate: Certificate, payload: Any) -> None:
    with pytest.raises(Invalid):
        messages.sign_message(certificate=certificate, payload=payload)


@pytest.mark.parametrize(("signed", "verified"), [("1.5e18", "1500000000000000000"), ("1e18", "1e+18")])
def test_number_may_be_written_in_another_way(api: ApiClient, signed: str, verified: str) -> None:
    tenant = make_tenant()
    agent = make_certified_agent(tenant)
    client = api.as_key(make_key(tenant))

    path, body = f"/v1/agents/{agent.id}/sign", f'{{"payload": {{"wei": {signed}}}}}'
    proof = client.raw("POST", path, body.encode()).json()["data"]
    text = json.dumps({name: proof[name] for name in ("signature", "certificate_serial")})
    answer = api.raw(
        "POST", "/v1/verify/message", f'{text[:-1]}, "payload": {{"wei": {verified}}}}}'.encode()
    )

    assert answer.json()["data"]["valid"] is True
