"""Receipts: what they state, how others verify them offline, and forgeries."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings

from agents.models import Agent
from compliance.core.clock import now
from compliance.core.encodings import b64url_decode, b64url_encode
from delegation import services as delegation
from delegation.jose import jws
from delegation.tests.factories import make_token
from delegation.token_keys import keys
from gateway.approvals import receipts
from gateway.approvals.errors import ApprovalRefused, RefusedReason
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import DETAILS, KEY, OFFICER, make_approved, use


@pytest.fixture
def approved(agent: Agent) -> Approval:
    return make_approved(agent)


def claims_of(receipt: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b64url_decode(receipt.split(".")[1]))
    return found


def signed(claims: dict[str, Any], typ: str = receipts.TYPE) -> str:
    """A compact JWS by the service's own key."""
    key = keys.signing_key()
    return jws.sign(claims, kid=key.kid, key=keys.private_half(key), typ=typ)


def reason_of(receipt: str) -> RefusedReason:
    with pytest.raises(ApprovalRefused) as error:
        receipts.read(receipt)
    return error.value.reason


def test_the_action_hash_is_that_of_rfc_8785() -> None:
    """The digest of `{"action":"pay","details":{"amount":25000,"currency":"EUR","payee":"Example GmbH"}}`."""
    act = {"payee": "Example GmbH", "currency": "EUR", "amount": 25000.0}

    assert receipts.action_hash("pay", act) == (
        "a6732a600f087565f7c60061061da4cc754919444894bbf1d972cbf4abbd4e25"
    )


def test_a_receipt_states_who_may_do_what_until_when_and_who_said_so(
    approved: Approval, agent: Agent
) -> None:
    assert approved.decided_at is not None
    assert claims_of(approved.receipt or "") == {
        "iss": settings.TOKEN_ISSUER,
        "sub": agent.did,
        "agent_id": str(agent.id),
        "action": "pay",
        "action_hash": receipts.action_hash("pay", DETAILS),
        "decided_by": OFFICER.id,
        "iat": int(approved.decided_at.timestamp()),
        "exp": int(approved.expires_at.timestamp()),
        "jti": str(approved.jti),
        "approval_id": str(approved.id),
        "env": "live",
    }


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "é.é.é", "e30.e30.e30", "x" * 20_000])
def test_what_is_no_receipt_is_malformed(approved: Approval, text: str) -> None:
    assert reason_of(text) is RefusedReason.MALFORMED


def test_a_delegation_token_is_no_receipt_and_the_other_way_round(approved: Approval, agent: Agent) -> None:
    assert reason_of(make_token(agent).token) is RefusedReason.MALFORMED
    assert delegation.verify(token=approved.receipt or "", now=now()).reason == "malformed"


def test_a_changed_receipt_is_not_authentic(approved: Approval) -> None:
    head, _, signature = (approved.receipt or "").split(".")
    claims = claims_of(approved.receipt or "") | {"exp": 2**33}
    changed = b64url_encode(json.dumps(claims).encode())

    assert reason_of(f"{head}.{changed}.{signature}") is RefusedReason.INVALID_SIGNATURE


def test_a_receipt_by_another_key_is_not_authentic(approved: Approval) -> None:
    claims, other = claims_of(approved.receipt or ""), ec.generate_private_key(ec.SECP256R1())

    for kid in (keys.signing_key().kid, "unknown"):
        forged = jws.sign(claims, kid=kid, key=other, typ=receipts.TYPE)
        assert reason_of(forged) is RefusedReason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"iss": "https://evil.example"}, RefusedReason.INVALID_SIGNATURE),
        ({"env": "test"}, RefusedReason.INVALID_SIGNATURE),
        ({"agent_id": "x"}, RefusedReason.MALFORMED),
        ({"exp": -1}, RefusedReason.MALFORMED),
        ({"exp": "tomorrow"}, RefusedReason.MALFORMED),
        ({"action_hash": "A" * 64}, RefusedReason.MALFORMED),
    ],
)
def test_odd_claims_under_the_right_key_are_refused(
    approved: Approval, change: dict[str, Any], reason: RefusedReason
) -> None:
    assert reason_of(signed(claims_of(approved.receipt or "") | change)) is reason


def test_a_receipt_that_nobody_stored_is_not_approved(approved: Approval) -> None:
    """One under the right key, of an approval that has another `jti`."""
    claims = claims_of(approved.receipt or "") | {"jti": str(approved.id)}

    with pytest.raises(ApprovalRefused) as error:
        use(approved, receipt=signed(claims))

    assert error.value.reason is RefusedReason.NOT_APPROVED


def test_receipts_end_with_a_compromised_key(agent: Agent, approved: Approval) -> None:
    keys.replace_compromised(actor=KEY, now=now())

    assert reason_of(approved.receipt or "") is RefusedReason.INVALID_SIGNATURE
