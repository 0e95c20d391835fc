"""`GET /v1/schema` and `GET /v1/docs`."""

import os
import subprocess
import sys
from typing import Any

import pytest
import yaml
from django.conf import settings as project

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


def test_description_follows_the_format_parameter(api: ApiClient) -> None:
    assert api.get("/v1/schema?format=yaml").content.startswith(b"openapi: 3.0.3")


CROWD = """
import hashlib
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import django
django.setup()
from django.core.wsgi import get_wsgi_application
from django.test import Client
get_wsgi_application()
gate = Barrier(24)
def ask(form):
    gate.wait()
    answer = Client().get(f"/v1/schema?format={form}", headers={"host": "localhost"})
    return form, answer.status_code, hashlib.sha256(answer.content).hexdigest()
with ThreadPoolExecutor(24) as threads:
    print(*sorted(set(threads.map(ask, ["json", "yaml"] * 12))), sep="\\n")
"""


@pytest.mark.drill
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_first_requests_of_a_process_all_get_the_same_description(attempt: int) -> None:
    """In a process of its own that has drawn nothing yet."""
    ended = subprocess.run(
        [sys.executable, "-c", CROWD],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "compliance.settings"},
        cwd=project.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    answers = ended.stdout.splitlines()
    assert [line[:14] for line in answers] == ["('json', 200, ", "('yaml', 200, "], ended.stdout


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


@pytest.mark.parametrize("path", ["/v1/schema", "/v1/docs", "/v1/docs?script"])
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


def test_pages_are_html_and_their_script_is_theirs(api: ApiClient) -> None:
    page, script = api.get("/v1/docs", Accept="text/html"), api.get("/v1/docs?script")

    assert page["Content-Type"].startswith("text/html")
    assert b"swagger-ui" in page.content
    assert script["Content-Type"].startswith("application/javascript")
