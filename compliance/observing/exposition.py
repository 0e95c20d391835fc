"""The metrics of all processes that share METRICS_DIR, in Prometheus' text format, guarded by a token."""

import hmac
from collections.abc import Iterable
from typing import Final

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from compliance.observing import metrics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def is_authorized(header: str) -> bool:
    """Whether an `Authorization` header presents METRICS_TOKEN; nothing does where there is none."""
    expected: str = settings.METRICS_TOKEN
    scheme, _, sent = header.partition(" ")
    is_bearer = scheme.lower() == "bearer" and bool(expected)
    return is_bearer and hmac.compare_digest(sent.strip().encode("utf-8", "replace"), expected.encode())


def exposed(more: Iterable[Collector] = ()) -> bytes:
    """The metrics as text; `more` are collected now."""
    found = CollectorRegistry()
    if metrics.is_shared:
        MultiProcessCollector(found, path=metrics.folder)  # type: ignore[no-untyped-call]
    else:
        found.register(metrics.registry)
    for collector in more:
        found.register(collector)
    return generate_latest(found)
