"""The JSON made by hand is what the described serializers would make."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from compliance.api.rest.renderers import dumps
from delegation import serializers
from delegation.errors import RejectionReason
from delegation.issuing.groups import IssuedDelegation
from delegation.jose.tokens import Confirmation, Delegation
from delegation.services import TokenVerification
from delegation.tests.factories import CHAIN, JKT, VERIFIED, as_chain

MOMENT = int(datetime(2026, 11, 23, 8, 0, 1, tzinfo=UTC).timestamp())
FULL = {
    "audience": "https://api.example",
    "certificate_serial": "0a1b",
    "confirmation": Confirmation(JKT),
    "subject_identifier": VERIFIED,
}


def delegation(**claims: Any) -> Delegation:
    return Delegation.of(
        as_chain(CHAIN),
        issuer="https://service.example",
        environment="live",
        token_id=UUID(int=1),
        agent_id=UUID(int=2),
        issued_at=MOMENT,
        not_before=MOMENT,
        expires_at=MOMENT + 60,
        scope="",
        **claims,
    )


@pytest.mark.parametrize("claims", [{}, FULL])
def test_valid_and_issued_tokens_are_shown_as_described(claims: dict[str, Any]) -> None:
    found = delegation(**claims)
    valid, issued = TokenVerification(found), IssuedDelegation("token", found)

    assert dumps(serializers.shown_verification(valid)) == dumps(
        serializers.ValidDelegationSerializer(valid).data
    )
    assert dumps(serializers.shown_issued(issued)) == dumps(serializers.DelegationSerializer(issued).data)


def test_invalid_token_is_shown_as_described() -> None:
    refused = TokenVerification(reason=RejectionReason.EXPIRED)

    assert serializers.shown_verification(refused) == serializers.InvalidDelegationSerializer(refused).data
