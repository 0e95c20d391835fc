"""`message_verification_failed`: recorded for the agent that received a bad message, by its own tenant."""

from collections.abc import Callable
from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_active_agent, make_agent, make_retired_agent, make_suspended_agent
from certificates.models import Certificate
from certificates.public import messages
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from events.models import BehaviorEvent
from events.tests.conftest import World, shared_world
from tenancy import keys
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key

PAYLOAD = {"order": 7}


world = shared_world


@pytest.fixture
def message() -> dict[str, Any]:
    """A sound message of another tenant's agent."""
    sender = make_certified_agent(make_tenant("Sender"))
    certificate = Certificate.objects.get(agent=sender)
    signed = messages.sign_message(certificate=certificate, payload=PAYLOAD)
    serial = signed.certificate_serial
    return {"payload": PAYLOAD, "signature": signed.signature, "certificate_serial": serial}


def check(api: ApiClient, message: dict[str, Any], agent_id: object, **changes: Any) -> Any:
    return api.post("/v1/verify/message", {**message, "verifier_agent_id": str(agent_id), **changes})


def test_bad_message_is_an_event_of_its_receiver(world: World, message: dict[str, Any]) -> None:
    answer = check(world.api, message, world.agent.id, payload={"order": 8})

    data, event = answer.json()["data"], world.events().get()
    assert (data["valid"], data["reason"], data["event_id"]) == (False, "invalid_signature", str(event.id))
    assert (event.agent_id, event.action_type) == (world.agent.id, "message_verification_failed")
    assert event.details == {
        "reason": "invalid_signature",
        "certificate_serial": message["certificate_serial"],
        "payload_hash": data["payload_hash"],
    }


def test_sound_message_is_no_event(world: World, message: dict[str, Any]) -> None:
    answer = check(world.api, message, world.agent.id)

    assert answer.json()["data"]["valid"] is True
    assert "event_id" not in answer.json()["data"]
    assert not BehaviorEvent.objects.exists()


def test_message_for_others_is_an_event_too(world: World, message: dict[str, Any]) -> None:
    answer = check(world.api, message, world.agent.id, audience="https://broker.example")

    assert answer.json()["data"]["reason"] == "invalid_audience"
    assert world.events().get().details["reason"] == "invalid_audience"


def test_key_alone_records_nothing(world: World, message: dict[str, Any]) -> None:
    assert world.api.post("/v1/verify/message", {**message, "payload": {}}).status_code == 200
    assert not BehaviorEvent.objects.exists()


@pytest.mark.parametrize("is_sound", [True, False])
def test_nobody_records_for_an_agent_without_its_tenants_key(
    world: World, api: ApiClient, message: dict[str, Any], *, is_sound: bool
) -> None:
    """Whatever the message is worth, so that the answer tells nothing of the agent."""
    changes: dict[str, Any] = {} if is_sound else {"payload": {}}
    callers = {
        "none": (api, 401),
        "garbage": (api.as_key("x"), 401),
        "made up": (api.as_key(keys.new_secret(Environment.LIVE)), 401),
        "another tenant": (api.as_key(make_key(make_tenant("Other"))), 404),
        "sandbox": (api.as_key(make_test_key(world.tenant)), 404),
        "no scope": (api.as_key(make_key(world.tenant, ["events:read", "messages:sign"])), 403),
    }

    for name, (caller, status) in callers.items():
        assert check(caller, message, world.agent.id, **changes).status_code == status, name
    assert not BehaviorEvent.objects.exists()


@pytest.mark.parametrize("make", [make_agent, make_suspended_agent, make_retired_agent, make_active_agent])
def test_agent_that_is_not_active_and_certified_is_refused(
    world: World, message: dict[str, Any], make: Callable[[Tenant], Agent]
) -> None:
    answer = check(world.api, message, make(world.tenant).id, payload={})

    assert (answer.status_code, answer.json()) == (422, {"error": "Agent is not active"})


def test_unknown_certificate_and_malformed_jws_are_no_events(world: World, message: dict[str, Any]) -> None:
    assert check(world.api, message, world.agent.id, certificate_serial="x").status_code == 404
    body = {"payload": {}, "jws": "x", "verifier_agent_id": str(world.agent.id)}
    assert world.api.post("/v1/verify/message", body).status_code == 400

    assert not BehaviorEvent.objects.exists()


def test_sandbox_agent_may_receive_a_live_message(
    world: World, api: ApiClient, message: dict[str, Any]
) -> None:
    with environments.use(Environment.TEST):
        agent = make_certified_agent(Tenant.objects.get(id=world.tenant.id))
    sandbox = api.as_key(make_test_key(world.tenant))

    answer = check(sandbox, message, agent.id, payload={})

    assert answer.json()["data"]["reason"] == "invalid_signature"
    assert not BehaviorEvent.objects.exists()
    with environments.use(Environment.TEST):
        assert BehaviorEvent.objects.get().agent_id == agent.id


def test_recorded_failures_count_against_the_limit_of_events(
    world: World, message: dict[str, Any], settings: Any
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "events": 2}

    statuses = [check(world.api, message, world.agent.id, payload={}).status_code for _ in range(3)]

    assert statuses == [200, 200, 429]
    assert world.events().count() == 2


def test_wrong_keys_count_as_everywhere(
    api: ApiClient, world: World, message: dict[str, Any], settings: Any
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": 2}

    guesses = [api.as_key(keys.new_secret(Environment.LIVE)) for _ in range(3)]

    assert [check(one, message, world.agent.id).status_code for one in guesses] == [401, 401, 429]
    assert check(world.api, message, world.agent.id).status_code == 200


def test_flood_of_forgeries_does_not_stop_its_receiver(world: World, message: dict[str, Any]) -> None:
    """Anyone can send forgeries: by these alone nobody is to stop the agent that reports them."""
    for number in range(60):
        check(world.api, message, world.agent.id, payload={"forged": number})

    assert world.events().count() == 60
    assert not world.events().high_risk().exists()
    world.agent.refresh_from_db()
    assert world.agent.status == "active"
