"""OTLP/HTTP: bodies and answers in the encoding of the request (OTLP specification 1.9, "OTLP/HTTP")."""

from collections.abc import Mapping
from typing import IO, Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.response import Response

from compliance.api.exceptions import RETRY_SECONDS, error_parts
from compliance.api.rest.parsers import read_body
from compliance.api.rest.renderers import FastJSONRenderer
from events.otlp import reading
from events.otlp.mapping import ATTRIBUTES

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = FastJSONRenderer.media_type
_CODES: Final[Mapping[int, int]] = {400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 413: 8, 415: 3, 429: 8, 503: 14}
"""Codes of `google.rpc.Code` by status of HTTP."""
_UNKNOWN: Final = 2


class ProtobufParser(BaseParser):
    media_type = PROTOBUF

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the export in a body of at most 1 MiB, which may be compressed."""
        request = (parser_context or {})["request"]
        coding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("gzip", "identity"):
            raise UnsupportedMediaType(coding)
        is_json, is_gzip = self.media_type == JSON, coding == "gzip"
        return reading.read(read_body(stream), is_json=is_json, is_gzip=is_gzip, wanted=ATTRIBUTES)


class JSONParser(ProtobufParser):
    media_type = JSON


class ProtobufRenderer(BaseRenderer):
    """Writes a partial success as `ExportTraceServiceResponse`, an error as `google.rpc.Status`."""

    media_type = PROTOBUF
    format = "protobuf"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        if "code" in data:
            # Its fields have the numbers and types of `Status`.
            status = ExportTracePartialSuccess(rejected_spans=data["code"], error_message=data["message"])
            return status.SerializeToString()
        said = data["partialSuccess"]
        count, message = int(said["rejectedSpans"]), said["errorMessage"]
        partial = ExportTracePartialSuccess(rejected_spans=count, error_message=message)
        return ExportTraceServiceResponse(partial_success=partial).SerializeToString()


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error as OTLP's clients expect it: what they may send again is a 429 or a 503."""
    found = error_parts(error)
    if found is None:
        return None
    status, message, headers = found
    if status == 409:
        status, headers = 503, {"Retry-After": str(RETRY_SECONDS), **headers}
    if status == 415:
        message = f"Content-Type must be {PROTOBUF} or {JSON}, and Content-Encoding gzip if any"
    said = {"code": _CODES.get(status, _UNKNOWN), "message": message}
    return Response(said, status=status, headers=headers)
