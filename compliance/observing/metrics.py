"""The metrics of this process, which share files in METRICS_DIR with those of all other processes.

Counters and histograms are written through memory-mapped files, so what a killed process counted is kept. A
web worker's event loop writes once a second.
Labels have few values: no tenant, agent, id or raw path is one. Without METRICS_DIR nothing leaves a process.
"""

import os
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from prometheus_client import CollectorRegistry, Counter, Histogram, values

from compliance.core import environments

PREFIX: Final = "compliance"
_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where prometheus_client looks for the folder of its files."""
# Targets are bounds of buckets, so that what keeps to them is counted exactly: 0.2 s for ingest, 0.5 s for
# verification, 5 s for webhooks, 60 s for revocation.
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0)
DELAYS: Final = (0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
QUICK: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
UNROUTED: Final = "-"
"""The route of what no view or endpoint has answered."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 200)


def _use_files(path: str) -> str:
    """Have the metrics of this module kept in `path`; return why they cannot be, "" if they are."""
    try:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable", path)
    except OSError as error:
        return f"METRICS_DIR {path} cannot be used: {error.strerror}"
    os.environ[_VARIABLE] = path
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    return ""


try:
    folder = str(settings.METRICS_DIR)
except ImproperlyConfigured:
    # A tool that makes tokens before there are settings counts for nobody.
    folder = ""
problem: Final = _use_files(folder) if folder else ""
is_shared: Final = bool(folder) and not problem
registry: Final = CollectorRegistry()


_counter = partial(Counter, namespace=PREFIX, registry=registry)
_histogram = partial(Histogram, namespace=PREFIX, registry=registry, buckets=SECONDS)

REQUESTS: Final = _counter("http_requests", "Answered requests", ["method", "route", "status"])
REQUEST_SECONDS: Final = _histogram(
    "http_request_seconds", "Time from a request's last octet to its answer", ["method", "route", "class"]
)
REFUSED: Final = _counter("http_refused", "Requests refused before their end", ["status"])
GROUP_SIZE: Final = _histogram("group_size", "Requests worked on together", ["route"], buckets=SIZES)
GROUP_WAIT_SECONDS: Final = _histogram(
    "group_wait_seconds", "Time for which the first request of a group waited", ["route"], buckets=QUICK
)
SCORED: Final = _counter("events_scored", "Events stored with a score", ["environment", "band", "model"])
STRIKES: Final = _counter("strikes", "High-risk events counted against an agent", ["environment"])
STOPPED: Final = _counter("agents_stopped", "Agents stopped at the threshold", ["environment"])
REVOCATION_SECONDS: Final = _histogram(
    "revocation_delay_seconds",
    "Time from the receipt of the event that stopped an agent to the commit of its revocation",
    ["environment"],
    buckets=DELAYS,
)
ATTEMPTS: Final = _counter("webhook_attempts", "Attempts at webhook deliveries", ["environment", "outcome"])
ATTEMPT_SECONDS: Final = _histogram("webhook_attempt_seconds", "Time of an attempt", ["environment"])
DELIVERIES: Final = _counter("webhook_deliveries", "Deliveries that ended", ["environment", "outcome"])
DELIVERY_DELAY_SECONDS: Final = _histogram(
    "webhook_delay_seconds",
    "Time from an event to its first attempt, of endpoints that neither fail nor are slow",
    ["environment", "event"],
    buckets=DELAYS,
)
PUSHES: Final = _counter("signal_pushes", "Signals pushed to streams", ["environment", "outcome"])
HSM_CALLS: Final = _counter("hsm_calls", "Calls of the HSM or its key host", ["operation", "outcome"])
HSM_SECONDS: Final = _histogram("hsm_call_seconds", "Time of a call of the HSM", ["operation"])
DATABASE_SECONDS: Final = _histogram(
    "database_seconds", "Time of a statement", ["environment", "path"], buckets=QUICK
)
DATABASE_ERRORS: Final = _counter("database_errors", "Statements that failed", ["environment", "path"])
REDIS_SECONDS: Final = _histogram(
    "redis_seconds", "Time of a round trip to Valkey", ["operation"], buckets=QUICK
)
REDIS_ERRORS: Final = _counter("redis_errors", "Round trips to Valkey that failed", ["operation"])
TASKS: Final = _counter("tasks", "Runs of tasks", ["task", "outcome"])
TASK_SECONDS: Final = _histogram("task_seconds", "Time of a task", ["task"])


# What happens rarely is shown from the start: PromQL sees no increase in a series that begins at 1.
for _name in environments.Environment:
    for _metric in (STRIKES, STOPPED, REVOCATION_SECONDS):
        _metric.labels(_name.value)
    for _outcome in ("succeeded", "failed"):
        ATTEMPTS.labels(_name.value, _outcome)
        DELIVERIES.labels(_name.value, _outcome)


def environment() -> str:
    """The current environment as a label; `none` outside of both."""
    return getattr(environments.current_or_none(), "value", "none")


def revoked(received_at: datetime) -> None:
    """Note that a revocation because of an event received then has been committed."""
    name = environment()
    STOPPED.labels(name).inc()
    REVOCATION_SECONDS.labels(name).observe(max(0.0, time.time() - received_at.timestamp()))


@cache
def labelled(metric: Counter | Histogram, *labels: str) -> Any:
    """Return what counts with these labels, kept: `labels()` takes a lock and costs ten times as much."""
    return metric.labels(*labels)


@dataclass
class Gathered:
    """Sums of counters and histograms: as many as there are series, whatever the number of values."""

    sums: dict[Counter | Histogram, float] = field(default_factory=dict)
    slots: dict[tuple[Histogram, int], int] = field(default_factory=dict)

    def add(self, child: Counter | Histogram, value: float) -> None:
        self.sums[child] = self.sums.get(child, 0.0) + value
        if isinstance(child, Histogram):
            # `Histogram.observe` tries one bound after the other, at twice the cost.
            slot = child, bisect_left(child._upper_bounds, value)
            self.slots[slot] = self.slots.get(slot, 0) + 1

    def write(self) -> None:
        for child, value in self.sums.items():
            (child if isinstance(child, Counter) else child._sum).inc(value)
        for (histogram, slot), number in self.slots.items():
            histogram._buckets[slot].inc(number)


gathered: Gathered | None = None
"""What an event loop writes once a second (`flush()`); None in a process without such a loop.

A write costs many times as much where little of its code is in the processor's caches. A loop that is killed
takes its last second with it.
"""
_gathering: Final = Lock()


def gather() -> None:
    """Have values of this process wait for `flush()`."""
    global gathered  # noqa: PLW0603  (of the process)
    gathered = Gathered()


def flush() -> None:
    """Write what was gathered, each histogram and counter once."""
    global gathered
    with _gathering:
        found, gathered = gathered, None if gathered is None else Gathered()
    if found is not None:
        found.write()


def add(child: Counter | Histogram, value: float) -> None:
    """Count or observe a value, from any thread."""
    if gathered is None:
        alone = Gathered()
        alone.add(child, value)
        alone.write()
        return
    with _gathering:
        gathered.add(child, value)


def note_answer(*, method: str, route: str, status: int, seconds: float) -> None:
    """Count an answer; `route` has few values, and statuses of a class share a histogram."""
    method = method if method in _METHODS else "other"  # what clients make up is one
    add(labelled(REQUESTS, method, route, str(status)), 1)
    add(labelled(REQUEST_SECONDS, method, route, f"{status // 100}xx"), seconds)


def note_refused(status: int) -> None:
    """Count a request that was refused before its end."""
    REFUSED.labels(str(status)).inc()


@contextmanager
def timed(seconds: Histogram, errors: Counter, *labels: str) -> Iterator[None]:
    """Observe how long the block takes, or each call of a function, and count it if it raises."""
    began = time.perf_counter()
    try:
        yield
    except BaseException:
        labelled(errors, *labels).inc()
        raise
    finally:
        add(labelled(seconds, *labels), time.perf_counter() - began)


@contextmanager
def counted(calls: Counter, seconds: Histogram, name: str) -> Iterator[None]:
    """As `timed()`, with every call counted by its outcome: `ok` or `error`."""
    began, outcome = time.perf_counter(), "error"
    try:
        yield
        outcome = "ok"
    finally:
        labelled(calls, name, outcome).inc()
        add(labelled(seconds, name), time.perf_counter() - began)
