"""Authorization server metadata (RFC 8414)."""

from typing import Any

import pytest

from compliance.tests.client import ApiClient
from delegation.oauth.agent_clients import CLIENT_CREDENTIALS, JWT_BEARER
from delegation.oauth.exchange import GRANT_TYPE

PATH = "/.well-known/oauth-authorization-server"


def test_it_names_every_endpoint(api: ApiClient, settings: Any) -> None:
    settings.BASE_URL = settings.TOKEN_ISSUER = "https://service.example"

    answer = api.get(PATH)

    found = answer.json()
    assert (answer.status_code, answer["Cache-Control"]) == (200, "public, max-age=600")
    assert found["issuer"] == "https://service.example"
    assert found["token_endpoint"] == "https://service.example/oauth/token"
    assert found["jwks_uri"] == "https://service.example/.well-known/jwks.json"
    assert (found["grant_types_supported"], found["response_types_supported"]) == (
        [GRANT_TYPE, CLIENT_CREDENTIALS, JWT_BEARER],
        [],
    )
    assert "private_key_jwt" in found["token_endpoint_auth_methods_supported"]
    assert "private_key_jwt" not in found["introspection_endpoint_auth_methods_supported"]
    assert found["authorization_grant_profiles_supported"] == ["urn:ietf:params:oauth:grant-profile:id-jag"]
    assert "ES256" in found["dpop_signing_alg_values_supported"]
    assert (
        f"urn:{settings.SERVICE_NAME}:params:oauth:token-type:agent" in found["actor_token_types_supported"]
    )


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
