"""Real runs of frameworks with a stub model that calls a tool ten times, as their exporters sent them.

`made_with` in each file names the packages. Their own tracing (AutoGen, Semantic Kernel, MCP, the AI SDK) or
OpenInference's made the spans. They are recorded as OpenAI Agents is a package `agents`, like a room here,
and others take up to 800 MB.
"""

import base64
import gzip
import json
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agents.models import Agent
from compliance.core.clock import now
from events.otlp.tests.spans import refused, send
from events.tests.conftest import World

RECORDED = Path(__file__).with_name("recorded")
ARGUMENTS = [{"city": f"c{number}"} for number in range(10)]


def requests_of(recording: Path, agent: Agent) -> list[bytes]:
    """The requests, with the resource attribute of the agent and as if they had ended a second ago."""
    found = []
    for octets in json.loads(recording.read_text())["requests"]:
        request = ExportTraceServiceRequest.FromString(gzip.decompress(base64.b64decode(octets)))
        found.append(request)
    spans = [
        span for one in found for resource in one.resource_spans for scope in resource.scope_spans
        for span in scope.spans
    ]  # fmt: skip
    later = int(now().timestamp() * 1e9) - 10**9 - max(span.end_time_unix_nano for span in spans)
    for span in spans:
        span.start_time_unix_nano += later
        span.end_time_unix_nano += later
    for one in found:
        for resource in one.resource_spans:
            named = resource.resource.attributes.add(key="agentid.agent.id")
            named.value.string_value = str(agent.id)
    return [one.SerializeToString() for one in found]


@pytest.mark.parametrize("name", [path.stem for path in sorted(RECORDED.glob("*.json"))])
def test_every_call_of_a_framework_is_an_event_and_none_is_twice_after_a_retry(
    world: World, name: str
) -> None:
    requests = requests_of(RECORDED / f"{name}.json", world.agent)

    for body in [*requests, *requests]:
        assert refused(send(world, body, protobuf=True)) == (0, "")

    stored = list(world.events().order_by("id"))
    tool = "desk-search" if name == "semantic-kernel" else "search"
    assert [event.details["tool"] for event in stored] == [tool] * 10
    assert {event.details["outcome"] for event in stored} == {"succeeded"}
    # AutoGen and MCP record no arguments.
    said = [event.details.get("arguments") for event in stored]
    assert sorted(said, key=str) == (ARGUMENTS if name not in ("autogen", "mcp") else [None] * 10)
    assert "secret words" not in str([event.details for event in stored])
