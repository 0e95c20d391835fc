"""Celery tasks that carry their environment.

All work is recorded in PostgreSQL, so a sweep finds the work of a lost message. Services name a task
`<app>.<verb>`, so that no service imports one.
"""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from inspect import signature
from typing import Any

import celery
import orjson
from celery.signals import before_task_publish
from django.conf import settings
from django.db import connections
from kombu import Exchange, Queue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.observing import correlation, metrics
from compliance.stores import redis

log = logging.getLogger(__name__)

ENVIRONMENT_HEADER = "service_environment"
"""Names one environment, or several with commas between them."""
REQUEST_ID_HEADER = "service_request_id"
TRACEPARENT_HEADER = "service_traceparent"
SENT_AT_HEADER = "service_sent_at"
QUEUES = ("celery", "urgent")
_PREFIX = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
BROKER_AWAY = (OperationalError, RedisError, OSError)


class EnvironmentTask(celery.Task):
    """Run in each environment that the message's header names; refuse a message without one.

    An error in one environment does not keep the task from the next. The headers also name the request that
    caused the message; a task of the schedule begins a trace.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        named = [Environment(name) for name in self._header(ENVIRONMENT_HEADER).split(",")]
        with ExitStack() as runs:
            for environment in reversed(named):
                runs.callback(self._run_in, environment, *args, **kwargs)

    def _run_in(self, environment: Environment, *args: Any, **kwargs: Any) -> None:
        ids = correlation.resume(self._header(REQUEST_ID_HEADER), self._header(TRACEPARENT_HEADER))
        began, outcome = time.perf_counter(), "error"
        # As Django does around a request: replace connections that died, keep the others for the next task.
        _close_the_unusable()
        with environments.use(environment), correlation.use(ids):
            try:
                self.run(*args, **kwargs)
                outcome = "ok"
            finally:
                metrics.TASKS.labels(self.name, outcome).inc()
                metrics.TASK_SECONDS.labels(self.name).observe(time.perf_counter() - began)
                _close_the_unusable()

    def _header(self, name: str) -> str:
        # A worker puts the headers on the request itself; a task applied in process has them apart.
        return str(self.request.get(name) or (self.request.headers or {}).get(name) or "")


def _close_the_unusable() -> None:
    """Close connections that died or are not to be kept; one in a transaction is its caller's."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def _stamp(*, headers: dict[str, Any], **kwargs: Any) -> None:
    """Store in a message the time at which it is sent."""
    headers[SENT_AT_HEADER] = time.time()


before_task_publish.connect(_stamp, weak=False)

app = celery.Celery(settings.SERVICE_NAME, task_cls="compliance.core.tasks:EnvironmentTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(name, Exchange(name), routing_key=name) for name in QUEUES]


def task(name: str, **options: Any) -> Callable[[Callable[..., Any]], celery.Task]:
    """Register a keyword-only function as the task `name`."""
    return app.task(name=name, **options)


def task_calling(name: str, work: Callable[..., int | None], *, level: int = logging.DEBUG) -> celery.Task:
    """Register the task `name`, which calls `work` with the message's arguments and `now`.

    Arguments that it does not know are left out: a newer process may have sent them. A count that it returns
    is logged at `level`, unless it is 0.
    """
    known = signature(work).parameters

    def run(**kwargs: Any) -> None:
        if count := work(now=now(), **{name: value for name, value in kwargs.items() if name in known}):
            log.log(level, "%s: %d", name, count)

    return task(name)(run)


def waiting() -> int:
    """Return how many messages no worker has taken. Raises: RedisError."""
    return sum(redis.broker().llen(f"{_PREFIX}{queue}") for queue in QUEUES)


def oldest_waiting() -> datetime | None:
    """Return when the oldest message was sent that a worker takes next; None if none waits, or none says.

    Raises: RedisError.
    """
    sent = []
    for queue in QUEUES:
        found: Any = redis.broker().lindex(f"{_PREFIX}{queue}", -1)
        with suppress(TypeError, ValueError, KeyError):
            sent.append(float(orjson.loads(found)["headers"][SENT_AT_HEADER]))
    return datetime.fromtimestamp(min(sent), UTC) if sent else None


def enqueue(name: str, *, delay_seconds: float = 0, **kwargs: Any) -> bool:
    """Send task `name` to the current environment's workers; False, and a log line, if the broker is away."""
    request_id, traceparent = correlation.stored()
    headers = {ENVIRONMENT_HEADER: environments.current().value}
    if request_id:
        headers |= {REQUEST_ID_HEADER: request_id, TRACEPARENT_HEADER: traceparent}
    try:
        with redis.broker_circuit.guarding(gone=BROKER_AWAY):
            app.send_task(name, kwargs=kwargs, headers=headers, countdown=delay_seconds or None)
    except BROKER_AWAY as error:
        log.warning("task %s not enqueued, its sweep will find it: %s", name, type(error).__name__)
        return False
    return True


def enqueue_on_commit(name: str, **kwargs: Any) -> None:
    """Call `enqueue` once the current environment's transaction has committed."""
    environments.on_commit(lambda: enqueue(name, **kwargs))
