"""Tasks carry their environment and need no broker to be safe."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from compliance import environments, tasks
from compliance.celery import PERIODS_SECONDS, app, schedule
from compliance.environments import Environment

seen: list[str] = []


@tasks.task("tests.note")
def note() -> None:
    """Remember the environment it ran in."""
    seen.append(environments.current().value)


@pytest.fixture(autouse=True)
def outside_any_environment() -> Any:
    seen.clear()
    token = environments._current.set(None)
    yield
    environments._current.reset(token)


@pytest.mark.parametrize("environment", list(Environment))
def test_task_runs_in_the_environment_of_its_message(environment: Environment) -> None:
    note.apply(headers={tasks.ENVIRONMENT_HEADER: environment.value}, throw=True)

    assert seen == [environment.value]


def test_message_without_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid Environment"):
        note.apply(throw=True)

    assert seen == []


@contextmanager
def broker_at(url: str) -> Iterator[None]:
    """Point this process's producers at another broker for a while."""
    before = app.conf.broker_write_url
    app.conf.broker_write_url = url
    app.pool.force_close_all()
    app._pool = None
    app.__dict__.pop("amqp", None)
    try:
        yield
    finally:
        app.conf.broker_write_url = before
        app._pool = None
        app.__dict__.pop("amqp", None)


def test_lost_broker_is_survived() -> None:
    with broker_at("redis://127.0.0.1:1/0"), environments.use(Environment.LIVE):
        rung = tasks.enqueue("tests.note")

    assert rung is False


def test_broker_that_is_there_is_rung() -> None:
    with environments.use(Environment.LIVE):
        assert tasks.enqueue("tests.note") is True


def test_sweeps_run_over_both_environments() -> None:
    entries = schedule().values()

    named = {(entry["task"], entry["options"]["headers"][tasks.ENVIRONMENT_HEADER]) for entry in entries}
    assert named == {(task, env.value) for task in PERIODS_SECONDS for env in Environment}


def test_every_scheduled_task_exists() -> None:
    assert set(PERIODS_SECONDS) <= set(app.tasks)
