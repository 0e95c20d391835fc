"""Bad input gets a clear error in the envelope, on every path; never a 500."""

import re

import pytest

from agents.models import Agent
from compliance.tests.client import ApiClient
from compliance.tests.description import description
from compliance.tests.url_table import api_routes, methods_of
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture
def client(api: ApiClient) -> ApiClient:
    return api.as_key(make_key(make_tenant()))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"{} trailing",
        b'{"name": "a", "name": "b", "model_hash": "h"}',
        b'{"name": "a\\u0000", "model_hash": "h"}',
        b'{"name": "\\ud800", "model_hash": "h"}',
        b'{"name": "a", "model_hash": "h", "metadata": {"\\u0000": 1}}',
        b'{"name": "a", "model_hash": "h", "metadata": {"x": NaN}}',
        b'{"name": "a", "model_hash": "h", "metadata": {"x": -Infinity}}',
        b'{"name": "a", "model_hash": "h", "metadata": {"x": 1e400}}',
        b'{"name": "a", "model_hash": "h", "metadata": {"x": ' + b"9" * 5000 + b"}}",
        b'{"name": "\xff\xfe", "model_hash": "h"}',
        b'{"name": "a", "model_hash": "h", "metadata": {"x": ' + b"[" * 40 + b"]" * 40 + b"}}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=range(18),
)
def test_bad_json_is_400(client: ApiClient, body: bytes) -> None:
    answer = client.raw("POST", "/v1/agents", body)

    assert answer.status_code == 400, answer.content
    assert list(answer.json()) == ["error"]
    assert Agent.objects.count() == 0


def test_body_over_a_mebibyte_is_413(client: ApiClient) -> None:
    answer = client.raw("POST", "/v1/agents", b'{"name": "' + b"a" * 1024 * 1024 + b'"}')

    assert answer.status_code == 413
    assert "larger" in answer.json()["error"]


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_other_content_types_are_415(client: ApiClient, content_type: str) -> None:
    answer = client.raw("POST", "/v1/agents", b'{"name": "a", "model_hash": "h"}', content_type)

    assert answer.status_code == 415
    assert answer.json() == {"error": "Content-Type must be application/json"}


@pytest.mark.parametrize("path", ["/v1", "/v1/nothing", "/v1/agents/", "/v2/agents", "/v1/agents/%00/x"])
def test_unknown_routes_are_404(client: ApiClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 404
    assert list(answer.json()) == ["error"]


def test_wrong_method_is_405_and_says_which_are_right(client: ApiClient) -> None:
    answer = client.delete("/v1/agents")

    assert answer.status_code == 405
    assert answer["Allow"] == "GET, POST, HEAD"
    assert list(answer.json()) == ["error"]


def test_wrong_host_is_400(client: ApiClient) -> None:
    answer = client.get("/v1/agents", Host="evil.example")

    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("path", ["/v1/agents", "/v1/delegation/verify", "/.well-known/jwks.json"])
def test_options_is_no_method_of_any_path(api: ApiClient, path: str) -> None:
    answer = api.as_key(make_key(make_tenant())).raw("OPTIONS", path, b"")

    assert answer.status_code == 405
    assert "OPTIONS" not in answer["Allow"]


@pytest.mark.parametrize("path", ["/oauth/nothing", "/oauth/token/"])
def test_unknown_oauth_routes_are_404_in_their_form(client: ApiClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 404
    assert answer.json() == {"error": "invalid_request", "error_description": "Not found"}


# Whose parameters are another standard's, or another request's.
TAKES_ANY = (
    "v1/ocsp",
    "v1/ocsp/",
    "v1/ocsp/<path:encoded>",
    "v1/gateway/authorize/",
    "v1/gateway/authorize/<path:target>",
)


ROUTES = sorted(
    {
        (method, route)
        for route, view in api_routes()
        if route.startswith("v1/")
        for method in methods_of(view)
        if method != "head"
    }
)


@pytest.mark.parametrize(("method", "route"), ROUTES)
def test_unknown_query_parameter_is_refused_by_name(client: ApiClient, method: str, route: str) -> None:
    path = "/" + re.sub("<[^>]+>", "x", route)

    answer = client.raw(method.upper(), f"{path}?frob=1", b"")

    is_refused = answer.status_code == 400 and b"frob" in answer.content
    assert is_refused is (route not in TAKES_ANY), answer.content


def test_parameters_that_an_operation_declares_are_known(client: ApiClient) -> None:
    asked = [
        (method.upper(), re.sub("{[^}]+}", "x", path), parameter["name"])
        for path, operations in description()["paths"].items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query"
    ]

    refused = [one for one in asked if b"Unknown" in client.raw(one[0], f"{one[1]}?{one[2]}=1", b"").content]

    assert len(asked) > 30
    assert refused == []
