"""The guide's Python verifies a real token against the real JWKS over HTTP, and makes proofs."""

import re
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.conf import settings
from pytest_httpserver import HTTPServer

from agents.tests.factories import make_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation.tests.factories import CHAIN, make_token
from tenancy.models import Tenant
from tenancy.tests.factories import make_test_key

GUIDE = Path(settings.BASE_DIR) / "sdk" / "docs" / "verify-offline.md"


@pytest.fixture
def guide(api: ApiClient, tenant: Tenant, httpserver: HTTPServer) -> dict[str, Any]:
    """The names that the guide's snippet defines, its service played with the answers of the real one."""
    for query in ("", "?environment=test"):
        body = api.get(f"/.well-known/jwks.json{query}").json()
        httpserver.expect_request("/.well-known/jwks.json", query_string=query[1:]).respond_with_json(body)
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {"BASE_URL": httpserver.url_for("").rstrip("/"), "ISSUER": settings.TOKEN_ISSUER}
    exec(code[1], names)  # noqa: S102  (the guide is ours)
    return names


def test_the_guides_code_verifies_a_token_offline(guide: dict[str, Any], tenant: Tenant) -> None:
    token = make_token(make_agent(tenant), audience="https://api.example").token

    claims = guide["verify"](token, "https://api.example")

    assert guide["chain"](claims) == [(actor["sub"], actor["type"]) for actor in CHAIN]


@pytest.mark.parametrize("audience", [None, "https://other.example"])
def test_the_guides_code_refuses_tokens_for_others(
    guide: dict[str, Any], tenant: Tenant, audience: str | None
) -> None:
    token = make_token(make_agent(tenant), audience=audience).token

    with pytest.raises(jwt.PyJWTError):
        guide["verify"](token, "https://api.example")


def test_the_guides_code_refuses_expired_and_sandbox_tokens(guide: dict[str, Any], tenant: Tenant) -> None:
    make_test_key(tenant)
    with environments.use(Environment.TEST):
        sandbox = make_token(make_agent(tenant), audience="https://api.example").token
    old = now().replace(year=now().year - 1)
    expired = make_token(make_agent(tenant), audience="https://api.example", at=old).token

    for token in (sandbox, expired):
        with pytest.raises(jwt.PyJWTError):
            guide["verify"](token, "https://api.example")
