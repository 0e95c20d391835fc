"""The System page: every part with its state, the last hour, the doctor at a click, for operators alone."""

import asyncio
from typing import Any

import pytest
from django.urls import reverse
from pytest_django.fixtures import Settings

from certificates.tests.factories import make_authorities
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.ops import heartbeat
from compliance.ops.system.parts import PARTS, PartState, look
from compliance.serving.traffic import Traffic
from compliance.stores import redis
from compliance.tenancy.models import Role
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.console import console_of, make_member, make_operator
from compliance.tests.redis_servers import NOWHERE, redis_at

BOTH = pytest.mark.parametrize("environment", list(Environment))


def states() -> dict[str, PartState]:
    return {part.name: part for part in look(now())}


@BOTH
def test_page_shows_every_part_of_its_environment(environment: Environment) -> None:
    with environments.use(environment):
        make_authorities()
        heartbeat.beat(now=now())
        client = console_of(make_operator(), environment)

        html = client.get(reverse("console_system")).content.decode()

    assert [name for name in PARTS if name not in html] == []
    assert "PostgreSQL" in html
    assert "Does not answer" not in html


def test_page_shows_the_last_hour(settings: Settings) -> None:
    settings.SERVICE_NAME = f"traffic-{new_id()}"
    traffic = Traffic()
    for _ in range(1234):
        traffic.note(method="POST", path="/v1/events", status=201, seconds=0.004, at=now().timestamp())
    asyncio.run(traffic.flush())

    html = console_of(make_operator()).get(reverse("console_system")).content.decode()

    assert "1,234" in html
    assert "within 5 ms" in html


def test_parts_that_do_not_answer_leave_the_page_working(settings: Settings) -> None:
    client = console_of(make_operator())

    with redis_at(NOWHERE, settings):
        html = client.get(reverse("console_system")).content.decode()
        found = states()

    assert "Does not answer" in found["Redis"].problem
    assert found["Database"].problem == ""
    assert "Redis does not answer, which has the counts." in html


def test_missing_workers_senders_and_authorities_are_told() -> None:
    for name in ("heartbeat", "webhooks:sender"):
        redis.client().delete(redis.key(*name.split(":")))

    found = states()

    assert "down" in found["Workers"].problem
    assert found["Webhook senders"].problem == "No webhook sender runs"


def test_doctor_is_run_by_a_click_and_repairs_nothing(settings: Settings) -> None:
    make_authorities()
    client = console_of(make_operator())

    answer: Any = client.post(reverse("console_doctor"))

    html = answer.content.decode()
    assert answer.status_code == 200
    for check in ("redis", "auditor&#x27;s role", "certificate authorities", "revocation lists"):
        assert check in html
    assert client.get(reverse("console_doctor")).status_code == 405


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("page", ["console_system", "console_doctor"])
def test_members_see_neither(role: Role, page: str) -> None:
    client = console_of(make_member(make_tenant("Acme"), role))

    answers = [client.get(reverse(page)), client.post(reverse(page))]

    assert {answer.status_code for answer in answers} <= {403, 405}
    assert reverse("console_system") not in client.get(reverse("admin:index")).content.decode()
