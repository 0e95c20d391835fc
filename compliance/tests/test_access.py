"""Every operation that takes a key refuses callers without one, without its scope, and without the row."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from django.urls import resolve

from agents.models import Agent
from compliance.api.gate import Scope
from compliance.api.rest.views import ApiViewSet
from compliance.tests import sound_requests
from compliance.tests.client import ApiClient
from compliance.tests.description import description
from compliance.tests.test_foreign_digits import Parameter, ask, parameters
from tenancy.services import get_tenant
from tenancy.tests.factories import make_expired_key, make_key, make_revoked_key, make_tenant, make_test_key

known = sound_requests.known
# Their refusals have another form: `delegation/oauth/tests/test_clients.py`, `gateway/tests/test_serial.py`.
OTHER_FORMS = ("/oauth/", "/v1/gateway/authorize")
NO_ROWS = {"serial", "part", "did", "list_id", "level", "path", "applies_to", "tenant_id"}
"""Parameters that name what is public, or a part of something."""


class Operation(NamedTuple):
    """An operation, and the scope that its view declares."""

    method: str
    path: str
    scope: Scope

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def operations() -> Iterator[Operation]:
    for path, methods in description()["paths"].items():
        found: Any = resolve(re.sub("{[^}]+}", "x", path)).func
        view: Any = getattr(found, "cls", object)
        if not issubclass(view, ApiViewSet) or path.startswith(OTHER_FORMS):
            continue
        for method in methods:
            yield Operation(method.upper(), path, view.required_scopes[found.actions[method]])


OPERATIONS = list(operations())
LISTS = [one.path for one in OPERATIONS if one.method == "GET" and "{" not in one.path]
OF_ROWS = [one for one in parameters() if one.place == "path" and one.name not in NO_ROWS]


def strangers(ids: dict[str, str]) -> tuple[ApiClient, ApiClient]:
    """Return another tenant's client, and the tenant's own in the sandbox; both have every scope."""
    own = get_tenant(tenant_id=Agent.objects.get(id=ids["agent_id"]).tenant_id)
    return ApiClient(make_key(make_tenant("Rival"))), ApiClient(make_test_key(own))


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_key_and_scope_are_needed(api: ApiClient, operation: Operation) -> None:
    tenant, path = make_tenant(), re.sub("{[^}]+}", "x", operation.path)
    others = [scope for scope in Scope if scope is not operation.scope]

    def status(secret: str | None) -> int:
        client = api if secret is None else api.as_key(secret)
        return int(client.raw(operation.method, path, b"").status_code)

    found = [status(secret) for secret in (None, make_revoked_key(tenant), make_expired_key(tenant))]

    assert found == [401, 401, 401]
    assert status(make_key(tenant, others)) == 403
    assert status(make_key(tenant)) not in (401, 403)


@pytest.mark.parametrize("parameter", OF_ROWS, ids=str)
def test_rows_of_another_tenant_and_environment_do_not_exist(
    known: tuple[ApiClient, dict[str, str]], parameter: Parameter
) -> None:
    client, ids = known

    assert [ask(stranger, parameter, ids) for stranger in strangers(ids)] == [404, 404]

    assert ask(client, parameter, ids) not in (400, 404)


@pytest.mark.parametrize("path", LISTS)
def test_lists_show_no_row_of_another_tenant_or_environment(
    known: tuple[ApiClient, dict[str, str]], path: str
) -> None:
    _, ids = known
    rows = [row for name, row in ids.items() if name not in NO_ROWS]

    shown = [stranger.get(path).content.decode() for stranger in strangers(ids)]

    assert [row for row in rows for page in shown if row in page] == []


def test_operations_and_rows_are_found() -> None:
    assert len(OPERATIONS) > 70
    assert len(OF_ROWS) > 40
