"""The tasks, run as a worker runs them: by name, in the environment that their message names."""

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
from webhooks.models import Delivery
from webhooks.tests.factories import make_delivery, make_webhook
from webhooks.tests.receivers import answer, answers, receiving


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


def test_unknown_delivery_is_nothing_to_do() -> None:
    run("webhooks.deliver", Environment.LIVE, delivery_id=str(uuid4()))


def test_sweep_rings_for_what_no_bell_rang_for(committed: None, loopback: None) -> None:
    with receiving(answers(200)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url))
        rung = bells()
        later = delivery.created_at + delivering.SWEEP_GRACE

        delivering.sweep(now=later)

        assert bells() > rung
        run("webhooks.deliver", Environment.LIVE, delivery_id=str(delivery.id))
    assert Delivery.objects.get(id=delivery.id).status == "succeeded"


def bells() -> int:
    """How many messages wait in the broker's queue."""
    prefix = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
    return int(redis.client().llen(f"{prefix}{app.conf.task_default_queue}"))
