"""An ID token of a real OpenID provider, in a process of its own, exchanged for a delegation."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from django.conf import settings as configured

from agents.tests.factories import make_agent
from delegation.issuers.tests.factories import make_issuer
from delegation.jose import jws
from delegation.oauth.tests.oauth_clients import send, with_id_token
from people.sso.tests import toolkit
from people.sso.tests.providers import Toolkit, running_toolkit
from tenancy.models import Tenant
from tenancy.tests.factories import make_key

VERIFIER = "v" * 64
CALLBACK = f"{configured.BASE_URL}/{toolkit.CALLBACK}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolkit]:
    with running_toolkit(tmp_path_factory.mktemp("provider"), configured.BASE_URL) as found:
        yield found


@pytest.fixture
def provider(running: Toolkit, nothing_fetched: None, settings: Any) -> Toolkit:
    settings.TRUSTED_ISSUER_ALLOW_HTTP = settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES = True
    running.add(email="kim@example.com", email_verified=True)
    return running


def id_token_of(provider: Toolkit) -> str:
    """Sign in as a person does, and redeem the code as the console would."""
    asked = {
        "response_type": "code",
        "client_id": toolkit.CLIENT_ID,
        "redirect_uri": CALLBACK,
        "scope": "openid email",
        "code_challenge": create_s256_code_challenge(VERIFIER),
        "code_challenge_method": "S256",
    }
    sent_to = provider.sign_in(f"{provider.issuer}/authorize/?{urlencode(asked)}")
    form = {
        "grant_type": "authorization_code",
        "code": parse_qs(urlsplit(sent_to).query)["code"][0],
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "client_id": toolkit.CLIENT_ID,
        "client_secret": toolkit.CLIENT_SECRET,
    }
    answer = requests.post(f"{provider.issuer}/token/", form, timeout=10)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id_token"])


def test_a_real_id_token_verifies_the_root(tenant: Tenant, provider: Toolkit) -> None:
    make_issuer(tenant, provider.issuer, audiences=[toolkit.CLIENT_ID], algorithms=["RS256"])
    agent = make_agent(tenant)

    answer = send(with_id_token(id_token_of(provider), agent, scope="read"), key=make_key(tenant))

    assert answer.status_code == 200, answer.content
    claims = jws.parse(answer.json()["access_token"]).payload
    assert (claims["sub"], claims["sub_id"]["iss"]) == ("kim@example.com", provider.issuer)
