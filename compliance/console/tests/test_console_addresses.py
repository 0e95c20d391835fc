"""The environment stands in the address: pages, links, redirects and forms stay in it."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import get_script_prefix, get_urlconf, reverse

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent
from compliance.console.addresses import CONSOLE_PREFIX, prefix_of, within
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import address_in, console_of, make_member, make_operator
from tenancy import services
from tenancy.models import Role, Tenant

BOTH = pytest.mark.parametrize("environment", list(Environment))
LIVE, TEST = Environment.LIVE, Environment.TEST
PASSWORD = "a long enough passphrase"


def agent_in(environment: Environment, acme: Tenant) -> Agent:
    with environments.use(environment):
        return make_agent(services.get_tenant(tenant_id=acme.id), name=f"Agent of {environment.value}")


def links(html: str) -> set[str]:
    """What the page leads to within the console."""
    found = re.findall(r'(?:href|action|src|value|hx-get)="(/[^"]*)"', html)
    return {address for address in found if address.startswith(CONSOLE_PREFIX)}


@BOTH
def test_page_shows_the_environment_of_its_address(acme: Tenant, environment: Environment) -> None:
    live, test = agent_in(LIVE, acme), agent_in(TEST, acme)
    client = console_of(make_member(acme, Role.OFFICER))

    html = client.get(address_in(environment, "agents_agent_changelist")).content.decode()

    mine, other = (live, test) if environment is LIVE else (test, live)
    assert mine.name in html
    assert other.name not in html
    assert ("<title>[TEST]" in html) == ("Test environment" in html) == (environment is TEST)


@BOTH
def test_links_of_a_page_stay_in_its_environment(acme: Tenant, environment: Environment) -> None:
    agent = agent_in(environment, acme)
    other = TEST if environment is LIVE else LIVE
    operator = make_operator()
    operator.set_password(PASSWORD)
    operator.save()
    client = console_of(operator)
    pages = {
        "index": address_in(other, "index"),
        "agents_agent_changelist": address_in(other, "agents_agent_changelist"),
        "agents_agent_change": address_in(other, "agents_agent_changelist"),
        "agents_agent_suspend": address_in(other, "agents_agent_changelist"),
        "password_change": address_in(other, "password_change"),
        "tenancy_tenant_add": address_in(other, "tenancy_tenant_add"),
    }

    for page, counterpart in pages.items():
        args = (agent.pk,) if page in ("agents_agent_change", "agents_agent_suspend") else ()
        html = client.get(address_in(environment, page, *args)).content.decode()

        elsewhere = {link for link in links(html) if not link.startswith(prefix_of(environment))}
        assert elsewhere == {counterpart}, page


@BOTH
def test_signing_in_leads_to_the_page_that_was_asked_for(acme: Tenant, environment: Environment) -> None:
    user = make_member(acme, Role.OFFICER)
    user.set_password(PASSWORD)
    user.save()
    client = Client()
    wanted = address_in(environment, "agents_agent_changelist") + "?status__exact=active"

    refused = client.get(wanted)
    form = client.get(refused.headers["Location"])
    next_page = form.context["redirect_field_value"]
    credentials = {"login": user.username, "password": PASSWORD, "next": next_page}
    answer = client.post(refused.headers["Location"], credentials)

    assert refused.headers["Location"].startswith(address_in(environment, "login"))
    assert (answer.status_code, answer.headers["Location"]) == (302, wanted)


@BOTH
def test_signing_in_without_a_page_leads_to_the_overview(acme: Tenant, environment: Environment) -> None:
    user = make_member(acme, Role.OFFICER)
    user.set_password(PASSWORD)
    user.save()
    form = {"login": user.username, "password": PASSWORD}

    answer = Client().post(address_in(environment, "login"), form)

    assert answer.headers["Location"] == address_in(environment, "index")


def test_sign_in_page_of_the_sandbox_says_so() -> None:
    html = Client().get(address_in(TEST, "login")).content.decode()

    assert "<title>[TEST]" in html


@pytest.mark.parametrize(
    ("address", "rest"),
    [
        ("/admin/", ""),
        ("/admin/agents/agent/", "agents/agent/"),
        ("/admin/agents/agent/?status__exact=active&q=%26", "agents/agent/?status__exact=active&q=%26"),
        ("/admin/agents/agent/01a1fac7/change/", "agents/agent/01a1fac7/change/"),
        ("/admin/login/?next=/admin/agents/agent/", "login/?next=/admin/agents/agent/"),
    ],
)
def test_bookmark_without_an_environment_leads_to_the_live_page(address: str, rest: str) -> None:
    answer = console_of(make_operator()).get(address)

    assert (answer.status_code, answer.headers["Location"]) == (302, prefix_of(LIVE) + rest)


@BOTH
def test_missing_slash_after_the_environment_is_added(environment: Environment) -> None:
    answer = Client().get(f"/admin/{environment.value}")

    assert answer.headers["Location"] == prefix_of(environment)


@pytest.mark.parametrize(
    "address",
    [
        "/admin/production/",
        "/admin/production/agents/agent/",
        "/admin/LIVE/",
        "/admin/environment/",
        "/admin/nowhere/",
        "/admin//evil.example/",
        "/admin/https://evil.example/",
        "/admin/%00/",
        "/admin/live/test/",
        "/admin/live//",
        "/admin/live/live/agents/agent/",
    ],
)
def test_unknown_environments_and_pages_are_not_found(address: str) -> None:
    client = console_of(make_operator())

    for answer in (client.get(address), client.post(address)):
        assert answer.status_code == 404
        assert answer.headers["Content-Type"].startswith("text/html")
        assert "Nothing here" in answer.content.decode()


def test_form_without_an_environment_is_refused(acme: Tenant) -> None:
    agent = make_agent(acme)
    client = console_of(make_operator())

    answer = client.post(f"/admin/agents/agent/{agent.pk}/suspend/", {"reason": "odd"}, follow=True)

    agent.refresh_from_db()
    assert answer.status_code == 405
    assert agent.status == AgentStatus.PENDING


def test_sign_in_form_without_an_environment_is_sent_on(acme: Tenant) -> None:
    user = make_member(acme, Role.OFFICER)
    user.set_password(PASSWORD)
    user.save()

    form = {"login": user.username, "password": PASSWORD}
    answer = Client().post("/admin/login/", form, follow=True)

    assert answer.redirect_chain == [("/admin/live/login/", 307), ("/admin/live/", 302)]


def test_error_page_leads_back_to_its_environment() -> None:
    client = console_of(make_operator())

    assert f'href="{prefix_of(TEST)}"' in client.get("/admin/test/nowhere/").content.decode()
    assert f'href="{CONSOLE_PREFIX}"' in client.get("/admin/nowhere/").content.decode()


def test_sign_in_is_limited_in_both_environments_together(settings: Any) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "sign_in": 1}
    wrong = {"login": "root", "password": "a guess"}

    answers = [Client().post(address_in(environment, "login"), wrong) for environment in Environment]

    assert [answer.status_code for answer in answers] == [200, 429]


def test_addresses_outside_a_request_are_live() -> None:
    console_of(make_operator()).get(address_in(TEST, "index"))

    assert reverse("admin:index") == prefix_of(LIVE)
    assert get_urlconf() in (None, "compliance.urls")
    assert get_script_prefix() == "/"


def test_addresses_are_restored_after_a_failure() -> None:
    before = get_urlconf(), get_script_prefix()

    with pytest.raises(ZeroDivisionError), within(TEST):
        _ = 1 / 0

    assert (get_urlconf(), get_script_prefix()) == before
