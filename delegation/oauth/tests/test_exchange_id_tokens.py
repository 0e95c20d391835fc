"""Exchange of a human's ID token for a delegation to an agent."""

from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.environments import Environment
from delegation.issuers.tests.factories import make_issuer
from delegation.issuers.tests.providers import SUBJECT, Provider
from delegation.jose import jws
from delegation.oauth.exchange import ACCESS_TOKEN, ID_TOKEN, JWT
from delegation.oauth.tests.oauth_clients import refusal, send, with_id_token
from delegation.tests.factories import make_token
from tenancy import services as tenancy
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant, metadata={"permitted_actions": ["read", "trade"]})


@pytest.fixture
def key(tenant: Tenant) -> str:
    return make_key(tenant)


@pytest.fixture(autouse=True)
def trusted(tenant: Tenant, provider: Provider) -> None:
    make_issuer(tenant, provider.issuer)


def test_a_human_delegates_to_an_agent(key: str, agent: Agent, provider: Provider) -> None:
    body = with_id_token(provider.token(), agent, scope="read", audience="https://api.example")

    answer = send(body, key=key)

    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert {name: found[name] for name in ("issued_token_type", "token_type", "expires_in", "scope")} == {
        "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 3600, "scope": "read",
    }  # fmt: skip
    assert answer["Cache-Control"] == "no-store"
    claims = jws.parse(found["access_token"]).payload
    assert (claims["sub"], claims["sub_type"]) == ("alice@example.com", "human")
    assert claims["act"] == {"sub": agent.did, "sub_type": "agent"}
    assert claims["sub_id"] == {"format": "iss_sub", "iss": provider.issuer, "sub": SUBJECT}
    assert (claims["aud"], claims["agent_id"]) == ("https://api.example", str(agent.id))


def test_the_audit_row_says_who_vouched(key: str, agent: Agent, provider: Provider) -> None:
    send(with_id_token(provider.token(), agent), key=key)

    metadata: Any = AuditEntry.objects.get(event_type="delegation.issued", affected_id=agent.id).metadata
    assert (metadata["root_assurance"], metadata["root_issuer"]) == ("verified", provider.issuer)
    assert metadata["root_subject"] == SUBJECT


def test_without_scope_no_action_is_granted(key: str, agent: Agent, provider: Provider) -> None:
    assert send(with_id_token(provider.token(), agent), key=key).json()["scope"] == ""


@pytest.mark.parametrize("issued", [ACCESS_TOKEN, JWT])
def test_the_requested_type_is_issued(key: str, agent: Agent, provider: Provider, issued: str) -> None:
    answer = send(with_id_token(provider.token(), agent, requested_token_type=issued), key=key)

    assert answer.json()["issued_token_type"] == issued


def test_an_agent_is_named_by_its_id_or_its_token(key: str, agent: Agent, provider: Provider) -> None:
    by_id = with_id_token(provider.token(), agent, actor_token=str(agent.id))
    own = make_token(agent).token
    by_token = with_id_token(provider.token(), agent, actor_token=own, actor_token_type=ACCESS_TOKEN)

    for body in (by_id, by_token):
        token = send(body, key=key).json()["access_token"]
        assert jws.parse(token).payload["act"]["sub"] == agent.did


def test_a_request_is_refused_by_its_form(key: str, agent: Agent, provider: Provider) -> None:
    table: list[tuple[dict[str, Any], str, str]] = [
        ({"grant_type": None}, "invalid_request", "grant_type is missing"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type", "The only grant type"),
        ({"subject_token": None}, "invalid_request", "subject_token is missing"),
        ({"subject_token": ""}, "invalid_request", "subject_token is missing"),
        ({"subject_token_type": None}, "invalid_request", "subject_token_type is missing"),
        ({"subject_token_type": "urn:x"}, "invalid_request", "subject_token_type"),
        ({"actor_token": None}, "invalid_request", "actor_token is missing"),
        ({"actor_token_type": None}, "invalid_request", "actor_token_type is missing"),
        ({"actor_token_type": ID_TOKEN}, "invalid_request", "actor_token_type"),
        ({"requested_token_type": ID_TOKEN}, "invalid_request", "requested_token_type"),
        ({"actor_token": "x"}, "invalid_request", "actor_token: unknown_agent"),
        ({"actor_token": "did:service:live:x"}, "invalid_request", "actor_token: unknown_agent"),
        ({"scope": 'a"b'}, "invalid_scope", "scope: malformed"),
        ({"scope": "Zoë"}, "invalid_scope", "scope: malformed"),
        ({"scope": "x" * 501}, "invalid_scope", "scope: at most"),
        ({"scope": "pay"}, "invalid_scope", "The scope exceeds"),
        ({"audience": ["a", "b"]}, "invalid_target", "A token has one audience"),
        ({"audience": "a", "resource": "https://b.example"}, "invalid_target", "A token has one audience"),
        ({"audience": "x" * 257}, "invalid_target", "audience: at most"),
        ({"audience": "a\u202eb"}, "invalid_target", "audience: at most"),
        ({"resource": "/relative"}, "invalid_target", "resource: must be an absolute URI"),
        ({"resource": "https://a.example/#f"}, "invalid_target", "resource: must be an absolute URI"),
        ({"resource": "https://[a"}, "invalid_target", "resource: not a URI"),
        ({"resource": "https:"}, "invalid_target", "resource: must be an absolute URI"),
        ({"scope": ["a", "b"]}, "invalid_request", "scope is sent more than once"),
    ]
    for changed, code, words in table:
        answer = send(with_id_token(provider.token(), agent, **changed), key=key)

        status, error, description = refusal(answer)
        assert (status, error) == (400, code)
        assert description.startswith(words)


def test_the_same_audience_and_resource_are_one(key: str, agent: Agent, provider: Provider) -> None:
    api = "https://api.example/v1"

    answer = send(with_id_token(provider.token(), agent, audience=api, resource=[api, api]), key=key)

    assert jws.parse(answer.json()["access_token"]).payload["aud"] == api


def test_another_tenants_agent_is_unknown(key: str, provider: Provider) -> None:
    foreign = make_agent(make_tenant())

    for actor in (foreign.did, str(foreign.id)):
        answer = send(with_id_token(provider.token(), foreign, actor_token=actor), key=key)
        assert refusal(answer)[1:] == (
            "invalid_request", "actor_token: unknown_agent: this client has no such agent"
        )  # fmt: skip


def test_another_tenants_issuer_does_not_count(provider: Provider) -> None:
    other = make_tenant()
    agent = make_agent(other)

    answer = send(with_id_token(provider.token(), agent), key=make_key(other))

    assert refusal(answer) == (400, "invalid_request", "subject_token: untrusted_issuer")


def test_the_sandbox_knows_neither_live_agents_nor_live_issuers(
    tenant: Tenant, agent: Agent, provider: Provider
) -> None:
    sandbox_key = make_test_key(tenant)
    with environments.use(Environment.TEST):
        sandboxed = make_agent(tenancy.get_tenant(tenant_id=tenant.id))

    of_live = send(with_id_token(provider.token(), agent), key=sandbox_key)
    of_sandbox = send(with_id_token(provider.token(), sandboxed), key=sandbox_key)

    assert refusal(of_live)[2].startswith("actor_token: unknown_agent")
    assert refusal(of_sandbox)[2] == "subject_token: untrusted_issuer"


def test_a_delegation_token_is_no_id_token(key: str, agent: Agent) -> None:
    answer = send(with_id_token(make_token(agent).token, agent), key=key)

    assert refusal(answer) == (400, "invalid_request", "subject_token: untrusted_issuer")


@pytest.mark.parametrize("kind", [ACCESS_TOKEN, JWT])
def test_an_id_token_is_no_delegation_token(key: str, agent: Agent, provider: Provider, kind: str) -> None:
    as_subject = with_id_token(provider.token(), agent, subject_token_type=kind)
    as_actor = with_id_token(provider.token(), agent, actor_token=provider.token(), actor_token_type=kind)

    assert refusal(send(as_subject, key=key))[2] == "subject_token: unsupported_algorithm"
    assert refusal(send(as_actor, key=key))[2] == "actor_token: unsupported_algorithm"


def test_an_inactive_issuer_vouches_for_nobody(
    key: str, tenant: Tenant, agent: Agent, provider: Provider
) -> None:
    tenant.trusted_issuers.update(active=False)

    assert refusal(send(with_id_token(provider.token(), agent), key=key))[2] == (
        "subject_token: untrusted_issuer"
    )


def test_an_issuer_that_is_away_is_a_503(key: str, agent: Agent, provider: Provider) -> None:
    token = provider.token()
    provider.server.stop()

    answer = send(with_id_token(token, agent), key=key)

    assert refusal(answer)[:2] == (503, "temporarily_unavailable")
    assert int(answer["Retry-After"]) >= 1
