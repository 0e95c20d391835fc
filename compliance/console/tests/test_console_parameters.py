"""No parameter of a list's address fails or is slow: every list, every parameter, hostile values."""

import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.views.main import IGNORED_PARAMS, PAGE_VAR
from django.db.models import Field
from django.test import Client

from compliance.console.admin import TenantScopedAdmin
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_member, make_operator, populate
from compliance.tests.url_table import PAGES, Route, routes
from tenancy.models import Role
from tenancy.tests.factories import make_tenant

pytestmark = pytest.mark.matrix

LONGEST_SECONDS = 3
LISTS = [
    route for route in routes() if route.name.endswith(("_changelist", "_export")) and not route.is_of_a_row
]
BACKTRACKING = r"(.*)(.*)(.*)\1\2\3z"
HOSTILE = (
    *(
        "",
        "x",
        "(",
        "a,b",
        "\x00",
        "-1",
        "0",
        "9" * 30,
        "1e400",
        "true",
        "[]",
        "\U0001f642\u202e",
        "a" * 5000,
    ),
    *(
        BACKTRACKING,
        "%",
        "'--",
        "10000-01-01",
        "0001-01-01",
        "9999-12-31",
        "23:59:59",
        "2026-02-30",
        "\u202e",
    ),
    *("00000000-0000-4000-8000-000000000000", "active", "1.1.1.-1", "id", "name"),
)
LOOKUPS = ("regex", "iregex", "range", "in", "isnull", "year", "date", "contains", "exact", "gt", "week__gte")
# Of pages that are lists of a kind of their own.
OWN = {
    "approvals_approval": ("approval",),
    "auditlog_treehead": (),
    "inbox_openevent": ("band", "shown", "tenant", "q", "page", "event", "agent", "after", "tick", "held"),
}


def parameters_of(client: Client, route: Route) -> set[str]:
    """Return what the filters, months, links and Django's own controls of a list take."""
    assert route.page is not None
    page, answer = PAGES[route.page], client.get(route.url().split("export/")[0])
    found = getattr(answer, "context", None) and answer.context.get("cl")
    if found is None:
        return {*OWN[route.page], PAGE_VAR, "q"}
    own = {name for spec in found.filter_specs for name in spec.expected_parameters() if name}
    months = {f"{found.date_hierarchy}__{part}" for part in ("year", "month", "day", "gte", "lt")}
    linked = page.linked_parameters() if isinstance(page, TenantScopedAdmin) else set()
    return {*own, *months, *linked, *IGNORED_PARAMS, PAGE_VAR, "e"}


def foreign_parameters(model: Any) -> Iterator[str]:
    """Yield look-ups that Django offers over every column, and over the columns of related rows."""
    lookups = cycle(LOOKUPS[1:])
    for field in model._meta.get_fields():
        if isinstance(field, Field):
            path = f"{field.name}__pk" if field.is_relation else field.name
            yield from (path, f"{path}__regex", f"{path}__{next(lookups)}")


def failures(client: Client, url: str, query: dict[str, str]) -> list[str]:
    """Open an address; say what is wrong with the answer."""
    began = time.monotonic()
    answer = client.get(url, query)
    took = time.monotonic() - began
    asked = f"{url}?{urlencode(query)[:100]}"
    slow = [f"{took:.1f} s: {asked}"] if took > LONGEST_SECONDS else []
    return [
        *slow,
        *([f"{answer.status_code}: {asked}"] if answer.status_code not in (200, 302, 400, 403) else []),
    ]


def test_no_parameter_of_a_list_fails_or_is_slow() -> None:
    """Each parameter is tried with two values in one list, and with the next two in the next."""
    acme = make_tenant("Acme")
    populate(acme, Environment.LIVE)
    operator, officer = console_of(make_operator()), console_of(make_member(acme, Role.OFFICER))
    values, found = cycle(HOSTILE), []

    for route in LISTS:
        for name in sorted(parameters_of(operator, route)):
            for client in (operator, officer):
                client.raise_request_exception = False
                found += failures(client, route.url(), {name: next(values)})

    assert found == []


def test_lists_take_no_look_up_but_their_own() -> None:
    populate(make_tenant("Acme"), Environment.LIVE)
    client = console_of(make_operator())
    client.raise_request_exception = False

    taken = [
        f"{answer.status_code}: {route.url()}?{name}"
        for route in LISTS
        if route.page not in OWN
        for name in {*foreign_parameters(PAGES[route.page or ""].model)} - parameters_of(client, route)
        if (answer := client.get(route.url(), {name: BACKTRACKING})).status_code not in (302, 400)
    ]

    assert taken == []
