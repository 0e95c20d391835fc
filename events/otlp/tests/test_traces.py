"""POST /v1/otlp/v1/traces: spans of agents become their events, each once."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess
from pytest_django.fixtures import Settings

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from compliance.tests.threads import at_once
from events import services as events
from events.models import BehaviorEvent
from events.otlp import services
from events.otlp.models import CountedSpan
from events.otlp.tests.spans import CLIENT, PATH, PROTOBUF, Told, export, of, refused, send, span, tool
from events.tests.conftest import World
from tenancy.models import Enforcement
from tenancy.tests.factories import make_key, make_tenant, make_test_key

ATTACK = "https://evil.example/collect"


def calls(count: int = 10) -> list[Told]:
    """A run of an agent that calls so many tools."""
    run = span({"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1"})
    return [run, *(tool(f"tool_{n}", arguments={"path": f"/docs/{n}"}, within=run) for n in range(count))]


@pytest.mark.parametrize("protobuf", [False, True], ids=["JSON", "protobuf"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_spans_become_events(world: World, protobuf: bool, packed: bool) -> None:
    run, call, *_ = calls(1)
    said = {"http.request.method": "POST", "url.full": ATTACK, "server.address": "evil.example"}
    request = span({**said, "http.response.status_code": 403, "error.type": "403"}, within=call, kind=CLIENT)

    answer = send(world, of(world.agent, run, call, request), protobuf=protobuf, packed=packed)

    assert refused(answer) == (0, "")
    assert answer.content == (b"" if protobuf else b"{}")
    first, second = world.events().order_by("id")
    assert (first.action_type, first.session_id, second.session_id) == ("api_call", "c1", "c1")
    told = {"trace_id": call["traceId"], "span_id": call["spanId"], "duration_ms": 500.0}
    assert first.details == {
        "tool": "tool_0", "arguments": {"path": "/docs/0"}, "outcome": "succeeded", **told,
    }  # fmt: skip
    assert second.details == {
        "method": "POST", "url": ATTACK, "host": "evil.example", "status_code": 403, "error": "403",
        "outcome": "failed", **told, "span_id": request["spanId"],
    }  # fmt: skip
    assert abs(first.occurred_at - (now() - timedelta(seconds=1.5))) < timedelta(minutes=1)


def test_a_span_counts_once_however_often_it_is_sent(world: World) -> None:
    body = of(world.agent, *calls(10))

    answers = [send(world, body) for _ in range(3)]
    together = send(world, of(world.agent, *calls(1)[1:] * 3))

    assert [refused(answer) for answer in (*answers, together)] == [(0, "")] * 4
    assert world.events().count() == 11


@pytest.mark.parametrize("alone", ["before", "after"])
def test_a_call_that_two_libraries_traced_counts_once(world: World, alone: str) -> None:
    outer = tool()
    inner = tool(within=outer)
    exports = [of(world.agent, inner), of(world.agent, outer, inner), of(world.agent, outer)]

    for body in exports if alone == "before" else [exports[1], exports[0], exports[2]]:
        assert refused(send(world, body)) == (0, "")

    assert world.events().count() == 1


def test_a_repeated_high_event_is_one_strike_and_audited_once(world: World) -> None:
    Agent.objects.filter(id=world.agent.id).update(enforcement=Enforcement.OBSERVE)
    body = of(world.agent, *calls(3))
    for one in body["resourceSpans"][0]["scopeSpans"][0]["spans"][1:]:
        one["attributes"][1]["value"]["stringValue"] = "outside_of_the_scope"
    Agent.objects.filter(id=world.agent.id).update(metadata={"permitted_actions": ["api_call"]})
    send(world, body)
    before = AuditEntry.objects.for_tenant(world.tenant.id).count()
    found = list(world.events().values_list("id", "risk_score"))

    send(world, body)

    assert len(found) == 3
    assert list(world.events().values_list("id", "risk_score")) == found
    assert AuditEntry.objects.for_tenant(world.tenant.id).count() == before


def test_the_same_batch_at_once_is_stored_once(committed: None, world: World) -> None:
    body = of(world.agent, *calls(10))

    answers = at_once(lambda: send(world, body))

    assert {answer.status_code for answer in answers} <= {200, 503}
    assert any(answer.status_code == 200 for answer in answers)
    send(world, body)
    assert Counter(one.details["tool"] for one in world.events()) == {f"tool_{n}": 1 for n in range(10)}


def test_what_could_not_be_stored_may_be_sent_again(
    committed: None, world: World, backend_dies_at: str
) -> None:
    send(world, of(world.agent, *calls(1)))
    dying = tool()
    dying["attributes"] += [{"key": "gen_ai.conversation.id", "value": {"stringValue": backend_dies_at}}]
    before = CountedSpan.objects.filter(tenant_id=world.tenant.id).count()

    broken = send(world, of(world.agent, *calls(2), dying))

    assert (broken.status_code, broken["Retry-After"]) == (503, "1")
    assert CountedSpan.objects.filter(tenant_id=world.tenant.id).count() == before
    assert world.events().count() == 1


def test_spans_of_agents_that_may_not_report_are_refused_by_reason(world: World) -> None:
    suspended = make_certified_agent(world.tenant)
    Agent.objects.filter(id=suspended.id).update(status=AgentStatus.SUSPENDED)
    foreign = make_certified_agent(make_tenant("Other"))
    whole: Told = {"resourceSpans": []}
    for agent in (world.agent, suspended, foreign):
        whole["resourceSpans"] += of(agent, tool())["resourceSpans"]
    whole["resourceSpans"] += export(tool(), agentid_agent_id="nonsense")["resourceSpans"]

    count, reasons = refused(send(world, whole))

    assert count == 3
    assert set(reasons.split("; ")) == {
        "Agent is not active (1)", "Agent not found (1)", "agent_id: Must be a valid UUID. (1)",
    }  # fmt: skip
    assert world.events().count() == 1
    Agent.objects.filter(id=suspended.id).update(status=AgentStatus.ACTIVE)
    assert refused(send(world, whole))[0] == 2
    assert world.events().count() == 2


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"endTimeUnixNano": "0"}, "A span needs"),
        ({"endTimeUnixNano": str(2**64 - 1)}, "A span needs"),
        ({"endTimeUnixNano": "1500000000000000000"}, "A span must have ended"),
        ({"endTimeUnixNano": "3000000000000000000"}, "A span must have ended"),
        ({"spanId": "00" * 8}, "A span needs"),
        ({"traceId": ""}, "A span needs"),
    ],
)
def test_bad_spans_are_refused_and_sink_no_other(world: World, broken: Told, reason: str) -> None:
    count, told = refused(send(world, of(world.agent, tool(), tool() | broken)))

    assert (count, world.events().count()) == (1, 1)
    assert told.startswith(reason)


def test_a_merged_span_that_has_yet_to_end_is_refused_with_its_call(world: World) -> None:
    outer = tool()

    answer = send(world, of(world.agent, outer, tool(within=outer, endTimeUnixNano="3000000000000000000")))

    assert refused(answer)[0] == 1
    assert not CountedSpan.objects.filter(tenant_id=world.tenant.id).exists()


@pytest.mark.parametrize(
    "arguments",
    ["\x00", {"a": "\x00"}, "x" * 70_000, {"a": ["x" * 70_000]}, {"\x00": 1}],
    ids=["NUL", "inner NUL", "long", "long within", "NUL in a name"],
)
def test_arguments_that_no_event_may_have_are_refused(world: World, arguments: Any) -> None:
    for protobuf in (False, True):
        assert refused(send(world, of(world.agent, tool(arguments=arguments)), protobuf=protobuf))[0] == 1
    assert not world.events().exists()


def test_sandbox_and_live_are_apart(world: World, api: ApiClient) -> None:
    sandbox = World(world.tenant, world.agent, api.as_key(make_test_key(world.tenant)))
    did = f"did:service:test:{world.agent.id}"

    assert refused(send(sandbox, of(world.agent, tool()))) == (1, "Agent not found (1)")
    assert refused(send(world, export(tool(), agentid_agent_id=did)))[0] == 1
    assert refused(send(world, export(tool(), agentid_agent_id=world.agent.did))) == (0, "")
    assert world.events().count() == 1


def status_of(content: bytes) -> tuple[int, str]:
    """The code and the message of a `google.rpc.Status`, whose fields have these numbers and types."""
    found: Message = ExportTracePartialSuccess.FromString(content)
    return found.rejected_spans, found.error_message  # type: ignore[attr-defined]


def test_errors_are_a_status_in_the_encoding_of_the_request(world: World, settings: Settings) -> None:
    keyless = World(world.tenant, world.agent, ApiClient())
    reader = World(world.tenant, world.agent, ApiClient(make_key(world.tenant, ["events:read"])))

    broken = send(world, b"\xff", protobuf=True)
    assert (broken.status_code, broken["Content-Type"], status_of(broken.content)[0]) == (400, PROTOBUF, 3)
    assert send(world, b"{").json()["code"] == 3
    assert status_of(send(keyless, b"x", protobuf=True).content)[0] == 16
    assert send(keyless, b"{}").json()["code"] == 16
    assert (send(reader, b"{}").status_code, send(reader, b"{}").json()["code"]) == (403, 7)
    other = world.api.raw("POST", PATH, b"x", "text/plain")
    assert (other.status_code, other.json()["code"]) == (415, 3)
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "events": 10}
    counted = send(world, of(world.agent, *calls(3), *(span({}) for _ in range(30))), packed=True)
    assert counted["X-RateLimit-Remaining"] == "4"
    limited = send(world, of(world.agent, *calls(9)), protobuf=True)
    assert (limited.status_code, status_of(limited.content)[0]) == (429, 8)
    assert int(limited["Retry-After"]) >= 1
    assert world.events().count() == 3


def test_a_portion_that_ends_early_goes_on(
    committed: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PORTION_SECONDS", 0.0)
    Agent.objects.filter(id=world.agent.id).update(metadata={"permitted_actions": ["read"]})

    assert refused(send(world, of(world.agent, *calls(5)))) == (0, "")

    assert world.events().count() == 5


def test_old_spans_are_forgotten_when_they_would_be_refused(world: World) -> None:
    body = of(world.agent, *calls(2))
    send(world, body)

    kept = services.forget(now=now() + services.KEPT)
    gone = services.forget(now=now() + services.KEPT + services.SLACK + timedelta(minutes=1))

    assert (kept, gone) == (0, 2)
    assert BehaviorEvent.objects.for_tenant(world.tenant.id).count() == 2
