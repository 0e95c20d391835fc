"""Spans by OpenTelemetry, where requirements-otel.txt is installed and an exporter is configured.

A span has the ids that `correlation` made, so traces join logs, webhooks and audit entries. Its name and
attributes are routes, tasks and statuses; no tenant's data.
"""

import importlib
import logging
import os
import time
from functools import cache
from typing import Any, Final

from django.conf import settings

from compliance.observing.correlation import SAMPLED, Correlation

log = logging.getLogger(__name__)

_MODULES: Final = (
    *("opentelemetry.trace", "opentelemetry.sdk.trace", "opentelemetry.sdk.trace.export"),
    *("opentelemetry.sdk.resources", "opentelemetry.exporter.otlp.proto.http.trace_exporter"),
)


class SpanRecorder:
    """Sends ended spans from a thread of this process."""

    def __init__(self, endpoint: str) -> None:
        self._api, sdk, export, resources, otlp = (importlib.import_module(name) for name in _MODULES)
        self._sdk = sdk
        self._resource = resources.Resource.create({"service.name": settings.SERVICE_NAME})
        exporter = otlp.OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._processor = export.BatchSpanProcessor(exporter)

    def end(
        self, ids: Correlation, name: str, *, kind: str, seconds: float, failed: bool, **tags: Any
    ) -> None:
        """Record a span that ends now and took so long."""
        ended = time.time_ns()
        api = self._api
        state = api.TraceFlags(SAMPLED)
        own = api.SpanContext(int(ids.trace_id, 16), int(ids.span_id, 16), False, state)
        parent = (
            api.SpanContext(int(ids.trace_id, 16), int(ids.parent_id, 16), True, state)
            if ids.parent_id
            else None
        )
        status = api.Status(api.StatusCode.ERROR if failed else api.StatusCode.UNSET)
        span = self._sdk.ReadableSpan(
            name=name,
            context=own,
            parent=parent,
            resource=self._resource,
            attributes={"request.id": ids.request_id, **{key.replace("_", "."): tags[key] for key in tags}},
            kind=getattr(api.SpanKind, kind),
            status=status,
            start_time=ended - round(seconds * 1e9),
            end_time=ended,
        )
        self._processor.on_end(span)

    def flush(self) -> None:
        """Send what waits."""
        self._processor.force_flush()


def recorder() -> SpanRecorder | None:
    """The recorder of this process; None without an exporter or without the packages."""
    endpoint = settings.OTEL_EXPORTER_OTLP_ENDPOINT
    # One for each process: its thread does not survive a fork.
    return _recorder(endpoint, os.getpid()) if endpoint else None


def record(
    ids: Correlation | None, name: str, *, kind: str, seconds: float, failed: bool, **tags: Any
) -> None:
    """Record a span that ends now, if spans are recorded: a caller's choice not to sample is kept."""
    found = recorder() if ids is not None else None
    if found is not None and ids is not None and (ids.is_sampled or not ids.parent_id):
        found.end(ids, name, kind=kind, seconds=seconds, failed=failed, **tags)


@cache
def _recorder(endpoint: str, process: int) -> SpanRecorder | None:
    try:
        return SpanRecorder(endpoint)
    except ImportError as error:
        log.error("spans are not recorded: %s is not installed (requirements-otel.txt)", error.name)
        return None
