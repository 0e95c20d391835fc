"""Which spans are events, what they say, and whom they name."""

import json
from collections.abc import Collection
from typing import Any
from uuid import UUID

import pytest

from events.otlp import reading
from events.otlp.mapping import ATTRIBUTES, Name, SpanEvent, events_of
from events.otlp.tests.spans import CLIENT, INTERNAL, SERVER, TENANT, Told, export, span, to_protobuf, tool

ALWAYS = {"outcome", "duration_ms", "trace_id", "span_id"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search", "server.address": "mcp.example"}
HTTP = {"http.request.method": "GET", "url.full": "https://a.example/x", "server.address": "a.example"}
OLD_HTTP = {
    "http.method": "GET",
    "http.url": "https://a.example/x",
    "net.peer.name": "a.example",
    "http.status_code": 200,
}
DATABASE = {"db.system.name": "postgresql", "db.operation.name": "SELECT", "db.collection.name": "orders"}
OLD_DATABASE = {"db.system": "mysql", "db.name": "shop", "db.statement": "delete from orders where id = 7"}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "trader", "gen_ai.agent.id": "a1"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "secret words"}


def read(
    *spans: Told, tenant_id: UUID = TENANT, mapped: Collection[Name] = (), **resource: Any
) -> list[SpanEvent]:
    body = to_protobuf(export(*spans, **resource))
    found = reading.read(body, is_json=False, is_gzip=False, wanted=ATTRIBUTES).spans
    return events_of(found, tenant_id=tenant_id, mapped=mapped)[0]


def said(event: SpanEvent) -> tuple[str, dict[str, Any]]:
    """The action type, and the details that differ from span to span."""
    details = event.fields["details"]
    assert details.keys() >= ALWAYS
    return event.fields["action_type"], {name: details[name] for name in details.keys() - ALWAYS}


@pytest.mark.parametrize(
    ("attributes", "kind", "action_type", "details"),
    [
        (TOOL, INTERNAL, "api_call", {"tool": "search"}),
        (MCP, CLIENT, "api_call", {"tool": "search", "host": "mcp.example"}),
        (HTTP, CLIENT, "api_call", {"method": "GET", "url": "https://a.example/x", "host": "a.example"}),
        (
            OLD_HTTP, CLIENT, "api_call",
            {"method": "GET", "url": "https://a.example/x", "host": "a.example", "status_code": 200},
        ),
        (DATABASE, CLIENT, "data_access", {"method": "SELECT", "table": "orders"}),
        (OLD_DATABASE, CLIENT, "data_mutation", {"method": "DELETE", "database": "shop"}),
        ({"db.system": "redis"}, CLIENT, "api_call", {"method": "PING"}),
        (
            {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": '{"q": "x"}'}, INTERNAL,
            "api_call", {"tool": "search", "arguments": {"q": "x"}},
        ),
        (
            {"traceloop.span.kind": "tool", "traceloop.entity.name": "search"}, INTERNAL,
            "api_call", {"tool": "search"},
        ),
        (
            {"ai.toolCall.name": "search", "ai.toolCall.args": "[1"}, INTERNAL,
            "api_call", {"tool": "search", "arguments": "[1"},
        ),
    ],
)  # fmt: skip
def test_span_below_an_agent_is_an_event(
    attributes: Told, kind: int, action_type: str, details: dict[str, Any]
) -> None:
    run = span(AGENT)

    (event,) = read(run, span(attributes, within=run, kind=kind, name="PING 1"))

    assert said(event) == (action_type, details)


@pytest.mark.parametrize(
    ("outer", "inner", "kind"),
    [
        ({}, HTTP, CLIENT),
        (AGENT, HTTP, SERVER),
        (AGENT, HTTP, INTERNAL),
        (CHAT, HTTP, CLIENT),
        (AGENT, CHAT, CLIENT),
        (AGENT, {**MCP, "mcp.method.name": "tools/list"}, CLIENT),
        (AGENT, MCP, SERVER),
        (AGENT, {"rpc.system": "grpc"}, CLIENT),
    ],
)
def test_other_spans_are_left_out(outer: Told, inner: Told, kind: int) -> None:
    run = span(outer)

    assert read(run, span(inner, within=run, kind=kind)) == []


@pytest.mark.parametrize("attributes", [HTTP, DATABASE])
@pytest.mark.parametrize(
    ("resource", "is_event"),
    [
        ({"agentid_agent_id": "a1"}, True),
        ({"service_name": "desk"}, True),
        ({"service_name": "other"}, False),
        ({}, False),
    ],
)
def test_where_the_resource_is_an_agents_an_absent_parent_is_too(
    attributes: Told, resource: dict[str, Any], is_event: bool
) -> None:
    absent = span(AGENT)
    between = span({}, within=absent)
    spans = [
        span(attributes, within=absent, kind=CLIENT),
        between,
        span(attributes, within=between, kind=CLIENT),
    ]

    assert len(read(*spans, mapped=[("service.name", "desk")], **resource)) == (2 if is_event else 0)


def test_an_agents_resource_makes_no_event_of_what_is_below_no_agent() -> None:
    chat, served = span(CHAT, within=span(AGENT)), span({}, within=span(AGENT), kind=SERVER)
    spans = [chat, span(HTTP, within=chat, kind=CLIENT), served, span(HTTP, within=served, kind=CLIENT)]
    top = span({})

    assert read(*spans, agentid_agent_id="a1") == []
    assert read(span(HTTP, kind=CLIENT), agentid_agent_id="a1") == []
    assert read(top, span(HTTP, within=top, kind=CLIENT), agentid_agent_id="a1") == []


def test_what_another_process_serves_is_not_the_agents() -> None:
    run = span(AGENT)
    served = span({"http.request.method": "GET"}, within=run, kind=SERVER)

    assert read(run, served, span(DATABASE, within=served, kind=CLIENT)) == []


def test_prompts_and_completions_are_not_read() -> None:
    run = span({**AGENT, "gen_ai.input.messages": "secret words", "input.value": "secret words"})
    call = span(
        {**TOOL, "gen_ai.tool.call.result": "secret words", "output.value": "secret words"}, within=run
    )

    found = read(run, span(CHAT, within=run), call)

    assert len(found) == 1
    assert "secret words" not in str(found)


def test_the_same_call_by_two_libraries_is_one_event_with_what_both_say() -> None:
    outer = tool("search")
    inner = span({**MCP, "gen_ai.tool.call.arguments": '{"q": 1}'}, within=outer, kind=CLIENT)

    (event,) = read(inner, outer)

    assert said(event)[1] == {"tool": "search", "host": "mcp.example", "arguments": {"q": 1}}
    assert event.fields["details"]["span_id"] == outer["spanId"]


def test_names_and_session_come_from_the_nearest_agent() -> None:
    run = span({**AGENT, "gen_ai.conversation.id": "c1"})
    inner = span({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}, within=run)
    spans = [run, tool("a", within=run), inner, tool("b", within=inner)]
    for n, one in enumerate(spans):
        one["startTimeUnixNano"] = str(int(one["startTimeUnixNano"]) + n)

    first, second = read(*reversed(spans), service_name="desk")

    service = ("service.name", "desk")
    assert first.names == (("gen_ai.agent.id", "a1"), ("gen_ai.agent.name", "trader"), service)
    assert second.names == (("gen_ai.agent.name", "helper"), service)
    assert first.fields["session_id"] == second.fields["session_id"] == "c1"


@pytest.mark.parametrize("name", ["", "x" * 256, "a\u202eb", "a\x00b"])
def test_names_that_nobody_can_read_name_nobody(name: str) -> None:
    assert read(tool(), service_name=name)[0].names == ()


def test_failure_is_told_without_its_words() -> None:
    status = {"code": 2, "message": "secret words"}
    typed = span({**TOOL, "error.type": "TimeoutError"})

    first, second = read(tool(status=status), typed)

    assert {first.fields["details"]["outcome"], second.fields["details"]["outcome"]} == {"failed"}
    assert [one.fields["details"].get("error") for one in (first, second)].count("TimeoutError") == 1
    assert "secret words" not in json.dumps([first.fields, second.fields])


def test_id_of_a_span_is_of_the_time_it_ended_and_the_same_each_time() -> None:
    one, other = tool(), tool()

    (first,), (again,), (second,) = read(one), read(one), read(other)

    assert first.spans == again.spans != second.spans
    assert first.spans[0].version == 7
    assert first.spans[0].int >> 80 == int(one["endTimeUnixNano"]) // 10**6


def test_id_of_a_span_is_of_its_tenant() -> None:
    one = tool()

    assert read(one)[0].spans != read(one, tenant_id=UUID(int=1))[0].spans
