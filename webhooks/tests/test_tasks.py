"""The sweep that stands in for absent senders, run in its message's environment, as a worker does."""

from typing import Any

import pytest

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.outbound.tests.receivers import answer, answers, receiving
from compliance.stores import redis, wakeups
from tenancy.services import get_tenant
from tenancy.tests.factories import make_tenant
from webhooks import tasks
from webhooks.tests.factories import make_delivery, make_webhook


@pytest.fixture(autouse=True)
def no_sender() -> None:
    for environment in Environment:
        with environments.use(environment):
            redis.client().delete(redis.key(*wakeups.WEBHOOKS, "alive"))


def sweep(environment: Environment = Environment.LIVE) -> None:
    """Apply the task in this process, raising what it raises."""
    header: dict[str, Any] = {ENVIRONMENT_HEADER: environment.value}
    tasks.sweep.apply(headers=header, throw=True)


@pytest.mark.parametrize("environment", Environment)
def test_worker_stands_in_for_absent_senders(environment: Environment, loopback: None) -> None:
    tenant = make_tenant()
    with environments.use(environment), receiving(answer(200)) as receiver:
        webhook = make_webhook(get_tenant(tenant_id=tenant.id), receiver.url)
        deliveries = [make_delivery(webhook) for _ in range(3)]

        sweep(environment)

        for delivery in deliveries:
            delivery.refresh_from_db()
    assert {delivery.status for delivery in deliveries} == {"succeeded"}
    assert len(receiver.received) == 3


def test_other_environments_deliveries_are_left_alone(loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        make_delivery(make_webhook(make_tenant(), receiver.url))

        sweep(Environment.TEST)

    assert receiver.received == []


def test_worker_sends_nothing_while_a_sender_runs(loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        make_delivery(make_webhook(make_tenant(), receiver.url))
        wakeups.mark_alive(wakeups.WEBHOOKS)

        sweep()

    assert receiver.received == []


def test_what_is_not_due_waits(loopback: None) -> None:
    with receiving(answers(500)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url))

        sweep()

    delivery.refresh_from_db()
    assert len(receiver.received) == 1
    assert (delivery.status, delivery.attempt_count) == ("pending", 1)
