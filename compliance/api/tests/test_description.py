"""`GET /v1/schema`."""

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
    assert yaml.safe_load(answer.content) == api.get("/v1/schema").json()


def test_description_follows_the_format_parameter(api: ApiClient) -> None:
    assert api.get("/v1/schema?format=yaml").content.startswith(b"openapi: 3.0.3")
