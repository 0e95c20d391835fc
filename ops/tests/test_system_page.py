"""The System page: every part with its state, the doctor at a click, for operators alone."""

from typing import Any

import pytest
from django.urls import reverse
from pytest_django.fixtures import Settings

from certificates.tests.factories import make_authorities
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_member, make_operator
from compliance.tests.redis_servers import NOWHERE, redis_at
from ops import doctor, heartbeat
from ops.doctor import Finding
from ops.system import QUICK
from tenancy.models import Role
from tenancy.tests.factories import make_tenant

BOTH = pytest.mark.parametrize("environment", list(Environment))


def found_quickly() -> dict[str, Finding]:
    found = doctor.examine(chosen=[Environment.LIVE], fix=False, now=now(), only=QUICK)
    return {finding.check: finding for finding in found}


@BOTH
def test_page_shows_the_quick_checks_of_its_environment(environment: Environment) -> None:
    with environments.use(environment):
        make_authorities()
        heartbeat.beat(now=now())
        client = console_of(make_operator(), environment)

        html = client.get(reverse("console_system")).content.decode()

    assert [name for name in QUICK if f"<td>{name}</td>" not in html] == []
    assert "PostgreSQL" in html


def test_parts_that_do_not_answer_leave_the_page_working(settings: Settings) -> None:
    client = console_of(make_operator())

    with redis_at(NOWHERE, settings):
        html = client.get(reverse("console_system")).content.decode()
        found = found_quickly()

    assert (found["redis"].ok, found["redis"].is_down, found["database"].ok) == (False, True, True)
    assert "start Redis" in html


def test_doctor_is_run_by_a_click_and_repairs_nothing(settings: Settings) -> None:
    make_authorities()
    client = console_of(make_operator())

    answer: Any = client.post(reverse("console_system"))

    html = answer.content.decode()
    assert answer.status_code == 200
    for check in ("redis", "auditor&#x27;s role", "certificate authorities", "revocation lists"):
        assert check in html


@pytest.mark.parametrize("role", list(Role))
def test_members_do_not_see_it(role: Role) -> None:
    client = console_of(make_member(make_tenant("Acme"), role))

    answers = [client.get(reverse("console_system")), client.post(reverse("console_system"))]

    assert {answer.status_code for answer in answers} == {403}
    assert reverse("console_system") not in client.get(reverse("admin:index")).content.decode()
