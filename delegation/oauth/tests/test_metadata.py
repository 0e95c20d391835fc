"""Authorization server metadata (RFC 8414)."""

from typing import Any

import pytest

from compliance.tests.client import ApiClient

PATH = "/.well-known/oauth-authorization-server"


def test_what_it_names_is_there(api: ApiClient, settings: Any) -> None:
    found = api.get(PATH).json()

    for name in ("token_endpoint", "introspection_endpoint", "revocation_endpoint", "jwks_uri"):
        path = found[name].removeprefix(settings.BASE_URL)
        assert api.post(path).status_code in (401, 405), name


@pytest.mark.parametrize(
    ("path", "status"), [("/tenant", 200), ("/other", 404), ("/tenant/x", 404), ("/", 404)]
)
def test_the_path_of_the_issuer_stands_behind_the_name(
    api: ApiClient, settings: Any, path: str, status: int
) -> None:
    settings.TOKEN_ISSUER = "https://service.example/tenant"

    assert api.get(PATH + path).status_code == status
    assert api.get(PATH).json()["issuer"] == settings.TOKEN_ISSUER
