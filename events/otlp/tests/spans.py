"""Exports as OpenTelemetry's libraries send them, as JSON and as protobuf."""

import base64
import copy
import gzip
import json
import secrets
from typing import Any
from uuid import UUID

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from agents.models import Agent
from compliance.core.clock import now
from events.tests.conftest import World

PATH = "/v1/otlp/v1/traces"
JSON, PROTOBUF = "application/json", "application/x-protobuf"
INTERNAL, SERVER, CLIENT = 1, 2, 3
TRACE = "5b8efff798038103d269b633813fc60c"
TENANT = UUID("0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f")
Told = dict[str, Any]


def any_value(value: Any) -> Told:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    return {"stringValue": value}


def attributes(said: Told) -> list[Told]:
    return [{"key": key, "value": any_value(value)} for key, value in said.items()]


def span(
    said: Told, *, within: Told | None = None, kind: int = INTERNAL, name: str = "", **more: Any
) -> Told:
    """A span that ended a second ago, after half a second."""
    end = int(now().timestamp() * 1e9) - 10**9
    return {
        "traceId": within["traceId"] if within else secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "parentSpanId": within["spanId"] if within else "",
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(end - 5 * 10**8),
        "endTimeUnixNano": str(end),
        "attributes": attributes(said),
        **more,
    }


def tool(name: str = "search", *, arguments: Any = None, **options: Any) -> Told:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(said | ({} if arguments is None else {"gen_ai.tool.call.arguments": arguments}), **options)


def export(*spans: Told, **resource: Any) -> Told:
    told = {"attributes": attributes({name.replace("_", "."): value for name, value in resource.items()})}
    return {"resourceSpans": [{"resource": told, "scopeSpans": [{"spans": list(spans)}]}]}


def of(agent: Agent, *spans: Told) -> Told:
    return export(*spans, agentid_agent_id=str(agent.id))


def to_protobuf(body: Told) -> bytes:
    """The same export, whose ids ProtoJSON would have in base64."""
    copied = copy.deepcopy(body)
    for one in copied["resourceSpans"]:
        for each in [each for scope in one["scopeSpans"] for each in scope["spans"]]:
            for name in ("traceId", "spanId", "parentSpanId"):
                each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
    return ParseDict(copied, ExportTraceServiceRequest()).SerializeToString()


def send(world: World, body: Told | bytes, *, protobuf: bool = False, packed: bool = False) -> Any:
    """What the service answers."""
    raw = body if isinstance(body, bytes) else to_protobuf(body) if protobuf else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {world.api.key}"} | ({"Content-Encoding": "gzip"} if packed else {})
    kind = PROTOBUF if protobuf else JSON
    return world.api._client.generic(
        "POST", PATH, gzip.compress(raw) if packed else raw, kind, headers=headers
    )


def refused(answer: Any) -> tuple[int, str]:
    """How many spans were refused, and why; none where all were accepted."""
    assert answer.status_code == 200, answer.content
    if answer["Content-Type"] == PROTOBUF:
        partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
        return partial.rejected_spans, partial.error_message
    partial = answer.json().get("partialSuccess", {})
    return int(partial.get("rejectedSpans", 0)), partial.get("errorMessage", "")
