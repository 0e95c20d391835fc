"""Tokens that an agent obtains: by exchange of a subject token, else by delegation."""

from collections.abc import Iterator
from typing import Any

import pytest

from agentid import Client, ConfigurationError, Refused
from agentid.keys import DpopKey
from agents.tests.factories import make_agent
from compliance.core import environments
from compliance.core.environments import Environment
from delegation.issuers.tests.factories import make_issuer
from delegation.issuers.tests.providers import Provider
from tests.between import Canned, Fate, between
from tests.conftest import Reported

API = "https://api.example.com"


@pytest.fixture
def provider(reported: Reported) -> Iterator[Provider]:
    """An issuer whose ID tokens the agent's tenant trusts, by pinned keys."""
    with Provider.serving() as found, environments.use(Environment.LIVE):
        make_issuer(reported.agent.tenant, found.issuer, jwks=found.jwks)
        yield found


def test_id_token_is_exchanged_for_a_token_bound_to_the_agents_key(
    client: Client, reported: Reported, provider: Provider
) -> None:
    key = DpopKey.generate()

    found = client.obtain_token(
        str(reported.agent.id), subject_token=provider.token(), audience=API, proof=key.proof
    )

    told = client.oauth.introspect(token=found.token)
    assert (told.active, told.sub, told.token_type) == (True, "alice@example.com", "DPoP")
    assert told.sub_id is not None
    assert told.sub_id.iss == provider.issuer
    assert found.principal == reported.agent.did
    assert (found.audience, found.bound_to, found.scope) == (API, key.thumbprint, "")
    assert told.exp == int(found.expires_at.timestamp())
    assert found.token not in repr(found)


def test_token_of_another_agent_is_exchanged(client: Client, reported: Reported) -> None:
    with environments.use(Environment.LIVE):
        first = make_agent(reported.agent.tenant, name="first")
    handed = client.obtain_token(
        str(first.id), chain=[{"sub": "anna", "type": "human"}], scope="read", ttl_seconds=600
    )

    found = client.obtain_token(
        str(reported.agent.id), subject_token=handed.token, subject_token_type="access_token"
    )

    assert (handed.principal, handed.bound_to) == ("anna", None)
    assert (found.principal, found.scope) == (reported.agent.did, "read")
    assert found.expires_at <= handed.expires_at


def test_bound_subject_token_needs_its_key(client: Client, reported: Reported) -> None:
    key = DpopKey.generate()
    with environments.use(Environment.LIVE):
        first = make_agent(reported.agent.tenant, name="first")
    bound = client.obtain_token(str(first.id), chain=[{"sub": "anna", "type": "human"}], proof=key.proof)
    given: dict[str, Any] = {"subject_token": bound.token, "subject_token_type": "access_token"}

    with pytest.raises(Refused, match="key_not_proven") as refused:
        client.obtain_token(str(reported.agent.id), **given)
    found = client.obtain_token(str(reported.agent.id), **given, proof=key.proof)

    assert refused.value.error == "invalid_dpop_proof"
    assert found.bound_to == bound.bound_to == key.thumbprint


def test_nonce_that_is_asked_for_is_proven(client: Client, reported: Reported) -> None:
    asks = Canned(400, b'{"error": "use_dpop_nonce: required"}', {"DPoP-Nonce": "n1"})
    key, service = DpopKey.generate(), client.transport.configuration
    proofs: list[str | None] = []

    def prove(method: str, url: str, /, *, nonce: str | None = None) -> str:
        proofs.append(nonce)
        return key.proof(method, url.replace(way.address, service.base_url), nonce=nonce)

    with between(service.base_url, asks, Fate.PASSED) as way, Client(way.address, service.api_key) as other:
        found = other.obtain_token(
            str(reported.agent.id), chain=[{"sub": "anna", "type": "human"}], proof=prove
        )

    assert (proofs, found.bound_to) == ([None, "n1"], key.thumbprint)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"subject_token": "t", "chain": [{"sub": "anna", "type": "human"}]},
        {"subject_token": "t", "ttl_seconds": 60},
        {"subject_token": "t", "parent_token": "p"},
    ],
)
def test_what_is_asked_for_is_one_thing(given: dict[str, Any]) -> None:
    with Client("https://service.example", "k") as client, pytest.raises(ConfigurationError):
        client.obtain_token("a", **given)


def test_unknown_subject_is_refused_with_the_services_reason(client: Client, reported: Reported) -> None:
    with pytest.raises(Refused, match="subject_token: ") as refused:
        client.obtain_token(str(reported.agent.id), subject_token="e30.e30.AA")

    assert refused.value.error == "invalid_request"
