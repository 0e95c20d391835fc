"""Turn the spans of agents into events: which of them count, what they say, and whom they name.

The attributes are those of OpenTelemetry's semantic conventions in both generations of their names, of
OpenInference, of OpenLLMetry (`traceloop.*`) and of the Vercel AI SDK. Prompts and completions are not read.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import chain
from typing import Any, Final
from uuid import UUID

import msgspec

from compliance.api.rest.parsers import loads
from compliance.core.errors import Invalid, TooLarge
from compliance.core.json_values import MAX_OCTETS
from compliance.core.plain_text import is_plain_text
from events.models import ActionType
from events.otlp.models import MAX_NAME, NameSource
from events.otlp.reading import CLIENT, CONSUMER, SERVER, TracedSpan

MOST_EVENTS: Final = 10_000
AGENT_ID: Final = "agentid.agent.id"
SERVICE: Final = "service.name"
ROLES: Mapping[str, Mapping[str, str]] = {
    "gen_ai.operation.name": {
        "execute_tool": "tool", "invoke_agent": "agent", "create_agent": "agent", "chat": "model",
        "text_completion": "model", "generate_content": "model", "embeddings": "model",
    },
    "mcp.method.name": {"tools/call": "tool"},
    "openinference.span.kind": {"TOOL": "tool", "AGENT": "agent", "LLM": "model", "EMBEDDING": "model"},
    "traceloop.span.kind": {"tool": "tool", "agent": "agent"},
}  # fmt: skip
"""What a span is by the value of an attribute; within one without a role, its parent's role goes on."""
NAMES: Mapping[str, tuple[str, ...]] = {
    "tool": ("gen_ai.tool.name", "ai.toolCall.name", "tool.name", "traceloop.entity.name"),
    "arguments": (
        "gen_ai.tool.call.arguments", "ai.toolCall.args", "ai.toolCall.input", "input.value",
        "traceloop.entity.input",
    ),
    NameSource.AGENT_ID: ("gen_ai.agent.id",),
    NameSource.AGENT_NAME: ("gen_ai.agent.name", "agent.name"),
    "session": (
        "gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
    ),
    "method": ("http.request.method", "http.method"),
    "url": ("url.full", "http.url"),
    "host": ("server.address", "net.peer.name", "http.host"),
    "status_code": ("http.response.status_code", "http.status_code"),
    "database_system": ("db.system.name", "db.system"),
    "operation": ("db.operation.name", "db.operation", "db.query.summary", "db.query.text", "db.statement"),
    "database": ("db.namespace", "db.name"),
    "table": ("db.collection.name", "db.sql.table"),
    "error": ("error.type",),
}  # fmt: skip
"""The attributes that say each thing, the newest convention first."""
ATTRIBUTES = frozenset({AGENT_ID, SERVICE, *ROLES, *chain.from_iterable(NAMES.values())})
_READS = "SELECT SHOW GET MGET HGET HGETALL SCAN FIND AGGREGATE COUNT SEARCH"
_WRITES = "INSERT UPDATE DELETE MERGE UPSERT REPLACE TRUNCATE DROP ALTER CREATE GRANT COPY SET HSET DEL"
DATABASE_ACTIONS = {
    **dict.fromkeys(_READS.split(), ActionType.DATA_ACCESS),
    **dict.fromkeys(_WRITES.split(), ActionType.DATA_MUTATION),
}
_EPOCH, _END = datetime(1970, 1, 1, tzinfo=UTC), 4_102_444_800 * 10**9
_WORD = re.compile("[A-Za-z]+")
Key = tuple[bytes, bytes]
Name = tuple[str, str]
"""An attribute that names an agent, and its value."""


class SpanEvent(msgspec.Struct):
    """A span that is an event: `agent_id` as its resource states it, else `names` of the agent, best first.

    `spans`: the ids under which the span and those merged into it count once, each of the time it ended.
    `ended_at`: the last of these times. `fields`: the event as a client would send it, without its agent.
    """

    spans: list[UUID]
    agent_id: str | None
    names: tuple[Name, ...]
    ended_at: datetime
    fields: dict[str, Any]


class _Within(msgspec.Struct, frozen=True):
    """What a span is, and is within: the nearest role, tool, agent's names, session, and outermost call."""

    own_role: str | None = None
    role: str | None = None
    tool: str | None = None
    call: Key | None = None
    names: tuple[Name, ...] = ()
    session: str | None = None


_NOWHERE, _IN_AGENT = _Within(), _Within(role="agent")


def events_of(
    spans: Sequence[TracedSpan], *, tenant_id: UUID, mapped: Collection[Name]
) -> tuple[list[SpanEvent], int]:
    """Return the events of an export in the order in which their spans began, and how many had no id or end.

    A tool's span within one of the same tool is the same call seen by another library: what it alone says is
    added to the outer one. `mapped`: the names that stand for agents. Raises: TooLarge beyond `MOST_EVENTS`.
    """
    whole = [s for s in spans if len(s.trace_id) == 16 and len(s.span_id) == 8 and any(s.span_id)]
    known = {(span.trace_id, span.span_id): span for span in whole}
    contexts: dict[Key, _Within] = {}
    found: dict[Key, SpanEvent] = {}
    unusable, count = len(spans) - len(whole), 0
    for key, span in sorted(known.items(), key=lambda one: (one[1].start, -one[1].end)):
        own = _context(key, known, contexts, mapped)
        fields, ended_at = _fields(span, own), _at(span.end)
        if fields is None:
            continue
        if ended_at is None:
            unusable += 1
            continue
        count += 1
        if count > MOST_EVENTS:
            raise TooLarge(f"A request may hold at most {MOST_EVENTS} spans that are events")
        span_id = _span_id(tenant_id, span)
        if own.own_role == "tool" and own.call != key and own.call in found:
            outer = found[own.call]
            outer.fields["details"] = fields["details"] | outer.fields["details"]
            outer.spans.append(span_id)
            outer.ended_at = max(outer.ended_at, ended_at)
        else:
            fields["occurred_at"] = (_at(span.start) or ended_at).isoformat()
            fields["session_id"] = own.session
            stated = span.resource.get(AGENT_ID)
            stated = None if stated is None else _name(stated) or ""
            found[key] = SpanEvent([span_id], stated, own.names + _service(span), ended_at, fields)
    return [*found.values()], unusable


def _context(
    key: Key, known: Mapping[Key, TracedSpan], contexts: dict[Key, _Within], mapped: Collection[Name]
) -> _Within:
    """Return what a span of the export is within, itself included; parents that go in a circle end it.

    Spans are exported as they end, those of an agent's calls before the agent's: where the resource is an
    agent's, a parent that is absent is taken for the agent.
    """
    path: dict[Key, TracedSpan] = {}
    while key not in contexts and key not in path and key in known:
        span = path[key] = known[key]
        key = (span.trace_id, span.parent_id)
    context = contexts.get(key, _NOWHERE)
    if key not in known and any(span.parent_id):
        is_agents = span.resource.get(AGENT_ID) is not None or any(name in mapped for name in _service(span))
        context = _IN_AGENT if is_agents else _NOWHERE
    for one, span in reversed(path.items()):
        context = contexts[one] = _within(one, span, context)
    return context


def _within(key: Key, span: TracedSpan, above: _Within) -> _Within:
    # What another process serves, it does on its own account.
    if span.kind in (SERVER, CONSUMER):
        return _NOWHERE
    role, tool, call = _role(span.attributes), above.tool, above.call
    if role == "tool":
        tool = _said(span, "tool") or span.name.rpartition("tools/call ")[2]
        call = above.call if above.role == "tool" and above.tool == tool else key
    said = ((source, _name(_said(span, source))) for source in (NameSource.AGENT_ID, NameSource.AGENT_NAME))
    names = tuple((source.value, name) for source, name in said if name)
    session = _name(_said(span, "session"))
    return _Within(role, role or above.role, tool, call, names or above.names, session or above.session)


def _role(attributes: Mapping[str, Any]) -> str | None:
    if "ai.toolCall.name" in attributes:
        return "tool"
    for name, roles in ROLES.items():
        if name in attributes and (role := roles.get(str(attributes[name]))) is not None:
            return role
    return None


def _fields(span: TracedSpan, own: _Within) -> dict[str, Any] | None:
    """Return action type and details of a span that is an event."""
    if own.own_role == "tool":
        said = {"tool": own.tool, "arguments": _arguments(_said(span, "arguments"))}
        return _event(span, ActionType.API_CALL, said, "url", "host")
    if span.kind != CLIENT or own.own_role is not None or own.role not in ("tool", "agent"):
        return None
    if _said(span, "database_system") is not None:
        word = _WORD.match(str(_said(span, "operation") or span.name))
        method = word[0].upper() if word else None
        action = DATABASE_ACTIONS.get(method or "", ActionType.API_CALL)
        return _event(span, action, {"method": method}, "database", "table", "host")
    if _said(span, "method") is not None:
        return _event(span, ActionType.API_CALL, {}, "method", "url", "host", "status_code")
    return None


def _event(span: TracedSpan, action: ActionType, said: dict[str, Any], *more: str) -> dict[str, Any]:
    told = said | {what: _said(span, what) for what in (*more, "error")}
    details = {name: value for name, value in told.items() if value is not None}
    details["outcome"] = "failed" if span.is_error or "error" in details else "succeeded"
    details["duration_ms"] = round(max(span.end - span.start, 0) / 1e6, 3)
    details |= {"trace_id": span.trace_id.hex(), "span_id": span.span_id.hex()}
    return {"action_type": action.value, "details": details}


def _arguments(value: Any) -> Any:
    """Return a call's arguments, which many libraries record as the text of their JSON."""
    # Longer ones are refused.
    if not isinstance(value, str) or len(value) > MAX_OCTETS or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        found = loads(value.encode())
    except (Invalid, UnicodeEncodeError):
        return value
    # OpenLLMetry puts them beside what LangChain was run with.
    return (
        found["inputs"] if isinstance(found, dict) and "input_str" in found and "inputs" in found else found
    )


def _said(span: TracedSpan, what: str) -> Any:
    for name in NAMES[what]:
        if (value := span.attributes.get(name)) is not None:
            return value
    return None


def _name(value: Any) -> str | None:
    """Return a name that a row can hold and people can read."""
    text = str(value) if isinstance(value, str | int) else ""
    return text if 0 < len(text) <= MAX_NAME and is_plain_text(text) else None


def _service(span: TracedSpan) -> tuple[Name, ...]:
    name = _name(span.resource.get(SERVICE))
    return ((NameSource.SERVICE.value, name),) if name else ()


def _at(nanoseconds: int) -> datetime | None:
    """Return a time from 1970 to 2100, to the microsecond; None for any other."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000) if 0 < nanoseconds < _END else None


def _span_id(tenant_id: UUID, span: TracedSpan) -> UUID:
    """Return a UUIDv7 of the time the span ended; the rest is derived from its tenant's and its own ids."""
    ids = tenant_id.bytes + span.trace_id + span.span_id
    digest = int.from_bytes(blake2b(ids, digest_size=10).digest())
    mixed = (span.end // 10**6) << 80 | digest
    return UUID(int=mixed & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62)
