"""Signed messages, webhooks and canonical JSON."""

import json
import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from agentid import Client
from agentid.verify import NotValid, Reason, TrustedAuthorities, canonical, verify_message, verify_webhook
from certificates.tests.test_canonical_vectors import FROM_NODE, NUMBERS
from tests.verify.conftest import certified
from webhooks.sending.signature import new_secret, sign, sign_standard

PAYLOAD = {"order": 1, "price": 1e21, "größe": "naïve 😀", "nested": [None, True, {"b": 1, "a": 0.1}]}
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_message_counts_for_its_payload_and_signer_only(client: Client, trusted: TrustedAuthorities) -> None:
    first, second = certified(client, trusted), certified(client, trusted)
    signature = client.messages.sign(first.agent_id, payload=PAYLOAD).signature

    verify_message(json.loads(json.dumps(PAYLOAD)), signature, signer=first)

    for payload, made, by in (
        ({**PAYLOAD, "order": 2}, signature, first),
        (PAYLOAD, signature, second),
        (PAYLOAD, client.messages.sign(first.agent_id, payload={}).signature, first),
    ):
        with pytest.raises(NotValid, match="invalid_signature"):
            verify_message(payload, made, signer=by)
    for made in (f"{signature}=", signature.replace("=", ""), "\ud800", ""):
        with pytest.raises(NotValid):
            verify_message(PAYLOAD, made, signer=first)


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_of_the_standard(bits: str, text: str) -> None:
    assert canonical(struct.unpack(">d", bytes.fromhex(bits))[0]).decode() == text


def test_examples_of_the_standard() -> None:
    """RFC 8785 §3.2.2 and §3.2.3."""
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    names = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}

    assert (
        canonical(value)
        == (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )
    assert list(json.loads(canonical(names)).values()) == [2, 4, 6, 7, 1, 5, 3]


@pytest.mark.parametrize(("token", "written"), FROM_NODE)
def test_number_is_written_as_javascript_does(token: str, written: str) -> None:
    for text in (token, written):
        assert canonical({"n": [json.loads(text)]}) == f'{{"n":[{written}]}}'.encode()


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53 + 1, -(2**60) - 1, 10**400, "\ud800", {1: 2}, b"x", {"a": {1, 2}}],
)
def test_what_has_no_canonical_form_is_malformed(value: Any) -> None:
    with pytest.raises(NotValid) as refused:
        canonical(value)

    assert refused.value.reason is Reason.MALFORMED


def delivery(secret: str, *, at: datetime = NOW, **event: Any) -> tuple[bytes, dict[str, str]]:
    """A delivery as the service sends it."""
    name, sent_at = str(uuid4()), int(at.timestamp())
    fields = {"id": name, "event": "agent.created", "created_at": NOW.isoformat(), "data": {}, **event}
    body = json.dumps(fields).encode()
    headers = {
        "X-Service-Signature": sign(body, secret),
        "webhook-id": name,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": sign_standard(body, secret, message_id=name, timestamp=sent_at),
    }
    return body, headers


def test_delivery_is_read() -> None:
    secret = new_secret()
    body, headers = delivery(secret, data={"n": 1})

    found = verify_webhook(body, headers, secret=secret, now=NOW)

    assert (found.event, found.created_at, found.data) == ("agent.created", NOW, {"n": 1})


def test_forged_deliveries_are_refused() -> None:
    secret, other = new_secret(), new_secret()
    body, headers = delivery(secret)
    late = timedelta(seconds=301)

    def reason_of(body: bytes = body, secret: str = secret, now: datetime = NOW, **changed: str) -> Reason:
        named = {name.replace("_", "-"): value for name, value in changed.items()}
        with pytest.raises(NotValid) as refused:
            verify_webhook(body, {**headers, **named}, secret=secret, now=now)
        return refused.value.reason

    assert reason_of(secret=other) is Reason.INVALID_SIGNATURE
    assert reason_of(body=body + b" ") is Reason.INVALID_SIGNATURE
    assert reason_of(X_Service_Signature="") is Reason.INVALID_SIGNATURE
    assert reason_of(webhook_signature="") is Reason.INVALID_SIGNATURE
    assert reason_of(webhook_id=str(uuid4())) is Reason.INVALID_SIGNATURE
    assert reason_of(webhook_timestamp=str(int(headers["webhook-timestamp"]) + 1)) is Reason.INVALID_SIGNATURE
    assert (reason_of(now=NOW + late), reason_of(now=NOW - late)) == (Reason.EXPIRED, Reason.EXPIRED)


def test_rotated_secret_counts_by_the_previous_signature() -> None:
    old, new = new_secret(), new_secret()
    body, headers = delivery(new)
    name, sent_at = headers["webhook-id"], int(headers["webhook-timestamp"])
    headers["X-Service-Signature-Previous"] = sign(body, old)
    headers["webhook-signature"] += " " + sign_standard(body, old, message_id=name, timestamp=sent_at)

    for secret in (old, new):
        assert verify_webhook(body, headers, secret=secret, now=NOW).id == name
