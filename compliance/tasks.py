"""Celery tasks that carry their environment.

The broker is a doorbell: whatever must happen stands in PostgreSQL, and a sweep finds what a lost
message should have started. Tasks are named `<app>.<verb>`; services pass the name, not the function,
so that no service imports a task.
"""

import logging
from collections.abc import Callable
from typing import Any

import celery
from django.conf import settings
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from compliance import environments, redis
from compliance.environments import Environment

log = logging.getLogger(__name__)

ENVIRONMENT_HEADER = "service_environment"
BROKER_AWAY = (OperationalError, RedisError, OSError)


class EnvironmentTask(celery.Task):
    """Runs in the environment named by its message's header; refuses a message without one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # A worker lays a message's headers flat on the request; a task applied in process keeps them apart.
        named = self.request.get(ENVIRONMENT_HEADER) or (self.request.headers or {}).get(ENVIRONMENT_HEADER)
        with environments.use(Environment(str(named))):
            return super().__call__(*args, **kwargs)


app = celery.Celery(settings.SERVICE_NAME, task_cls="compliance.tasks:EnvironmentTask", set_as_current=True)
app.config_from_object("django.conf:settings", namespace="CELERY")


def task(name: str, **options: Any) -> Callable[[Callable[..., Any]], celery.Task]:
    """Register a keyword-only function as the task `name`."""
    return app.task(name=name, **options)


def enqueue(name: str, *, delay_seconds: float = 0, **kwargs: Any) -> bool:
    """Ring for task `name` in the current environment; False, and a log line, when the broker is away."""
    headers = {ENVIRONMENT_HEADER: environments.current().value}
    try:
        redis.circuit.call(
            lambda: app.send_task(name, kwargs=kwargs, headers=headers, countdown=delay_seconds or None),
            gone=BROKER_AWAY,
        )
    except BROKER_AWAY as error:
        log.warning("task %s not enqueued, its sweep will find it: %s", name, type(error).__name__)
        return False
    return True


def connect() -> None:
    """Open the connection over which `enqueue` sends, before there is a message; raises `BROKER_AWAY`."""
    app.finalize()
    with app.producer_or_acquire() as producer:
        _ = producer.connection.default_channel


def enqueue_on_commit(name: str, *, delay_seconds: float = 0, **kwargs: Any) -> None:
    """`enqueue` once the current environment's transaction has committed."""
    environments.on_commit(lambda: enqueue(name, delay_seconds=delay_seconds, **kwargs))
