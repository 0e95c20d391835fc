"""Ctrl-K finds pages and rows by any ID, and some by name, among those that the user may see."""

from typing import Any

import pytest
from django.urls import reverse

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import ConsoleBrowser, console_of, make_member, populate
from tenancy.models import Role
from tenancy.tests.factories import make_tenant

BY_NAME = {
    "agents_agent": lambda row: row.name,
    "certificates_certificate": lambda row: row.serial_number,
    "incidents_incident": lambda row: row.reference.lower(),
}
BY_ID = (*BY_NAME, "events_behaviorevent", "webhooks_webhook")


def found(client: ConsoleBrowser, term: str) -> str:
    html: str = client.get(reverse("admin:search"), {"s": term, "extended": "1"}).content.decode()
    return html


@pytest.mark.parametrize("page", [*BY_ID, *(f"{name} by name" for name in BY_NAME)])
def test_row_is_found_by_its_tenant_in_its_environment(page: str) -> None:
    acme, rival = make_tenant("Acme"), make_tenant("Rival")
    name = page.removesuffix(" by name")
    row: Any = populate(acme, Environment.LIVE)[name]
    with environments.use(Environment.LIVE):
        term = str(row.pk) if page in BY_ID else BY_NAME[name](row)
    mine, theirs = make_member(acme, Role.OFFICER, "mine"), make_member(rival, Role.OFFICER, "theirs")

    address = reverse(f"admin:{name}_change", args=[row.pk])
    assert address in found(console_of(mine), term)
    assert f"/{row.pk}/" not in found(console_of(mine, Environment.TEST), term)
    assert f"/{row.pk}/" not in found(console_of(theirs), term)


@pytest.mark.parametrize(
    ("term", "address"), [("webh", "webhooks/webhook/"), ("overv", "overview/"), ("\x00", "")]
)
def test_pages_are_found_by_their_names(term: str, address: str) -> None:
    client = console_of(make_member(make_tenant("Acme"), Role.OFFICER))

    html = found(client, term)

    assert (f'href="/admin/live/{address}"' in html) == bool(address)
