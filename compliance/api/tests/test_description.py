"""`GET /v1/schema` and `GET /v1/docs`."""

from typing import Any

import pytest
import yaml

from compliance.tests.client import ApiClient


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json,*/*", "text/html,*/*;q=0.8"])
def test_description_is_json(api: ApiClient, accept: str) -> None:
    answer = api.get("/v1/schema", Accept=accept)

    assert answer.status_code == 200
    assert answer.json()["openapi"] == "3.0.3"
    assert answer.json()["info"]["version"] == "1.0.0"


@pytest.mark.parametrize("accept", ["application/yaml", "application/vnd.oai.openapi"])
def test_description_is_yaml_for_who_asks(api: ApiClient, accept: str) -> None:
    answer = api.get("/v1/schema", Accept=accept)

    assert answer["Content-Type"].startswith(accept)
    assert yaml.load(answer.content, yaml.CSafeLoader) == api.get("/v1/schema").json()


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_description_is_not_sent_twice_to_the_same_reader(api: ApiClient, form: str) -> None:
    first = api.get(f"/v1/schema?format={form}")
    again = api.get(f"/v1/schema?format={form}", If_None_Match=first["ETag"])
    other = api.get(f"/v1/schema?format={form}", If_None_Match='"other"')

    assert not first["ETag"].startswith("W/")
    assert "max-age" in first["Cache-Control"]
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert (other.status_code, other.content) == (200, first.content)


def test_forms_have_tags_of_their_own(api: ApiClient) -> None:
    assert api.get("/v1/schema?format=json")["ETag"] != api.get("/v1/schema?format=yaml")["ETag"]


@pytest.mark.parametrize("path", ["/v1/schema", "/v1/docs"])
def test_description_is_limited_by_address(api: ApiClient, settings: Any, path: str) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "public": 1}

    first, second = api.get(path), api.get(path)

    assert (first.status_code, first["X-RateLimit-Remaining"]) == (200, "0")
    assert (second.status_code, list(second.json())) == (429, ["error"])
    assert second["Retry-After"]


@pytest.mark.parametrize("path", ["/v1/schema", "/v1/docs"])
def test_errors_of_the_description_are_the_envelope(api: ApiClient, path: str) -> None:
    answer = api.delete(path)

    assert (answer.status_code, list(answer.json())) == (405, ["error"])
    assert answer["Content-Type"] == "application/json"


def test_pages_are_html_with_a_policy_and_scripts_of_their_own(api: ApiClient) -> None:
    page = api.get("/v1/docs", Accept="text/html")

    assert page["Content-Type"].startswith("text/html")
    assert "default-src 'none'; script-src 'self';" in page["Content-Security-Policy"]
    assert b"swagger-ui" in page.content
    assert all(b"src=" in tag.split(b">")[0] for tag in page.content.split(b"<script")[1:])
