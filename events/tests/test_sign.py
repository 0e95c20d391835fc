"""POST /v1/agents/{id}/sign: a signature in the agent's name, and the event that tells of it."""

import base64
from typing import Any

import pytest

from agents.tests.factories import make_active_agent, make_agent, make_retired_agent, make_suspended_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.tests.client import ApiClient
from events.tests.conftest import World, shared_world

PAYLOAD = {"order": 7, "note": "é", "amount": 1.5}


world = shared_world


def path(agent_id: object) -> str:
    return f"/v1/agents/{agent_id}/sign"


def test_payload_is_signed_and_the_event_logged(world: World) -> None:
    answer = world.api.post(path(world.agent.id), {"payload": PAYLOAD})

    assert answer.status_code == 200
    data = answer.json()["data"]
    event = world.events().get()
    assert base64.b64decode(data["signature"], validate=True)
    assert data["algorithm"] == "RSASSA_PKCS1_V1_5_SHA_256"
    assert data["agent_id"] == str(world.agent.id)
    assert data["event_id"] == str(event.id)
    assert (event.action_type, event.risk_band) == ("message_signed", "low")
    assert event.details == {
        "payload_hash": data["payload_hash"],
        "algorithm": data["algorithm"],
        "certificate_serial": data["certificate_serial"],
    }


def test_signature_is_audited_without_the_payload(world: World) -> None:
    world.api.post(path(world.agent.id), {"payload": {"secret": "hush"}})

    entry = AuditEntry.objects.for_tenant(world.tenant.id).get(event_type=AuditAction.MESSAGE_SIGNED)
    assert entry.affected_id == str(world.agent.id)
    assert "hush" not in str(entry.metadata)


def test_signature_verifies_in_public(world: World, api: ApiClient) -> None:
    signed = world.api.post(path(world.agent.id), {"payload": PAYLOAD}).json()["data"]
    body = {
        "payload": PAYLOAD,
        "signature": signed["signature"],
        "certificate_serial": signed["certificate_serial"],
    }

    answer = api.post("/v1/verify/message", body).json()["data"]
    tampered = api.post("/v1/verify/message", body | {"payload": PAYLOAD | {"order": 8}}).json()["data"]

    assert answer["valid"] is True
    assert answer["agent_id"] == str(world.agent.id)
    assert tampered["valid"] is False


@pytest.mark.parametrize("body", [{}, {"payload": None}, {"payload": {"n": 2**53 + 1}}])
def test_payload_that_can_not_be_signed_is_refused(world: World, body: dict[str, Any]) -> None:
    answer = world.api.post(path(world.agent.id), body)

    assert answer.status_code == 400
    assert not world.events().exists()


@pytest.mark.parametrize("make", [make_agent, make_suspended_agent, make_retired_agent, make_active_agent])
def test_agent_that_is_not_active_and_certified_is_refused(world: World, make: Any) -> None:
    answer = world.api.post(path(make(world.tenant).id), {"payload": PAYLOAD})

    assert answer.status_code == 422
    assert answer.json() == {"error": "Agent is not active"}
