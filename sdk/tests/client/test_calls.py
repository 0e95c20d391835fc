"""Calls of the running service, by both clients."""

import asyncio
import json
from datetime import UTC
from itertools import islice
from uuid import uuid4

import pytest

from agentid import (
    AsyncClient,
    Client,
    NotAuthenticated,
    NotFound,
    Refused,
    UnexpectedAnswer,
    Unreachable,
)
from agentid.client.generated.operations import Events
from agentid.client.generated.results import Agent
from agentid.client.records import Record, read
from agentid.client.transport import Retries
from agentid.keys import DpopKey
from tests.between import Canned, between
from tests.conftest import Reported
from tests.served import Service


def test_agent_is_registered_certified_and_verified(client: Client) -> None:
    agent = client.agents.register(name="price-checker", model_hash="sha256:0", metadata={"team": "ü"})
    certificate = client.agents.certify(agent.id)
    found = client.certificates.verify(certificate.serial_number)

    assert (agent.name, agent.metadata, agent.created_at.tzinfo) == ("price-checker", {"team": "ü"}, UTC)
    assert (found.status, found.agent_id) == ("active", agent.id)
    assert client.agents.get(agent.id).status == "active"


def test_event_is_recorded_once_under_its_idempotency_key(client: Client, reported: Reported) -> None:
    key, agent_id = str(uuid4()), str(reported.agent.id)

    first, second = (
        client.events.record(agent_id=agent_id, action_type="api_call", details={"n": 1}, idempotency_key=key)
        for _ in range(2)
    )

    assert first == second
    assert reported.numbers() == [1]


@pytest.mark.parametrize(("agent_id", "header"), [("a-1", {"X-Agent-Id": "a-1"}), ("ä", {}), ("a\n", {})])
def test_event_names_its_agent_for_balancers(agent_id: str, header: dict[str, str]) -> None:
    described = Events.record.request(agent_id=agent_id, action_type="api_call")

    assert described.headers == {"Accept": "application/json", "Content-Type": "application/json", **header}


def test_list_walks_over_all_pages(client: Client, reported: Reported) -> None:
    agent_id = str(reported.agent.id)
    events = [{"agent_id": agent_id, "action_type": "api_call", "details": {"n": n}} for n in range(7)]
    assert all(each.status == 201 for each in client.events.record_batch(events))

    found = [each.details["n"] for each in client.events.list(agent_id=agent_id, limit=2)]

    assert sorted(found) == list(range(7))
    assert len(list(islice(client.events.list(agent_id=agent_id, limit=2), 3))) == 3


class Scored(Record):
    id: str
    risk_score: float


def test_list_that_leads_nowhere_ends() -> None:
    async def walked(address: str) -> list[Agent]:
        async with AsyncClient(address) as client:
            return [each async for each in client.agents.list()]

    with between("", Canned(200, b'{"data": [], "next_cursor": "again"}')) as endless:
        with Client(endless.address) as client, pytest.raises(UnexpectedAnswer):
            list(client.agents.list())
        with pytest.raises(UnexpectedAnswer):
            asyncio.run(walked(endless.address))


def test_number_too_large_for_its_field_is_an_unexpected_answer() -> None:
    answer = json.loads('{"id": "a", "risk_score": 1%s}' % ("0" * 400))

    with pytest.raises(UnexpectedAnswer):
        read(Scored, answer, "answer")


def test_async_client_does_the_same(service: Service, reported: Reported) -> None:
    async def play() -> list[int]:
        async with AsyncClient(service.address, reported.api_key) as client:
            for n in range(3):
                await client.events.record(
                    agent_id=str(reported.agent.id), action_type="api_call", details={"n": n}
                )
            return [each.details["n"] async for each in client.events.list(limit=2)]

    assert sorted(asyncio.run(play())) == [0, 1, 2]


def test_other_things_are_not_found_and_wrong_requests_refused(client: Client) -> None:
    with pytest.raises(NotFound) as missing:
        client.agents.get(str(uuid4()))
    with pytest.raises(Refused) as wrong:
        client.agents.register(name="", model_hash="sha256:0")

    assert (missing.value.status, missing.value.message) == (404, "Agent not found")
    assert wrong.value.status == 400


def test_wrong_key_is_refused_and_in_no_text(service: Service) -> None:
    key = "service_live_" + "x" * 43
    with Client(service.address, key) as client, pytest.raises(NotAuthenticated) as refused:
        next(client.agents.list())

    texts = [repr(client), repr(client.transport.configuration), repr(refused.value), str(refused.value)]
    assert not any(key in text for text in texts)


def test_service_that_is_away_is_unreachable() -> None:
    quick = Retries(tries=2, first_wait=0.01)
    with Client("http://127.0.0.1:9", retries=quick) as client, pytest.raises(Unreachable):
        client.authorities.list()


def test_names_that_lead_elsewhere_are_never_sent(client: Client) -> None:
    with pytest.raises(ValueError, match="dots"):
        client.agents.get("..")
    with pytest.raises(NotFound):
        client.agents.get("../agents?limit=1#")


def test_token_is_bound_to_the_key_that_proves_itself(client: Client, reported: Reported) -> None:
    key, chain = DpopKey.generate(), [{"sub": "checker", "type": "agent"}]

    issued = client.delegation.issue(str(reported.agent.id), chain=chain, proof=key.proof)

    assert issued.bound_to == key.thumbprint
