"""The console's first page: right numbers, of the user's tenants and the session's environment, cheaply."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent, make_retired_agent, make_suspended_agent
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.wording import measured
from compliance.tests.console import console_of, make_member, make_operator, make_staff, populate
from delegation.reviews.tests.factories import open_review
from events.figures import days
from events.figures.models import DayFigures
from events.models import RiskDay
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant


def numbers(user: User, environment: Environment = Environment.LIVE) -> dict[str, Any]:
    board = console_of(user, environment).get(reverse("console_overview")).context["board"]
    return {tile.label: tile.value for tile in board["tiles"]}


def test_agents_are_counted_by_status(acme: Tenant) -> None:
    make_agent(acme)
    make_suspended_agent(acme)
    make_certified_agent(acme)

    counted = numbers(make_member(acme, Role.AUDITOR))

    assert counted["Active agents"] == counted["Pending agents"] == counted["Suspended agents"] == 1


def test_agents_without_owner_and_dormant_ones_are_counted(acme: Tenant) -> None:
    sleeping = make_certified_agent(acme)
    Agent.objects.filter(id=sleeping.id).update(dormant_at=now())
    make_agent(acme, owner_name="Kim", owner_email="kim@example.com")
    make_retired_agent(acme)

    counted = numbers(make_member(acme, Role.AUDITOR))

    assert counted["Agents without an owner"] == counted["Dormant agents"] == 1


def test_overdue_reviews_are_counted(acme: Tenant) -> None:
    make_agent(acme)
    open_review(acme)
    open_review(acme, at=now() - timedelta(days=15))

    assert numbers(make_member(acme, Role.AUDITOR))["Overdue reviews"] == 1


@pytest.mark.parametrize(("days", "soon"), [(29, 1), (31, 0)])
def test_certificates_that_end_soon_are_counted(acme: Tenant, days: int, soon: int) -> None:
    agent = make_certified_agent(acme)
    Certificate.objects.filter(agent=agent).update(expires_at=now() + timedelta(days=days))

    counted = numbers(make_member(acme, Role.OFFICER))

    assert counted["Active certificates"] == 1
    assert counted["Expire within 30 days"] == soon


def test_renewed_certificates_do_not_count_as_ending(acme: Tenant) -> None:
    agent = make_certified_agent(acme)
    ending = {"expires_at": now() + timedelta(days=5), "superseded_at": now() + timedelta(days=1)}
    Certificate.objects.filter(agent=agent).update(**ending)
    officer = make_member(acme, Role.OFFICER)

    listed = console_of(officer).get(reverse("admin:certificates_certificate_changelist"), {"state": "7"})

    board = console_of(officer).get(reverse("console_overview")).context["board"]
    (panel,) = [one for one in board["panels"] if one["title"] == "Certificates that expire within 30 days"]
    assert numbers(officer)["Expire within 30 days"] == 0
    assert panel["rows"] == []
    assert not listed.context["cl"].queryset.exists()


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


def test_a_verdict_lowers_the_count_of_what_waits(acme: Tenant) -> None:
    event = populate(acme, Environment.LIVE)["events_behaviorevent"]
    officer = make_member(acme, Role.OFFICER)
    before = numbers(officer)["Events to review"]

    console_of(officer).post(reverse("admin:events_behaviorevent_dismiss", args=[event.pk]))

    assert (before, numbers(officer)["Events to review"]) == (1, 0)


def test_charts_show_the_users_tenants_and_a_table_behind_each(acme: Tenant) -> None:
    rival = make_tenant("Rival")
    today = now().date()
    for tenant, high in ((acme, 3), (rival, 1000)):
        DayFigures.objects.create(
            tenant=tenant, day=today, events=10, medium=2, high=high, review_delay=5400, delivered=9,
            undelivered=1,
        )  # fmt: skip
    answer = console_of(make_member(acme, Role.AUDITOR)).get(reverse("console_overview"))

    shown = {chart.title: chart.rows[0] for chart in answer.context["charts"]}
    page = answer.content.decode()

    assert shown["Events by band"][1:] == ["3", "2", "5"]
    assert shown["Webhook deliveries that succeeded"][1:] == ["90.0 %", "9", "1"]
    assert shown["Time from event to review"][1] == "90.0 min"
    assert "1,000" not in page
    assert page.count("<details>") >= len(shown) == 5


def test_riskiest_agents_are_drawn_from_their_daily_sums(acme: Tenant) -> None:
    agent = make_agent(acme, name="<b>risky")
    Agent.objects.filter(id=agent.id).update(risk_score=0.9)
    RiskDay.objects.create(
        agent=agent, day=now().date(), events=1, medium=0, high=1, score_sum=0.9, max_score=0.9,
        peak_score=0.9, peak_at=now(),
    )  # fmt: skip

    answer = console_of(make_member(acme, Role.AUDITOR)).get(reverse("console_overview"))

    assert answer.context["charts"][-1].rows[0][1:] == ["0.90"]
    assert "&lt;b&gt;risky" in answer.content.decode()


def test_strangers_find_no_overview() -> None:
    refused = console_of(make_staff()).get(reverse("console_overview"))

    assert refused.headers["Location"] == reverse("admin:index")
    assert Client().get(reverse("console_overview")).status_code == 302


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0.0 s"), (119, "119.0 s"), (120, "2.0 min"), (7200, "2.0 h"), (172_800, "2.0 d")],
)
def test_durations_are_told_in_a_unit_that_suits(seconds: float, told: str) -> None:
    assert measured(timedelta(seconds=seconds)) == told
