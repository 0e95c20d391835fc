"""`/v1/otlp/names`: spans of unknown agents are refused and listed, and one request gives them an agent."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from agents.models import Agent
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.tests.threads import in_thread
from events.otlp import services
from events.otlp.services import MOST_UNKNOWN, UNKNOWN_AGENT
from events.otlp.tests.spans import export, of, refused, send, span, tool
from events.tests.conftest import World
from tenancy.models import Tenant

PATH = "/v1/otlp/names"
SERVICE, NAME = "service.name", "gen_ai.agent.name"


def mapping(agent: Agent, source: str = SERVICE, name: str = "desk") -> dict[str, Any]:
    return {"source": source, "name": name, "agent_id": str(agent.id)}


def listed(world: World) -> list[tuple[str, str, str | None]]:
    found = world.api.get(PATH).json()["data"]
    return [(one["source"], one["name"], one["agent_id"]) for one in found]


def test_spans_of_an_unknown_agent_arrive_once_a_name_is_mapped(world: World) -> None:
    run = span({"gen_ai.operation.name": "invoke_agent", NAME: "trader"})
    body = export(run, tool(within=run), service_name="desk")

    before = refused(send(world, body))
    unknown = listed(world)
    mapped = world.api.post(PATH, mapping(world.agent))
    after = refused(send(world, body))

    assert before == (1, f"{UNKNOWN_AGENT} (1)")
    assert sorted(unknown) == [(NAME, "trader", None), (SERVICE, "desk", None)]
    assert (mapped.status_code, mapped.json()["data"]["agent_id"]) == (201, str(world.agent.id))
    assert after == (0, "")
    assert [event.agent_id for event in world.events()] == [world.agent.id]
    entry: Any = AuditEntry.objects.get(event_type="traced_name.mapped", tenant_id=world.tenant.id)
    told = {"source": SERVICE, "name": "desk", "agent_id": str(world.agent.id)}
    assert entry.metadata.items() >= told.items()


def test_the_most_telling_name_and_before_it_the_resource_decide(world: World) -> None:
    other = make_certified_agent(world.tenant)
    world.api.post(PATH, mapping(world.agent))
    world.api.post(PATH, mapping(other, NAME, "trader"))
    run = span({"gen_ai.operation.name": "invoke_agent", NAME: "trader"})

    send(world, export(run, tool("by_name", within=run), tool("by_service"), service_name="desk"))
    send(
        world, export(run, tool("stated", within=run), service_name="desk", agentid_agent_id=world.agent.did)
    )

    assert {event.details["tool"]: event.agent_id for event in world.events()} == {
        "by_name": other.id, "by_service": world.agent.id, "stated": world.agent.id,
    }  # fmt: skip


def test_a_deleted_name_stands_for_nobody(world: World) -> None:
    row = world.api.post(PATH, mapping(world.agent)).json()["data"]

    assert world.api.delete(f"{PATH}/{row['id']}").status_code == 204
    assert world.api.delete(f"{PATH}/{row['id']}").status_code == 404
    assert refused(send(world, export(tool(), service_name="desk")))[0] == 1
    assert AuditEntry.objects.get(event_type="traced_name.removed", tenant_id=world.tenant.id)


def test_a_name_is_mapped_once(world: World) -> None:
    assert world.api.post(PATH, mapping(world.agent)).status_code == 201
    assert world.api.post(PATH, mapping(world.agent)).status_code == 409


def test_unknown_names_are_bounded_and_those_met_last_are_kept(world: World) -> None:
    for start in range(0, MOST_UNKNOWN + 20, 30):
        several = [export(tool(), service_name=f"s{n}") for n in range(start, start + 30)]
        send(world, {"resourceSpans": [one["resourceSpans"][0] for one in several]})

    names = {name for _, name, _ in listed(world)}
    assert len(names) == MOST_UNKNOWN
    assert {f"s{n}" for n in range(30, 120)} <= names


def test_spans_are_stored_though_their_names_cannot_be_noted(committed: None, world: World) -> None:
    body = of(world.agent, tool())
    body["resourceSpans"] += export(tool(), service_name="desk")["resourceSpans"]

    def send_impatiently() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 300")
        return send(world, body)

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        Tenant.objects.select_for_update(no_key=True).get(id=world.tenant.id)
        answer = pool.submit(in_thread, send_impatiently).result()

    assert refused(answer) == (1, f"{UNKNOWN_AGENT} (1)")
    assert (world.events().count(), listed(world)) == (1, [])
    send(world, body)
    assert listed(world) == [(SERVICE, "desk", None)]


def test_mapped_names_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_MAPPED", 1)
    world.api.post(PATH, mapping(world.agent))

    assert world.api.post(PATH, mapping(world.agent, name="other")).status_code == 409
