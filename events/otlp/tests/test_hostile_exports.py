"""Exports made to break their reader: each is refused, and none takes long or fills the memory."""

import gzip
import json
import random
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from compliance.core.errors import Invalid, ServiceError, TooLarge
from compliance.core.json_values import MAX_OCTETS
from events.otlp import mapping, reading
from events.otlp.mapping import ATTRIBUTES, events_of
from events.otlp.reading import LARGEST, LARGEST_SPAN, MOST_PARTS, TraceExport
from events.otlp.tests.spans import CLIENT, TENANT, attributes, export, send, span, to_protobuf, tool
from events.tests.conftest import World


def read(body: bytes, *, is_json: bool = False, is_gzip: bool = False) -> TraceExport:
    return reading.read(body, is_json=is_json, is_gzip=is_gzip, wanted=ATTRIBUTES)


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def deep_value(levels: int) -> bytes:
    value = b"\x18\x01"
    for _ in range(levels):
        value = field(5, field(1, value))
    return value


def of_attribute(value: bytes) -> bytes:
    pair = field(1, b"gen_ai.tool.call.arguments") + field(2, value)
    return field(1, field(2, field(2, field(9, pair))))


def deep_json(levels: int) -> bytes:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    return json.dumps(export(tool(arguments=nested))).encode()


JSON_FAULTS = [
    b"", b"[]", b"null", b"{", b'{"resourceSpans": 1}', b'{"resourceSpans": [null]}', b"\xff", b"[" * 300_000,
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "abc"}]}]}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"endTimeUnixNano": "1.5"}]}]}]}',
    b'{"resourceSpans": [{"resource": {"attributes": [{"key": "db.name", "value": {"doubleValue": "x"}}]}}]}',
    b'{"resourceSpans": [{"resource": {"attributes": [{"key": "db.name", "value": {"stringValue": 1}}]}}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "\\ud800"}]}]}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"endTimeUnixNano": 1' + b"0" * 400 + b"}]}]}]}",
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": -9223372036854775809}]}]}]}',
    b'{"resourceSpans": [{"resource": {"attributes": [{"key": "db.name", "value": {"doubleValue": 1'
    + b"0" * 400 + b"}}]}}]}",
]  # fmt: skip


@pytest.mark.parametrize("body", JSON_FAULTS)
def test_bad_json_is_invalid(body: bytes) -> None:
    with pytest.raises(Invalid):
        read(body, is_json=True)


@pytest.mark.parametrize(
    ("body", "is_json"), [(of_attribute(deep_value(40)), False), (of_attribute(deep_value(5_000)), False),
                          (deep_json(33), True), (deep_json(300), True)]
)  # fmt: skip
def test_deep_attributes_are_invalid(body: bytes, is_json: bool) -> None:
    with pytest.raises(Invalid):
        read(body, is_json=is_json)


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x00" * (MOST_PARTS + 1),
        field(1, b"\x0a\x00" * (MOST_PARTS + 1)),
        field(1, b"\x12\x00" * (MOST_PARTS + 1)),
        field(1, field(2, b"\x12\x00" * (MOST_PARTS + 1))),
        field(1, field(2, field(2, b"\x4a\x00" * (MOST_PARTS + 1)))),
        of_attribute(field(5, b"\x0a\x00" * (MOST_PARTS + 1))),
        of_attribute(field(6, b"\x0a\x00" * (MOST_PARTS + 1))),
    ],
    ids=["resources", "pieces of a resource", "scopes", "spans", "attributes", "array", "pairs"],
)
def test_more_parts_than_any_library_sends_are_too_large(body: bytes) -> None:
    with pytest.raises(TooLarge):
        read(body)


@pytest.mark.parametrize("place", ["resource", "span"])
def test_resources_and_spans_of_more_than_a_mebibyte_are_too_large(place: str) -> None:
    pair = field(1, b"unread") + field(2, field(1, b"x" * LARGEST_SPAN))
    holder = field(1, field(1, pair)) if place == "resource" else field(2, field(2, field(9, pair)))

    with pytest.raises(TooLarge):
        read(field(1, holder))


def test_gzip_is_read_to_its_bound_and_no_further() -> None:
    bomb = gzip.compress(b"\0" * 512 * 1024 * 1024, 9)
    tracemalloc.start()

    with pytest.raises(TooLarge):
        read(bomb, is_gzip=True)

    assert tracemalloc.get_traced_memory()[1] < 4 * LARGEST
    tracemalloc.stop()


@pytest.mark.parametrize(
    "spoil", [lambda raw: raw[:-9], lambda raw: raw + b"x", lambda raw: b"x" + raw, lambda _: b""]
)
def test_what_is_no_whole_gzip_file_is_invalid(spoil: Any) -> None:
    with pytest.raises(Invalid):
        read(spoil(gzip.compress(b"{}")), is_json=True, is_gzip=True)


def test_mutated_exports_are_read_or_refused() -> None:
    run = span({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"})
    body = export(run, tool(within=run, arguments={"a": [1, 2.5, True, {"b": "c"}]}), service_name="s")
    dice, seen = random.Random(1), Counter[str]()
    for raw, is_json in ((to_protobuf(body), False), (json.dumps(body).encode(), True)):
        for _ in range(2_000):
            broken = bytearray(raw)
            for _ in range(dice.randint(1, 4)):
                place = dice.randrange(len(broken))
                broken[place : place + dice.randint(0, 2)] = dice.randbytes(dice.randint(0, 2))
            try:
                events_of(read(bytes(broken), is_json=is_json).spans, tenant_id=TENANT, mapped=())
                seen["read"] += 1
            except ServiceError:
                seen["refused"] += 1
    assert seen.total() == 4_000
    assert min(seen["read"], seen["refused"]) > 0


def test_parents_in_a_circle_end() -> None:
    one, other = tool(), span({"http.request.method": "GET"}, kind=CLIENT)
    other |= {"traceId": one["traceId"], "parentSpanId": one["spanId"]}
    one["parentSpanId"] = other["spanId"]

    found, _ = events_of(read(to_protobuf(export(one, other))).spans, tenant_id=TENANT, mapped=())

    assert "search" in {event.fields["details"].get("tool") for event in found}


def test_a_long_line_of_parents_is_walked() -> None:
    line = [tool()]
    for _ in range(20_000):
        line.append(span({}, within=line[-1]))
    line.append(span({"http.request.method": "GET"}, within=line[-1], kind=CLIENT))

    spans = read(to_protobuf(export(*reversed(line)))).spans
    assert len(events_of(spans, tenant_id=TENANT, mapped=())[0]) == 2


def test_an_export_of_more_events_than_may_be_is_mapped_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "MOST_EVENTS", 3)
    outer = tool()
    line = [outer, *(tool(within=outer) for _ in range(2))]

    assert len(events_of(read(to_protobuf(export(*line))).spans, tenant_id=TENANT, mapped=())[0]) == 1
    with pytest.raises(TooLarge):
        events_of(read(to_protobuf(export(*line, tool()))).spans, tenant_id=TENANT, mapped=())


@pytest.mark.parametrize("stated", [["x" * 300], "x" * 300, {"a": "x"}, 1.5])
def test_what_is_no_id_of_an_agent_is_not_kept(stated: Any) -> None:
    spans = read(to_protobuf(export(tool(), agentid_agent_id=stated))).spans

    assert [event.agent_id for event in events_of(spans, tenant_id=TENANT, mapped=())[0]] == [""]


def test_arguments_that_are_too_long_are_not_parsed() -> None:
    arguments = "[" + " " * MAX_OCTETS + "1]"
    spans = read(to_protobuf(export(tool(arguments=arguments)))).spans

    (event,), _ = events_of(spans, tenant_id=TENANT, mapped=())

    assert event.fields["details"]["arguments"] == arguments


def test_large_bodies_are_413_before_and_after_they_are_unpacked(world: World) -> None:
    plain, packed = b"x" * (1024 * 1024 + 1), b"\0" * 64 * 1024 * 1024

    assert send(world, plain, protobuf=True).status_code == 413
    assert send(world, packed, protobuf=True, packed=True).status_code == 413


def test_attributes_in_every_kind_of_value_are_read_alike() -> None:
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    said = {
        "deep": deep,
        "text": "é",
        "yes": True,
        "no": False,
        "number": -(2**53),
        "half": 0.5,
        "list": [1, "a", {}],
        "map": {},
    }
    body = export(tool(arguments=said))
    body["resourceSpans"][0]["resource"]["attributes"] = attributes({"service.name": "s"})

    spans = read(to_protobuf(body)).spans

    assert spans == read(json.dumps(body).encode(), is_json=True).spans
    assert spans[0].attributes["gen_ai.tool.call.arguments"] == said
    assert spans[0].resource == {"service.name": "s"}
