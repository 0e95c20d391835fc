"""What anyone may read, a page of any origin may read; nothing else."""

import pytest

from compliance.api.rest.views import is_public
from compliance.tests.client import ApiClient
from compliance.tests.url_table import api_routes

WORD = "00000000-0000-4000-8000-000000000000"


def path_of(route: str) -> str:
    parts = route.split("<")
    return "/" + parts[0] + "".join(WORD + part.partition(">")[2] for part in parts[1:])


ROUTES = sorted({(path_of(route), is_public(view)) for route, view in api_routes() if hasattr(view, "cls")})


@pytest.mark.parametrize(("path", "anyone"), ROUTES)
def test_only_what_anyone_may_read_names_every_origin(api: ApiClient, path: str, anyone: bool) -> None:
    answer = api.get(path, Origin="https://shop.example")

    assert answer.get("Access-Control-Allow-Origin") == ("*" if anyone else None), answer.status_code
    assert "Access-Control-Allow-Credentials" not in answer


def test_nothing_is_allowed_beyond_reading(api: ApiClient) -> None:
    answer = api.post("/v1/delegation/verify", {}, Origin="https://shop.example")

    assert "Access-Control-Allow-Origin" not in answer
