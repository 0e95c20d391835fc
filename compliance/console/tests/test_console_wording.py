"""The console's words: numbers with their nouns, abbreviations, names as written, rows that are not there."""

import pytest
from django.contrib import admin
from django.contrib.admin.utils import label_for_field
from django.urls import reverse

from agents.tests.factories import make_agent
from certificates.models import CertificateAuthority
from compliance.console.display import spelled
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.core.wording import counted
from compliance.tests.console import address_in, console_of, make_member, make_operator, make_staff
from compliance.tests.url_table import routes
from events.risk.scoring.rules import worth
from tenancy.models import Role, Tenant

FOREIGN_WORDS = (
    *("yielded", "Select agent", "to view", "to change", "Authentication and Authorization", "Designates"),
    *("admin site", "Search apps and models"),
)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 entries"), (1, "1 entry"), (2, "2 entries"), (21, "21 entries")]
)
def test_number_has_its_noun(number: int, text: str) -> None:
    assert counted(number, "entry", "entries") == text


@pytest.mark.parametrize(
    ("words", "text"),
    [("crl number", "CRL number"), ("first crl number", "first CRL number"), ("identity", "identity")],
)
def test_abbreviations_are_written_as_such(words: str, text: str) -> None:
    assert spelled(words) == text


def test_columns_name_the_revocation_list_as_people_do() -> None:
    page = admin.site.get_model_admin(CertificateAuthority)

    assert str(label_for_field("crl_number", CertificateAuthority, page)) == "CRL number"


def test_no_page_has_the_frameworks_words(acme: Tenant) -> None:
    client, user = console_of(make_operator()), make_member(acme, Role.OFFICER)
    lists = [route.url() for route in routes() if route.name.endswith("_changelist")]
    forms = [route.url() for route in routes() if route.name.endswith("_add")]
    urls = [*forms, *(f"{url}?q=nobody" for url in lists), reverse("admin:auth_user_change", args=[user.pk])]

    html = {url: client.get(url).content.decode() for url in urls}

    assert [(url, words) for url, text in html.items() for words in FOREIGN_WORDS if words in text] == []
    assert "Request report" in html[reverse("admin:reports_report_add")]
    assert "Add webhook" in client.get(reverse("admin:webhooks_webhook_changelist")).content.decode()


@pytest.mark.parametrize("page", ["change", "suspend", "trail"])
@pytest.mark.parametrize("environment", list(Environment))
def test_missing_row_is_named_with_where_it_was_looked_for(
    acme: Tenant, environment: Environment, page: str
) -> None:
    client = console_of(make_member(acme, Role.OFFICER), environment)
    missing = new_id()

    html = client.get(address_in(environment, f"agents_agent_{page}", missing), follow=True).content.decode()

    assert f"There is no agent {missing} in the {environment.value} environment of your tenants." in html
    assert "Perhaps it was deleted" not in html


def test_header_shows_names_as_they_are_written(acme: Tenant) -> None:
    agent, person = make_agent(acme, name="trade-bot"), make_staff("dev.dora")
    client = console_of(make_operator())

    for page, row, name in (("agents_agent", agent, "trade-bot"), ("auth_user", person, "dev.dora")):
        html = client.get(reverse(f"admin:{page}_change", args=[row.pk])).content.decode()
        assert name in html
        assert name.capitalize() not in html


def test_rule_like_reason_is_no_tiny_factor() -> None:
    assert worth("scope_mismatch", 0.1) == "alone at least 0.40"
