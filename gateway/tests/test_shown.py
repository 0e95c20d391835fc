"""The JSON of a passage made by hand is what the described serializer would make."""

from uuid import UUID

import pytest

from compliance.api.rest.renderers import dumps
from delegation.jose.tokens import RootAssurance
from delegation.tests.factories import CHAIN, as_chain
from gateway import serializers
from gateway.deciding.decisions import Passage
from gateway.models import GatewayCredential


@pytest.mark.parametrize("serial", [None, "0a1b"])
def test_passage_is_shown_as_described(serial: str | None) -> None:
    passage = Passage(
        credential=GatewayCredential.DPOP,
        route="orders",
        action="read",
        agent_id=UUID(int=1),
        did="did:service:live:1",
        tenant_id=UUID(int=2),
        principal="price-checker",
        chain=as_chain(CHAIN),
        scope=("read", "trade"),
        risk_band="low",
        serial=serial,
        environment="live",
        assurance=RootAssurance.VERIFIED,
    )

    assert dumps(serializers.shown_passage(passage)) == dumps(serializers.PassageSerializer(passage).data)
