"""Tokens at the gateway: audience, scope, binding and proofs, and how agent and chain stand now."""

from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.tests.factories import make_certified_agent, revoke_certificate, suspend_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from delegation import proofs
from delegation.models import IssuedToken
from delegation.tests.factories import CHAIN, VERIFIED, as_chain, make_token_key
from delegation.tests.holders import Holder
from gateway.tests.factories import (
    AUDIENCE,
    PATH,
    PERMITTED,
    URI,
    Bound,
    Gateway,
    forwarded,
    is_fault_of_gateway,
    make_permitted_agent,
    make_route,
    refusal,
    token_of,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


def challenge(answer: Any) -> str:
    found: str = answer["WWW-Authenticate"]
    return found


def test_bearer_token_passes_with_its_chain(gateway: Gateway, agent: Agent) -> None:
    answer = gateway.ask_bearer(token_of(agent))

    assert answer.status_code == 200, answer.content
    assert answer["X-Service-Credential"] == "bearer"
    assert answer["X-Service-Principal"] == "price-checker"
    chain = [one.split("=", 1) for one in answer["X-Service-Chain"].split(",")]
    assert [{"sub": unquote(sub), "type": kind} for kind, sub in chain] == CHAIN
    assert answer["X-Service-Scope"] == "read"


def test_bound_token_passes_with_its_proof(gateway: Gateway, agent: Agent) -> None:
    answer = gateway.ask(**Bound(agent).headers())

    assert (answer.status_code, answer["X-Service-Credential"]) == (200, "dpop")


def test_names_of_a_chain_cannot_leave_their_header(gateway: Gateway, agent: Agent) -> None:
    chain = as_chain(
        [{"sub": "a,agent=b %2C ü\u20ac;", "type": "human"}, {"sub": "x" * 256, "type": "agent"}]
    )

    answer = gateway.ask_bearer(token_of(agent, chain=chain))

    header = answer["X-Service-Chain"]
    assert (header.isascii(), header.isprintable(), header.count(",")) == (True, True, 1)
    assert unquote(header.split(",")[0]) == "human=a,agent=b %2C ü\u20ac;"


def test_text_that_is_no_token_is_refused(gateway: Gateway, agent: Agent) -> None:
    for token in ["x", "a.b.c", ".." * 9, "é", "x" * 20_000, "a b"]:
        answer = gateway.ask_bearer(token)

        assert refusal(answer)[0] == 401
        assert 'Bearer realm="gateway", error="invalid_token"' in challenge(answer)


def test_token_of_the_other_environment_is_refused(gateway: Gateway, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        make_token_key()
        token = token_of(make_permitted_agent(Tenant.objects.get(id=tenant.id)))

    assert refusal(gateway.ask_bearer(token)) == (401, "The token is not valid", "invalid_issuer")


@pytest.mark.parametrize(("of_route", "of_token", "passes"), [
    (AUDIENCE, AUDIENCE, True), (AUDIENCE, None, False), (AUDIENCE, "https://other.example", False),
    (None, AUDIENCE, False), (None, None, True),
])  # fmt: skip
def test_audience_must_be_the_route_s(
    gateway: Gateway, agent: Agent, of_route: str | None, of_token: str | None, passes: bool
) -> None:
    gateway.route = make_route(gateway.tenant, audience=of_route).name

    answer = gateway.ask_bearer(token_of(agent, audience=of_token))

    if passes:
        assert answer.status_code == 200
    else:
        assert refusal(answer)[::2] == (401, "invalid_audience")


def test_action_beyond_the_token_is_refused_without_a_strike(gateway: Gateway, agent: Agent) -> None:
    gateway.action = "pay"

    answer = gateway.ask_bearer(token_of(agent))

    assert refusal(answer) == (403, "Scope violation", "insufficient_scope")
    assert 'error="insufficient_scope", scope="pay"' in challenge(answer)
    assert agent.events.count() == 0


def test_stopped_agent_is_refused_at_the_next_request(gateway: Gateway, tenant: Tenant) -> None:
    suspended, revoked = make_permitted_agent(tenant), make_permitted_agent(tenant)
    tokens = token_of(suspended), token_of(revoked)
    assert [gateway.ask_bearer(token).status_code for token in tokens] == [200, 200]

    suspend_agent(suspended)
    revoke_certificate(revoked.certificates.get())

    answers = [gateway.ask_bearer(token) for token in tokens]
    assert [refusal(answer) for answer in answers] == [
        (403, "Agent is suspended", "agent_suspended"),
        (403, "Certificate is revoked", "certificate_revoked"),
    ]


def test_revoked_token_is_refused(gateway: Gateway, agent: Agent) -> None:
    token = token_of(agent)
    IssuedToken.objects.filter(agent_id=agent.id).update(
        revoked_at=now(), revoked_by="tests", revocation_reason="leaked"
    )

    assert refusal(gateway.ask_bearer(token)) == (401, "The token is revoked", "revoked")


def test_agent_behind_the_token_that_is_stopped_stops_it(gateway: Gateway, tenant: Tenant) -> None:
    first, second = make_permitted_agent(tenant), make_permitted_agent(tenant)
    parent = token_of(first)
    chain = as_chain([*CHAIN, {"sub": "next", "type": "sub_agent"}])
    child = token_of(second, chain=chain, parent_token=parent)
    assert gateway.ask_bearer(child).status_code == 200

    suspend_agent(first)

    assert refusal(gateway.ask_bearer(child)) == (403, "Agent is suspended", "agent_suspended")


@pytest.mark.parametrize(
    ("left", "passes"),
    [
        ({"permitted_actions": ["read", "pay"]}, True),
        ({}, True),
        ({"permitted_actions": ["read"]}, False),
        ({"permitted_actions": []}, False),
        ({"scopes": ["pay"]}, False),
    ],
)
def test_action_that_an_agent_behind_the_token_may_no_longer_do_is_refused_without_a_strike(
    gateway: Gateway, agent: Agent, left: dict[str, Any], passes: bool
) -> None:
    gateway.action = "pay"
    gateway.route = make_route(gateway.tenant, uncertified_agents=True).name
    uncertified = make_agent(gateway.tenant, metadata={"permitted_actions": PERMITTED})
    parent = token_of(uncertified, scope="read pay")
    chain = as_chain([*CHAIN, {"sub": "next", "type": "sub_agent"}])
    child = token_of(agent, scope="read pay", chain=chain, parent_token=parent)
    assert gateway.ask_bearer(child).status_code == 200

    Agent.objects.filter(id=uncertified.id).update(metadata=left)

    answer = gateway.ask_bearer(child)
    if passes:
        assert answer.status_code == 200
    else:
        assert refusal(answer) == (403, "Scope violation", "insufficient_scope")
    assert agent.events.count() == uncertified.events.count() == 0


def test_highest_risk_in_the_chain_counts(gateway: Gateway, tenant: Tenant) -> None:
    first, second = make_permitted_agent(tenant), make_permitted_agent(tenant)
    chain = as_chain([*CHAIN, {"sub": "next", "type": "sub_agent"}])
    child = token_of(second, chain=chain, parent_token=token_of(first))
    Agent.objects.filter(id=first.id).update(risk_score=0.5)
    assert gateway.ask_bearer(child)["X-Service-Risk-Band"] == "medium"

    gateway.route = make_route(tenant, highest_band="low").name

    assert refusal(gateway.ask_bearer(child))[2] == "risk_band"


def test_agent_of_another_tenant_needs_a_route_that_takes_any(gateway: Gateway, agent: Agent) -> None:
    token = token_of(make_permitted_agent(make_tenant("Beside")))
    assert refusal(gateway.ask_bearer(token))[::2] == (403, "foreign_agent")

    gateway.route = make_route(gateway.tenant, agents="any").name

    assert gateway.ask_bearer(token).status_code == 200


def test_root_must_be_verified_where_the_route_says_so(gateway: Gateway, agent: Agent) -> None:
    gateway.route = make_route(gateway.tenant, root="verified", credentials=["bearer"]).name

    assert refusal(gateway.ask_bearer(token_of(agent)))[::2] == (403, "root_not_verified")
    verified = gateway.ask_bearer(token_of(agent, subject=VERIFIED))
    assert verified["X-Service-Assurance"] == "verified"


def test_bound_token_is_no_bearer_token_and_the_other_way_round(gateway: Gateway, agent: Agent) -> None:
    bound = Bound(agent)
    assert refusal(gateway.ask_bearer(bound.token))[::2] == (401, "token_bound")

    bearer = token_of(agent)
    proof = Holder().proof("GET", URI, token=bearer)
    answer = gateway.ask(**{"Authorization": f"DPoP {bearer}", "DPoP": proof, **forwarded()})

    assert refusal(answer)[::2] == (401, "token_not_bound")


WRONG: list[dict[str, Any]] = [
    {"method": "POST"},
    {"uri": f"{AUDIENCE}/orders/8"},
    {"uri": "https://other.example/orders/7"},
    {"token": "another"},
    {"at": timedelta(minutes=-5)},
]


def test_proof_of_another_request_is_refused(gateway: Gateway, agent: Agent) -> None:
    for changed in WRONG:
        wrong = {name: now() + each if name == "at" else each for name, each in changed.items()}
        answer = gateway.ask(**Bound(agent).headers(**wrong))

        assert refusal(answer)[::2] == (401, "invalid_dpop_proof")
        assert 'DPoP realm="gateway", algs="ES256 EdDSA Ed25519", error="invalid_dpop_proof"' in challenge(
            answer
        )


def test_proof_by_another_key_is_refused(gateway: Gateway, agent: Agent) -> None:
    bound = Bound(agent)
    headers = bound.headers() | {"DPoP": Holder().proof("GET", URI, token=bound.token)}

    assert refusal(gateway.ask(**headers))[::2] == (401, "wrong_key")


def test_proof_counts_once(gateway: Gateway, agent: Agent) -> None:
    headers = Bound(agent).headers()
    assert gateway.ask(**headers).status_code == 200

    assert refusal(gateway.ask(**headers))[::2] == (401, "invalid_dpop_proof")


def test_nonce_is_demanded_and_given_where_the_route_says_so(gateway: Gateway, agent: Agent) -> None:
    gateway.route = make_route(gateway.tenant, credentials=["dpop"], nonce_required=True).name
    bound = Bound(agent)

    first = gateway.ask(**bound.headers())

    assert refusal(first)[::2] == (401, "use_dpop_nonce")
    assert 'error="use_dpop_nonce"' in challenge(first)
    assert first["DPoP-Nonce"] == proofs.current_nonce(now=now())
    assert gateway.ask(**bound.headers(nonce=first["DPoP-Nonce"])).status_code == 200
    assert refusal(gateway.ask(**bound.headers(nonce="stale")))[2] == "use_dpop_nonce"


def test_gateway_that_does_not_name_the_request_is_at_fault(gateway: Gateway, agent: Agent) -> None:
    for name in ["Method", "Proto", "Host", "Uri"]:
        headers = Bound(agent).headers() | {f"X-Forwarded-{name}": ""}

        assert is_fault_of_gateway(gateway.ask(**headers), 400)


def test_proof_fits_the_request_itself_where_the_gateway_asks_with_its_path(
    gateway: Gateway, agent: Agent
) -> None:
    uri = "https://testserver/orders/7"
    headers = Bound(agent).headers(method="PUT", uri=uri)
    # What a client sent under these names says nothing there.
    sent = {**headers, "X-Forwarded-Method": "GET", "X-Forwarded-Uri": "/x", "X-Forwarded-Host": "x"}
    sent["Host"] = "testserver"

    assert gateway.ask(f"{PATH}/orders/7?x=1", method="PUT", **sent).status_code == 200


def test_route_that_takes_no_bearer_tokens_refuses_them(gateway: Gateway, agent: Agent) -> None:
    gateway.route = make_route(gateway.tenant, credentials=["dpop"]).name

    assert refusal(gateway.ask_bearer(token_of(agent)))[::2] == (401, "credential_not_taken")
    assert refusal(gateway.ask(Authorization="Bearer"))[0] == 401


def test_root_that_another_tenant_vouched_for_is_not_verified_here(gateway: Gateway, agent: Agent) -> None:
    """A tenant chooses its issuers and their keys by itself, so it could verify any root at any issuer."""
    stranger = make_permitted_agent(make_tenant("Beside"))
    parent = token_of(stranger, subject=VERIFIED)
    chain = as_chain([*CHAIN, {"sub": "next", "type": "sub_agent"}])
    for token in (parent, token_of(agent, chain=chain, parent_token=parent)):
        gateway.route = make_route(gateway.tenant, agents="any").name
        assert gateway.ask_bearer(token)["X-Service-Assurance"] == "asserted"

        gateway.route = make_route(gateway.tenant, root="verified", agents="any", credentials=["bearer"]).name
        assert refusal(gateway.ask_bearer(token))[::2] == (403, "root_not_verified")


def make_active_agent(tenant: Tenant) -> Agent:
    """An active agent without a certificate."""
    agent = make_agent(tenant)
    Agent.objects.filter(id=agent.id).update(status="active")
    return agent


@pytest.mark.parametrize("kind", ["bearer", "dpop"])
@pytest.mark.parametrize("agents", ["own", "any"])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_agent, "agent_not_active"),
        (make_active_agent, "agent_not_certified"),
        (lambda tenant: make_certified_agent(tenant, metadata={}), "scope_undeclared"),
    ],
)
def test_agent_that_lacks_certificate_or_scope_passes_only_where_the_route_says_so(
    gateway: Gateway, tenant: Tenant, make: Any, reason: str, agents: str, kind: str
) -> None:
    bound = Bound(make(tenant), {"scope": "admin wire_money"})
    bearer = token_of(bound.agent, scope="admin wire_money")
    gateway.action = "wire_money"

    for is_named in (False, True):
        gateway.route = make_route(tenant, agents=agents, uncertified_agents=is_named).name
        answer = gateway.ask(**bound.headers()) if kind == "dpop" else gateway.ask_bearer(bearer)
        assert is_named or refusal(answer)[::2] == (403, reason)
        assert (answer.status_code == 200) is is_named
