"""The tasks, run as a worker runs them: by name, in the environment that their message names."""

import socket
import time
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from compliance import environments, redis
from compliance.environments import Environment
from compliance.tasks import ENVIRONMENT_HEADER, app
from compliance.tenancy.services import get_tenant
from compliance.tenancy.tests.factories import make_tenant
from webhooks import delivering, tasks
from webhooks.models import Attempt, Delivery
from webhooks.tests.factories import make_delivery, make_webhook
from webhooks.tests.receivers import Receiver, answer, answers, receiving


def run(name: str, environment: Environment, **kwargs: Any) -> None:
    """Apply the task in this process, raising what it raises."""
    header = {ENVIRONMENT_HEADER: environment.value}
    app.tasks[name].apply(kwargs=kwargs, headers=header, throw=True)


def test_tasks_are_known_by_their_names() -> None:
    assert tasks.deliver.name == "webhooks.deliver"
    assert tasks.sweep.name == "webhooks.sweep"


@pytest.mark.parametrize("environment", Environment)
def test_delivery_is_sent_in_its_environment(environment: Environment, loopback: None) -> None:
    tenant = make_tenant()
    with environments.use(environment), receiving(answer(200)) as receiver:
        delivery = make_delivery(make_webhook(get_tenant(tenant_id=tenant.id), receiver.url))

        run("webhooks.deliver", environment, delivery_id=str(delivery.id))

        delivery.refresh_from_db()
    assert delivery.status == "succeeded"
    assert len(receiver.received) == 1


def test_other_environments_delivery_is_not_found(loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url))

        run("webhooks.deliver", Environment.TEST, delivery_id=str(delivery.id))

    assert receiver.received == []


def test_task_run_twice_sends_once(loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url))

        for _ in range(2):
            run("webhooks.deliver", Environment.LIVE, delivery_id=str(delivery.id))

    assert len(receiver.received) == 1


def test_worker_goes_on_with_what_waits_for_the_same_endpoint(loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        first, *_ = [make_delivery(webhook) for _ in range(3)]

        run("webhooks.deliver", Environment.LIVE, delivery_id=str(first.id))

    assert len(receiver.received) == 3


def test_other_endpoints_get_their_turn(loopback: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "TURN_SECONDS", 0.05)
    with receiving(slow) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        first, second = (make_delivery(webhook) for _ in range(2))
        rung = bells()

        run("webhooks.deliver", Environment.LIVE, delivery_id=str(first.id))

    assert len(receiver.received) == 1
    assert bells() == rung + 1
    assert Delivery.objects.get(id=second.id).status == "pending"


def test_unknown_delivery_is_nothing_to_do() -> None:
    run("webhooks.deliver", Environment.LIVE, delivery_id=str(uuid4()))

    assert not Attempt.objects.exists()


def test_sweep_rings_for_what_no_bell_rang_for(committed: None, loopback: None) -> None:
    with receiving(answers(200)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url))
        rung = bells()
        later = delivery.created_at + delivering.SWEEP_GRACE

        delivering.sweep(now=later)

        assert bells() > rung
        run("webhooks.deliver", Environment.LIVE, delivery_id=str(delivery.id))
    assert Delivery.objects.get(id=delivery.id).status == "succeeded"


def slow(connection: socket.socket, receiver: Receiver) -> None:
    time.sleep(0.1)
    answer(200)(connection, receiver)


def bells() -> int:
    """How many messages wait in the broker's queue."""
    prefix = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
    return int(redis.client().llen(f"{prefix}{app.conf.task_default_queue}"))
