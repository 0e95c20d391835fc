"""`POST /oauth/introspect`."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import services as certificates
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation.tests.factories import ACTOR, JKT, VERIFIED, make_line, make_token
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key

FORM = "application/x-www-form-urlencoded"
INACTIVE = {"active": False}


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, ["tokens:introspect"]))


def ask(client: ApiClient, **form: str) -> Any:
    return client.raw("POST", "/oauth/introspect", urlencode(form).encode(), FORM)


def told(client: ApiClient, token: str) -> Any:
    answer = ask(client, token=token)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    return answer.json()


def test_a_standing_token_is_told_in_full(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    Agent.objects.filter(id=agent.id).update(risk_score=0.4)
    issued = make_token(agent, scope="read", audience="https://api.example", subject=VERIFIED, proven_key=JKT)
    delegation = issued.delegation

    assert told(client, issued.token) == {
        "active": True,
        "token_type": "DPoP",
        "scope": "read",
        "exp": delegation.expires_at,
        "iat": delegation.issued_at,
        "nbf": delegation.not_before,
        "sub": "alice@example.com",
        "sub_type": "human",
        "aud": "https://api.example",
        "iss": delegation.issuer,
        "jti": str(delegation.token_id),
        "act": {
            "sub": "price-checker",
            "sub_type": "sub_agent",
            "act": {"sub": "research-agent", "sub_type": "agent"},
        },
        "cnf": {"jkt": JKT},
        "sub_id": {"format": "iss_sub", "iss": VERIFIED.issuer, "sub": VERIFIED.subject},
        "agent_id": str(agent.id),
        "cert_serial": delegation.certificate_serial,
        "env": "live",
        "risk_band": "medium",
        "vouching_tenant": str(tenant.id),
    }


def test_the_vouching_tenant_is_named_to_itself_only(
    api: ApiClient, client: ApiClient, tenant: Tenant
) -> None:
    other = make_tenant("Other")
    verified = make_token(make_agent(tenant), subject=VERIFIED).token
    theirs = make_token(make_agent(other, name="theirs"), subject=VERIFIED).token
    asserted = make_token(make_agent(tenant, name="second")).token

    assert told(client, verified)["vouching_tenant"] == str(tenant.id)
    assert told(client, verified)["sub_id"] == told(client, theirs)["sub_id"]
    assert "vouching_tenant" not in told(client, theirs) | told(client, asserted)
    to_other = told(api.as_key(make_key(other, ["tokens:introspect"])), verified)
    assert to_other["active"] is True
    assert "vouching_tenant" not in to_other


def test_a_bearer_token_says_no_more_than_it_holds(client: ApiClient, agent: Agent) -> None:
    found = told(client, make_token(agent).token)

    assert (found["active"], found["token_type"]) == (True, "Bearer")
    assert not {"aud", "cnf", "sub_id", "cert_serial", "via", "status"} & set(found)


def test_a_stop_at_the_root_of_a_chain_of_eight_shows_at_the_last(client: ApiClient, tenant: Tenant) -> None:
    first = make_agent(make_tenant("Other"), name="first")
    *_, last = make_line([first, *(make_agent(tenant, name=f"a{n}") for n in range(7))])
    assert told(client, last.token)["active"] is True

    certificates.suspend_agent(
        tenant_id=first.tenant_id, agent_id=first.id, reason="test", actor=ACTOR, now=now()
    )

    assert told(client, last.token) == INACTIVE


def test_a_chain_of_eight_costs_one_statement_beside_authentication(
    client: ApiClient, tenant: Tenant
) -> None:
    line = make_line([make_agent(tenant, name=f"a{n}") for n in range(8)])
    told(client, line[0].token)

    with CaptureQueriesContext(connections["default"]) as asked:
        told(client, line[-1].token)

    of_tokens = [query["sql"] for query in asked if "delegation_" in query["sql"]]
    beside = [query["sql"] for query in asked if query["sql"] not in of_tokens]
    assert len(of_tokens) == 1
    assert all("tenancy_" in statement for statement in beside)


@pytest.mark.parametrize("token", ["x", "a.b.c", "é", "x" * 60_000, "\u202e", "null", "{}"])
def test_what_is_no_token_is_inactive(client: ApiClient, token: str) -> None:
    assert told(client, token) == INACTIVE


def test_a_forged_token_is_inactive(client: ApiClient, agent: Agent) -> None:
    token = make_token(agent).token

    assert told(client, token[:-8] + "AAAAAAAA") == INACTIVE


def test_a_token_of_the_other_environment_is_inactive(
    client: ApiClient, api: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    sandbox = api.as_key(make_test_key(tenant))
    with environments.use(Environment.TEST):
        token = make_token(make_agent(tenant)).token

    assert told(client, token) == INACTIVE
    assert told(sandbox, token)["env"] == "test"
    assert told(sandbox, make_token(agent).token) == INACTIVE


@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "nonsense", "é"])
def test_the_hint_is_ignored(client: ApiClient, agent: Agent, hint: str) -> None:
    answer = ask(client, token=make_token(agent).token, token_type_hint=hint)

    assert answer.json()["active"] is True


@pytest.mark.parametrize(
    "body", [b"token=", b"token=a&token=b", b"token=%ff", b"token=%00", b"token=%zz", b"tok=x", b"\xff"]
)
def test_a_form_without_one_token_is_refused(client: ApiClient, body: bytes) -> None:
    answer = client.raw("POST", "/oauth/introspect", body, FORM)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_key_needs_the_scope(api: ApiClient, agent: Agent, tenant: Tenant) -> None:
    token = make_token(agent).token

    nobody = ask(api, token=token)
    assert (nobody.status_code, nobody.json()["error"]) == (401, "invalid_client")
    assert nobody["WWW-Authenticate"] == 'Basic realm="api"'
    lacking = ask(api.as_key(make_key(tenant, ["delegations:issue"])), token=token)
    assert (lacking.status_code, lacking.json()["error"]) == (400, "unauthorized_client")


def test_without_the_database_it_can_not_say(
    client: ApiClient, agent: Agent, request: pytest.FixtureRequest
) -> None:
    token = make_token(agent).token
    told(client, token)
    request.getfixturevalue("no_database")

    answer = ask(client, token=token)

    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
