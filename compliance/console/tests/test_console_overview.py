"""The console's first page: right numbers, of the user's tenants and the session's environment, cheaply."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from agents.tests.factories import make_agent, make_suspended_agent
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tenancy.models import Role, Tenant
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.console import console_of, make_member, make_operator, populate
from events.inbox import days


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def numbers(user: User, environment: Environment = Environment.LIVE) -> dict[str, Any]:
    board = console_of(user, environment).get(reverse("console_overview")).context["board"]
    return {tile.label: tile.value for tile in board["tiles"]}


def test_agents_are_counted_by_status(acme: Tenant) -> None:
    make_agent(acme)
    make_suspended_agent(acme)
    make_certified_agent(acme)

    counted = numbers(make_member(acme, Role.AUDITOR))

    assert counted["Active agents"] == counted["Pending agents"] == counted["Suspended agents"] == 1


@pytest.mark.parametrize(("days", "soon"), [(29, 1), (31, 0)])
def test_certificates_that_end_soon_are_counted(acme: Tenant, days: int, soon: int) -> None:
    agent = make_certified_agent(acme)
    Certificate.objects.filter(agent=agent).update(expires_at=now() + timedelta(days=days))

    counted = numbers(make_member(acme, Role.OFFICER))

    assert counted["Active certificates"] == 1
    assert counted["Expire within 30 days"] == soon


def test_events_to_review_and_failed_deliveries_are_counted(acme: Tenant) -> None:
    populate(acme, Environment.LIVE)
    days.sum_up_days(now=now())

    counted = numbers(make_member(acme, Role.OFFICER))

    assert counted["Events to review"] == counted["Failed deliveries"] == 1


def test_the_numbers_are_of_the_users_tenants_and_environment(acme: Tenant) -> None:
    populate(make_tenant("Rival"), Environment.LIVE)
    populate(acme, Environment.TEST)
    officer = make_member(acme, Role.OFFICER)

    live, test = numbers(officer), numbers(officer, Environment.TEST)

    assert live["Events to review"] == live["Active agents"] == live["Active certificates"] == 0
    assert test["Events to review"] == test["Active agents"] == test["Active certificates"] == 1
    assert numbers(make_operator())["Events to review"] == 1


def test_a_missing_revocation_list_is_said(acme: Tenant) -> None:
    assert numbers(make_member(acme, Role.OFFICER))["Revocation list"] == "none"


def test_panels_lead_to_rows_that_open(acme: Tenant) -> None:
    populate(acme, Environment.LIVE)
    client = console_of(make_member(acme, Role.OFFICER))

    board = client.get(reverse("console_overview")).context["board"]

    addresses = [tile.url for tile in board["tiles"]] + [panel["url"] for panel in board["panels"]]
    addresses += [row["url"] for panel in board["panels"] for row in panel["rows"]]
    assert {address: client.get(address).status_code for address in addresses} == dict.fromkeys(
        addresses, 200
    )


def test_the_page_makes_a_bounded_number_of_queries(acme: Tenant, django_assert_max_num_queries: Any) -> None:
    for number in range(4):
        populate(acme, Environment.LIVE, f"row-{number}")
    client = console_of(make_member(acme, Role.OFFICER))

    with django_assert_max_num_queries(20):
        client.get(reverse("console_overview"))
