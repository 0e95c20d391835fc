"""No page of the console takes more statements than it may, whatever number of rows it shows."""

from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from pytest_django.fixtures import Settings

from auditlog.models import AuditEntry
from auditlog.tests.factories import seal_and_sign
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_member, make_operator, populate
from compliance.tests.url_table import PAGES, Route, routes
from tenancy.models import Membership, Role, Tenant

pytestmark = pytest.mark.matrix

MOST_QUERIES = 20
# With a statement for each row of a list, a page would take more than it may.
ROWS = MOST_QUERIES + 1
OPERATOR = "operator"
ROUTES = routes()
OF_THE_SESSION = {"login", "logout"}
COMPOSED = {"agents_agent_attestation": 50}
"""Documents about one row that many rooms tell of, and how many statements they may take."""
# Of blocks that are a transaction of their own outside tests.
NO_QUERIES = ("SAVEPOINT", "RELEASE")


@pytest.fixture
def rows(acme: Tenant, settings: Settings) -> dict[str, Any]:
    settings.SIGNAL_STREAMS_PER_TENANT = ROWS
    for number in range(ROWS):
        made = populate(acme, Environment.LIVE, f"row{number}")
    seal_and_sign()
    return made


def queries_of(client: Client, url: str) -> tuple[int, int]:
    """Return how many statements the page took, and its status."""
    counted = []

    def count(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        if not statement.startswith(NO_QUERIES):
            counted.append(statement)
        return execute(statement, params, many, context)

    # In tests the auditor's connection is the environment's own.
    distinct = {id(connection): connection for connection in connections.all()}
    with ExitStack() as stack:
        for connection in distinct.values():
            stack.enter_context(connection.execute_wrapper(count))
        answer: Any = client.get(url)
    return len(counted), answer.status_code


def urls_of(route: Route, rows: dict[str, Any]) -> list[str]:
    """Return the route's addresses: of a row, or of a list as it is, searched and paged."""
    if route.is_of_a_row:
        row = (
            rows.get(route.page or "")
            or PAGES[route.page or "agents_agent"].model.objects.order_by("pk").last()
        )
        return [route.url(row.pk)] if row is not None else []
    if route.name.endswith("_changelist"):
        return [route.url() + query for query in ("", "?q=row", "?q=11111111-1111-4111-8111-111111111111")]
    return [route.url()]


@pytest.mark.parametrize("who", [OPERATOR, Role.OFFICER])
def test_no_page_takes_more_than_20_queries(acme: Tenant, rows: dict[str, Any], who: str) -> None:
    client = console_of(make_operator() if who == OPERATOR else make_member(acme, Role(who)))
    known = {
        **rows,
        "auditlog_auditentry": AuditEntry.objects.for_tenant(acme.id).first(),
        "tenancy_membership": Membership.objects.filter(tenant_id=acme.id).first(),
    }

    taken = {
        url: (*queries_of(client, url), COMPOSED.get(route.name, MOST_QUERIES))
        for route in ROUTES
        if route.name not in OF_THE_SESSION
        for url in urls_of(route, known)
    }

    wrong = {url: found for url, found in taken.items() if found[0] > found[2] or found[1] >= 500}
    assert wrong == {}
    assert sum(status == 200 for _, status, _ in taken.values()) > 40
