"""The API neither reads nor writes cookies: with any of them it answers as it does without."""

from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from compliance.console.addresses import CONSOLE_PREFIX
from compliance.tests.client import ApiClient
from compliance.tests.console import console_of, make_operator
from compliance.tests.url_table import api_routes, methods_of
from tenancy.tests.factories import make_key, make_tenant

GARBAGE = {
    "session": "sessionid=" + "a" * 32,
    "no session": "sessionid=x",
    "token": "csrftoken=x",
    "message": "messages=x",
    "all": "sessionid=x; csrftoken=x; messages=x; other=x",
    "nonsense": "\x01=;;=",
}
REFUSED = {"POST /v1/ssf/streams": {"description": 1}}
"""A body that is refused where an empty one makes something new."""


# Arguments are left as they are named.
ROUTES = [
    (method.upper(), "/" + route.replace("<", "{").replace(">", "}"))
    for route, view in api_routes()
    if not f"/{route}".startswith(CONSOLE_PREFIX)
    for method in methods_of(view)
]


def headers_of(answer: Any) -> dict[str, str]:
    changing = {"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id", "Expires"}
    return {name: "" if name in changing else value for name, value in answer.headers.items()}


@pytest.fixture(scope="module")
def client(world_transaction: None) -> ApiClient:
    return ApiClient(make_key(make_tenant()))


@pytest.fixture(scope="module")
def signed_in(world_transaction: None) -> str:
    """The cookies of an operator who has opened a page."""
    browser = console_of(make_operator())
    browser.get("/admin/live/")
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("GET", "/v1/nothing")])
def test_cookies_change_nothing(client: ApiClient, signed_in: str, method: str, path: str) -> None:
    body = REFUSED.get(f"{method} {path}", {})

    plain = client._send(method, path, body, {})

    assert "sessionid" in signed_in
    read = client._send(method, path, body, {"Accept": "text/html"})
    assert not plain.cookies
    assert not read.cookies
    for cookie in [signed_in, *GARBAGE.values()]:
        answer = client._send(method, path, body, {"Cookie": cookie})
        assert (answer.status_code, answer.content) == (plain.status_code, plain.content), cookie
        assert headers_of(answer) == headers_of(plain)
        assert not answer.cookies
        assert "cookie" not in answer.headers.get("Vary", "").lower()


def test_sessions_are_not_looked_up(client: ApiClient) -> None:
    client.get("/v1/agents")

    with CaptureQueriesContext(connections["default"]) as queries:
        client.get("/v1/agents", Cookie=GARBAGE["session"])

    assert not [query for query in queries if "_session" in query["sql"]]
