"""Read OTLP trace exports, protobuf or JSON, into plain spans within fixed bounds of memory and time."""

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from math import isfinite
from threading import Lock
from typing import Any, Final

import msgspec
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from compliance.api.rest.parsers import MAX_DEPTH
from compliance.core.errors import Invalid, TooLarge

LARGEST: Final = 8 * 1024 * 1024  # octets after decompression
LARGEST_SPAN: Final = 1024 * 1024  # octets, of a resource too
MOST_PARTS: Final = 400_000  # resources, scopes, spans, attributes and values of one export
SERVER, CLIENT, CONSUMER = 2, 3, 5  # kinds of spans
ERROR: Final = 2  # the status of a span that failed
_GZIP: Final = 31  # zlib's window bits for a gzip header
_DIGITS: Final = re.compile("-?[0-9]{1,20}")
_INTEGERS: Final = range(-(2**63), 2**64)
# The last four, of JSON whose values are of other types than are looked for
_MALFORMED = (
    *(msgspec.MsgspecError, DecodeError, RecursionError),
    *(ValueError, OverflowError, TypeError, AttributeError, KeyError),
)


def _frames() -> Any:
    """Make a message whose fields 1 and 2 are lists of octets.

    An export's parts are counted in it before they are decoded: decoded, empty ones take a hundred times
    their octets.
    """
    file = FileDescriptorProto(name="frames.proto")
    message = file.message_type.add(name="Frames")
    kind, label = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.LABEL_REPEATED
    for number in (1, 2):
        message.field.add(name=f"field{number}", number=number, type=kind, label=label)
    return GetMessageClass(
        DescriptorPool().AddSerializedFile(file.SerializeToString()).message_types_by_name["Frames"]
    )


_Frames = _frames()
# Decoding takes many times the octets of a hostile export, so one is decoded at a time.
_decoding = Lock()


class TracedSpan(msgspec.Struct, frozen=True):
    """A span with the attributes that are read; times are nanoseconds since the epoch."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    name: str
    kind: int
    start: int
    end: int
    is_error: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


class TraceExport(msgspec.Struct, frozen=True):
    """The spans of a request, and the octets that they took uncompressed."""

    spans: list[TracedSpan]
    octets: int


def read(body: bytes, *, is_json: bool, is_gzip: bool, wanted: Collection[str]) -> TraceExport:
    """Return the spans of an `ExportTraceServiceRequest` with those of their attributes that are `wanted`.

    Raises: Invalid; TooLarge for an export beyond `LARGEST` or `MOST_PARTS`.
    """
    with _decoding:
        plain = gunzip(body) if is_gzip else body
        walk = _Walk(wanted)
        try:
            return TraceExport([*(walk.of_json if is_json else walk.of_protobuf)(plain)], len(plain))
        except _MALFORMED as error:
            raise Invalid("Request body is not an ExportTraceServiceRequest") from error


def gunzip(body: bytes) -> bytes:
    """Return what a gzip file holds. Raises: Invalid; TooLarge without reading further."""
    stream = zlib.decompressobj(_GZIP)
    try:
        found = stream.decompress(body, LARGEST + 1)
    except zlib.error as error:
        raise Invalid("Request body is not gzip") from error
    if len(found) > LARGEST:
        raise TooLarge(f"Request body is larger than {LARGEST} bytes uncompressed")
    if not stream.eof or stream.unused_data:
        raise Invalid("Request body is not one whole gzip file")
    return found


class _Walk:
    """Goes through an export, whose objects of JSON and of protobuf differ, and counts what it meets."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = wanted
        self._left = MOST_PARTS

    def of_protobuf(self, body: bytes) -> Iterator[TracedSpan]:
        for of_resource in map(_Frames.FromString, self._counted(_Frames.FromString(body).field1)):
            octets = b"".join(self._counted(of_resource.field1))
            resource = self._attributes(Resource.FromString(_bounded(octets)))
            for of_scope in map(_Frames.FromString, self._counted(of_resource.field2)):
                for octets in self._counted(of_scope.field2):
                    span = Span.FromString(_bounded(octets))
                    is_error, attributes = span.status.code == ERROR, self._attributes(span)
                    yield TracedSpan(
                        span.trace_id, span.span_id, span.parent_span_id, span.name, span.kind,
                        span.start_time_unix_nano, span.end_time_unix_nano, is_error, attributes, resource,
                    )  # fmt: skip

    def of_json(self, body: bytes) -> Iterator[TracedSpan]:
        self._take(body.count(b"{") + body.count(b"["))
        for of_resource in msgspec.json.decode(body).get("resourceSpans") or ():
            resource = self._json_attributes(of_resource.get("resource") or {})
            for of_scope in of_resource.get("scopeSpans") or ():
                for span in of_scope.get("spans") or ():
                    trace, own, parent = (
                        _octets(span, name) for name in ("traceId", "spanId", "parentSpanId")
                    )
                    start, end = (_integer(span.get(f"{name}TimeUnixNano")) for name in ("start", "end"))
                    is_error = (span.get("status") or {}).get("code") == ERROR
                    yield TracedSpan(
                        trace, own, parent, _text(span.get("name")), _integer(span.get("kind")), start, end,
                        is_error, self._json_attributes(span), resource,
                    )  # fmt: skip

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooLarge(f"Request body has more than {MOST_PARTS} spans, attributes and values")

    def _counted(self, parts: Any) -> Any:
        self._take(len(parts))
        return parts

    def _attributes(self, holder: Any) -> dict[str, Any]:
        pairs = self._counted(holder.attributes)
        return {pair.key: self._value(pair.value, 1) for pair in pairs if pair.key in self._wanted}

    def _json_attributes(self, holder: dict[str, Any]) -> dict[str, Any]:
        pairs = [pair for pair in holder.get("attributes") or () if pair["key"] in self._wanted]
        return {pair["key"]: _json_value(pair.get("value"), 1) for pair in pairs}

    def _value(self, given: Any, depth: int) -> Any:
        """Return an `AnyValue` as JSON has it: octets as None, and a double that is no number as text."""
        kind = given.WhichOneof("value")
        if kind == "array_value":
            return [self._value(one, _deeper(depth)) for one in self._counted(given.array_value.values)]
        if kind == "kvlist_value":
            pairs = self._counted(given.kvlist_value.values)
            return {pair.key: self._value(pair.value, _deeper(depth)) for pair in pairs}
        if kind == "double_value":
            return _double(given.double_value)
        return getattr(given, kind) if kind in ("string_value", "bool_value", "int_value") else None


def _bounded(octets: bytes) -> bytes:
    if len(octets) > LARGEST_SPAN:
        raise TooLarge(f"A span or a resource is larger than {LARGEST_SPAN} bytes")
    return octets


def _json_value(given: Any, depth: int) -> Any:
    said: tuple[str, Any] = next(iter((given or {}).items()), ("", None))
    kind, value = said
    if kind == "arrayValue":
        return [_json_value(one, _deeper(depth)) for one in value.get("values") or ()]
    if kind == "kvlistValue":
        pairs = value.get("values") or ()
        return {_text(pair["key"]): _json_value(pair.get("value"), _deeper(depth)) for pair in pairs}
    read = _SCALARS.get(kind)
    return None if read is None else read(value)


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise Invalid(f"An attribute is nested deeper than {MAX_DEPTH} levels")
    return depth + 1


def _text(given: Any) -> str:
    if not isinstance(given, str | None):
        raise TypeError("no text")
    return given or ""


def _octets(span: dict[str, Any], name: str) -> bytes:
    return bytes.fromhex(span.get(name) or "")


def _integer(given: Any) -> int:
    """Return an integer, which JSON may spell as text."""
    if isinstance(given, float | bool) or (isinstance(given, str) and not _DIGITS.fullmatch(given)):
        raise TypeError("no integer")
    number = int(given or 0)
    if number not in _INTEGERS:
        raise ValueError("an integer of more than 64 bits")
    return number


def _double(given: Any) -> float | str:
    number = float(given)
    return number if isfinite(number) else str(number)


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "stringValue": _text,
    "boolValue": bool,
    "intValue": _integer,
    "doubleValue": _double,
}
