"""Exchange of a delegation token: handing it on to an agent, bound to its key or not."""

from typing import Any

import pytest
from django.conf import settings as configured

from agents.models import Agent
from agents.tests.factories import make_agent
from compliance.core import environments
from compliance.core.environments import Environment
from delegation.jose import jws
from delegation.oauth.exchange import JWT
from delegation.oauth.tests.oauth_clients import refusal, send, with_delegation
from delegation.tests.factories import CHAIN, JKT, as_chain, make_token
from delegation.tests.holders import Holder
from tenancy import services as tenancy
from tenancy.models import Tenant
from tenancy.tests.factories import make_key

URI = f"{configured.BASE_URL}/oauth/token"
HUMAN = as_chain(CHAIN[:1])


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant, name="holder", metadata={"permitted_actions": ["read", "trade"]})


@pytest.fixture
def first(tenant: Tenant) -> Agent:
    """The agent that issued the subject token."""
    return make_agent(tenant, name="first")


@pytest.fixture
def key(tenant: Tenant) -> str:
    return make_key(tenant)


def parent_of(first: Agent, **grant: Any) -> str:
    return make_token(first, **{"chain": HUMAN, "scope": "read pay", **grant}).token


def test_a_token_is_handed_on(key: str, first: Agent, agent: Agent) -> None:
    parent = make_token(first, chain=HUMAN, scope="read pay", audience="https://api.example")

    found = send(with_delegation(parent.token, agent, scope="read"), key=key).json()

    claims = jws.parse(found["access_token"]).payload
    assert (found["scope"], found["token_type"], claims["aud"]) == ("read", "Bearer", "https://api.example")
    assert claims["act"] == {"sub": agent.did, "sub_type": "agent"}
    assert claims["via"] == [{"agent_id": str(first.id), "jti": str(parent.delegation.token_id)}]
    assert claims["exp"] <= parent.delegation.expires_at


def test_below_an_agent_the_actor_is_a_sub_agent(key: str, first: Agent, agent: Agent) -> None:
    parent = parent_of(first, chain=as_chain(CHAIN[:2]))

    found = send(with_delegation(parent, agent, subject_token_type=JWT), key=key).json()

    assert jws.parse(found["access_token"]).payload["act"]["sub_type"] == "sub_agent"


def test_without_scope_the_agent_gets_what_it_may_do_of_the_parents(
    key: str, first: Agent, agent: Agent
) -> None:
    assert send(with_delegation(parent_of(first), agent), key=key).json()["scope"] == "read"


def test_without_any_common_action_nothing_is_granted(key: str, first: Agent, agent: Agent) -> None:
    assert refusal(send(with_delegation(parent_of(first, scope="pay"), agent), key=key))[:2] == (
        400, "invalid_scope",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"scope": "read trade"}, "invalid_scope"),
        ({"audience": "https://other.example"}, "invalid_target"),
        ({"resource": "https://other.example/"}, "invalid_target"),
    ],
)
def test_the_parents_bounds_are_not_widened(
    key: str, first: Agent, agent: Agent, changed: dict[str, str], code: str
) -> None:
    parent = parent_of(first, audience="https://api.example")

    assert refusal(send(with_delegation(parent, agent, **changed), key=key))[:2] == (400, code)


def test_an_agent_is_not_twice_in_a_chain(key: str, first: Agent, agent: Agent) -> None:
    token = send(with_delegation(parent_of(first), agent), key=key).json()["access_token"]

    assert refusal(send(with_delegation(token, agent), key=key))[2].startswith("actor_token: actor_in_chain")


def test_a_chain_has_at_most_eight_actors(key: str, first: Agent, agent: Agent) -> None:
    eight = as_chain([{"sub": f"a{number}", "type": "service"} for number in range(8)])

    answer = send(with_delegation(parent_of(first, chain=eight), agent), key=key)

    assert refusal(answer)[2].startswith("subject_token: chain_too_long")


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("x", "malformed"),
        ("a.b.c", "malformed"),
        ("x" * 20_000, "malformed"),
        ("e30.e30.", "unsupported_algorithm"),
    ],
)
def test_what_is_no_token_is_refused_by_name(key: str, agent: Agent, token: str, reason: str) -> None:
    as_actor = with_delegation(token, agent, actor_token=token, actor_token_type=JWT)

    assert refusal(send(with_delegation(token, agent), key=key)) == (
        400, "invalid_request", f"subject_token: {reason}",
    )  # fmt: skip
    assert refusal(send(as_actor, key=key))[2] == f"actor_token: {reason}"


def test_a_token_of_the_sandbox_is_unknown_at_live(key: str, tenant: Tenant, agent: Agent) -> None:
    with environments.use(Environment.TEST):
        foreign = parent_of(make_agent(tenancy.get_tenant(tenant_id=tenant.id)))

    as_actor = with_delegation(parent_of(agent, scope=""), agent, actor_token=foreign, actor_token_type=JWT)

    assert refusal(send(with_delegation(foreign, agent), key=key))[2] == "subject_token: unknown_key"
    assert refusal(send(as_actor, key=key))[2] == "actor_token: unknown_key"


def test_a_proof_binds_the_token(key: str, first: Agent, agent: Agent) -> None:
    holder = Holder()

    answer = send(with_delegation(parent_of(first), agent), key=key, DPoP=holder.proof("POST", URI))

    found = answer.json()
    assert found["token_type"] == "DPoP"
    assert jws.parse(found["access_token"]).payload["cnf"] == {"jkt": holder.jkt}


def test_another_key_may_be_named(key: str, first: Agent, agent: Agent) -> None:
    body = with_delegation(parent_of(first), agent, dpop_jkt=JKT)

    for headers in ({"DPoP": Holder().proof("POST", URI)}, {}):
        found = send(body, key=key, **headers).json()
        assert found["token_type"] == "DPoP"
        assert jws.parse(found["access_token"]).payload["cnf"] == {"jkt": JKT}


@pytest.mark.parametrize("named", [JKT[1:], JKT + "=", JKT[:-1] + "J", JKT + "\n", "ä" * 43])
def test_a_key_is_named_by_its_thumbprint(key: str, first: Agent, agent: Agent, named: str) -> None:
    answer = send(with_delegation(parent_of(first), agent, dpop_jkt=named), key=key)

    assert refusal(answer)[1:] == (
        "invalid_request", "dpop_jkt: not a thumbprint (RFC 7638, SHA-256 in base64url)",
    )  # fmt: skip


def test_a_bound_token_is_handed_on_by_its_key_only(key: str, first: Agent, agent: Agent) -> None:
    holder = Holder()
    body = with_delegation(parent_of(first, bound_to=holder.jkt), agent)

    without = send(body, key=key)
    with_another = send(body, key=key, DPoP=Holder().proof("POST", URI))
    with_its_own = send(body, key=key, DPoP=holder.proof("POST", URI))

    for refused in (without, with_another):
        assert refusal(refused)[:2] == (400, "invalid_dpop_proof")
    assert jws.parse(with_its_own.json()["access_token"]).payload["cnf"] == {"jkt": holder.jkt}


def test_a_bound_token_names_an_actor_by_its_key_only(key: str, first: Agent, agent: Agent) -> None:
    holder = Holder()
    own = make_token(agent, bound_to=holder.jkt).token
    body = with_delegation(parent_of(first), agent, actor_token=own, actor_token_type=JWT)

    assert refusal(send(body, key=key))[:2] == (400, "invalid_dpop_proof")
    assert send(body, key=key, DPoP=holder.proof("POST", URI)).status_code == 200


def test_a_nonce_is_demanded_by_setting(key: str, first: Agent, agent: Agent, settings: Any) -> None:
    settings.DPOP_NONCE_REQUIRED = True
    holder, body = Holder(), with_delegation(parent_of(first), agent)

    refused = send(body, key=key, DPoP=holder.proof("POST", URI))
    nonce = refused["DPoP-Nonce"]
    taken = send(body, key=key, DPoP=holder.proof("POST", URI, nonce=nonce))

    assert refusal(refused)[:2] == (400, "use_dpop_nonce")
    assert (taken.status_code, taken["DPoP-Nonce"]) == (200, nonce)
