"""Agents as clients of the token endpoint: assertions by their keys, tokens of their own, ID-JAGs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import OKPKey

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.tests.factories import (
    make_certified_agent,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from delegation.agent_keys import services
from delegation.agent_keys.tests.signers import ACTOR, ENDED, register
from delegation.issuers.tests.factories import make_issuer
from delegation.issuers.tests.providers import CLIENT_ID, OTHER_KEY, Provider, public
from delegation.jose import jws
from delegation.jose.holder_keys import ED25519, EDDSA
from delegation.oauth.agent_clients import ASSERTION_TYPE, CLIENT_CREDENTIALS, JWT_BEARER
from delegation.oauth.exchange import ID_JAG
from delegation.oauth.tests.oauth_clients import basic, refusal, send, with_id_token
from delegation.tests.factories import make_token_key
from delegation.tests.holders import Holder
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_certified_agent(tenant, metadata={"permitted_actions": ["read", "pay"]})


@pytest.fixture
def holder(agent: Agent) -> Holder:
    found = Holder(Ed25519PrivateKey.generate())
    register(agent, found)
    return found


def assertion(
    holder: Holder, agent: Agent, settings: Any, *, header: dict[str, Any] | None = None, **claims: Any
) -> str:
    """An assertion that is right but for what is changed; None leaves a member out."""
    moment = int(now().timestamp())
    right = {
        "iss": agent.did,
        "sub": agent.did,
        "aud": settings.TOKEN_ISSUER,
        "iat": moment,
        "exp": moment + 60,
        "jti": str(uuid4()),
    }
    return holder.signed(
        {"typ": "JWT", "alg": EDDSA, "kid": holder.jkt, **(header or {})}, {**right, **claims}
    )


def ask(text: str | None, **form: Any) -> Any:
    named = {"grant_type": CLIENT_CREDENTIALS, "client_assertion_type": ASSERTION_TYPE, **form}
    headers = {name: named.pop(name) for name in ("DPoP", "Authorization") if name in named}
    return send({**named, "client_assertion": text}, **headers)


def test_agent_gets_a_token_of_itself_alone(agent: Agent, holder: Holder, settings: Any) -> None:
    answer = ask(assertion(holder, agent, settings), scope="read", resource="https://api.example/")

    assert answer.status_code == 200, answer.content
    assert answer.json()["scope"] == "read"
    claims = jws.parse(answer.json()["access_token"]).payload
    assert (claims["sub"], claims["sub_type"]) == (agent.did, "agent")
    assert "act" not in claims
    assert (claims["aud"], claims["agent_id"]) == ("https://api.example/", str(agent.id))
    entry = AuditEntry.objects.get(event_type="delegation.issued", affected_id=agent.id)
    assert (entry.actor_type, entry.actor_id) == ("agent", str(agent.id))


def test_assertion_of_another_library_is_taken(agent: Agent, holder: Holder, settings: Any) -> None:
    assert isinstance(holder.key, Ed25519PrivateKey)
    pem = holder.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    claims = {
        "iss": agent.did,
        "sub": agent.did,
        "aud": f"{settings.BASE_URL}/oauth/token",
        "exp": int(now().timestamp()) + 60,
        "jti": str(uuid4()),
    }
    text = joserfc_jwt.encode({"alg": ED25519}, claims, OKPKey.import_key(pem), algorithms=[ED25519])

    answer = ask(text, scope="read pay")

    assert (answer.status_code, answer.json()["scope"]) == (200, "read pay")


def test_token_is_bound_by_a_proof(agent: Agent, holder: Holder, settings: Any) -> None:
    proof = holder.proof("POST", f"{settings.BASE_URL}/oauth/token")

    answer = ask(assertion(holder, agent, settings), DPoP=proof)

    assert answer.json()["token_type"] == "DPoP"
    assert jws.parse(answer.json()["access_token"]).payload["cnf"] == {"jkt": holder.jkt}


def test_assertion_counts_once(agent: Agent, holder: Holder, settings: Any) -> None:
    text = assertion(holder, agent, settings)

    assert ask(text).status_code == 200
    assert refusal(ask(text)) == (401, "invalid_client", "The client assertion was used before")


WRONG: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://login.example"},
    "another subject": {"sub": "did:service:live:00000000-0000-7000-8000-000000000000"},
    "no subject": {"sub": None},
    "another audience": {"aud": "https://other.example"},
    "two audiences": {"aud": ["https://other.example", "x"]},
    "no audience": {"aud": None},
    "no end": {"exp": None},
    "passed": {"exp": 1_700_000_000},
    "valid for longer than five minutes": {"exp": 4_000_000_000},
    "a text for a time": {"exp": "4000000000"},
    "true for a time": {"exp": True},
    "made in the future": {"iat": 4_000_000_000},
    "valid in the future": {"nbf": 4_000_000_000},
    "no id": {"jti": None},
    "an empty id": {"jti": ""},
    "a long id": {"jti": "a" * 257},
}
WRONG_HEADERS: dict[str, dict[str, Any]] = {
    "another algorithm": {"alg": "ES256"},
    "no algorithm": {"alg": "none"},
    "a shared secret": {"alg": "HS256"},
    "another type": {"typ": "dpop+jwt"},
    "a token's type": {"typ": "delegation+jwt"},
    "an extension": {"crit": ["exp"]},
    "a key of its own": {"jwk": {"kty": "OKP"}},
    "another key": {"kid": "x"},
    "a number for a key": {"kid": 1},
}


@pytest.mark.parametrize("name", WRONG)
def test_claims_that_are_wrong_authenticate_nobody(
    agent: Agent, holder: Holder, settings: Any, name: str
) -> None:
    status, code, _ = refusal(ask(assertion(holder, agent, settings, **WRONG[name])))

    assert (status, code) == (401, "invalid_client")


@pytest.mark.parametrize("name", WRONG_HEADERS)
def test_headers_that_are_wrong_authenticate_nobody(
    agent: Agent, holder: Holder, settings: Any, name: str
) -> None:
    status, code, _ = refusal(ask(assertion(holder, agent, settings, header=WRONG_HEADERS[name])))

    assert (status, code) == (401, "invalid_client")


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "a" * 5_000, None])
def test_text_that_is_no_assertion_authenticates_nobody(tenant: Tenant, text: str | None) -> None:
    assert refusal(ask(text))[:2] == (401, "invalid_client")


def test_key_of_another_agent_and_a_revoked_key_authenticate_nobody(
    agent: Agent, holder: Holder, tenant: Tenant, settings: Any
) -> None:
    other = make_certified_agent(tenant)
    foreign = Holder(Ed25519PrivateKey.generate())
    key = register(other, foreign)

    as_agent = ask(assertion(foreign, agent, settings))
    unnamed = ask(assertion(foreign, agent, settings, header={"kid": None}))
    services.revoke(
        tenant_id=tenant.id, agent_id=other.id, key_id=key.id, reason="lost", actor=ACTOR, now=now()
    )
    revoked = ask(assertion(foreign, other, settings))

    told = (401, "invalid_client", "No key of the agent made the client assertion")
    assert [refusal(one) for one in (as_agent, unnamed, revoked)] == [told, told, told]


def test_key_of_the_other_environment_authenticates_nobody(
    agent: Agent, holder: Holder, tenant: Tenant, settings: Any
) -> None:
    with environments.use(Environment.TEST):
        make_token_key()
        mirrored = make_certified_agent(Tenant.objects.get(id=tenant.id))
        sandbox = Holder(Ed25519PrivateKey.generate())
        register(mirrored, sandbox)
        did = mirrored.did

    mixed = ask(assertion(sandbox, agent, settings))
    own = ask(assertion(sandbox, agent, settings, iss=did, sub=did))

    assert refusal(mixed)[1] == "invalid_client"
    assert jws.parse(own.json()["access_token"]).payload["env"] == "test"


@pytest.mark.parametrize("state", ENDED)
def test_agent_that_does_not_stand_gets_no_token(
    agent: Agent, holder: Holder, settings: Any, state: str
) -> None:
    ENDED[state](agent)

    answer = ask(assertion(holder, agent, settings))

    told = "The agent is not active with a certificate in force"
    assert refusal(answer) == (401, "invalid_client", told)


def test_agent_without_a_certificate_gets_no_token(tenant: Tenant, settings: Any) -> None:
    agent, holder = make_agent(tenant), Holder(Ed25519PrivateKey.generate())
    register(agent, holder)

    assert refusal(ask(assertion(holder, agent, settings)))[1] == "invalid_client"


def test_scope_stays_within_the_certificates(
    agent: Agent, holder: Holder, tenant: Tenant, settings: Any
) -> None:
    open_agent, open_holder = make_certified_agent(tenant, metadata={}), Holder(Ed25519PrivateKey.generate())
    register(open_agent, open_holder)

    beyond = ask(assertion(holder, agent, settings), scope="read delete")
    undeclared = ask(assertion(open_holder, open_agent, settings), scope="read")
    nothing = ask(assertion(open_holder, open_agent, settings))

    told = (400, "invalid_scope", "The scope exceeds the agent's permitted actions")
    assert [refusal(one) for one in (beyond, undeclared)] == [told, told]
    assert (nothing.status_code, nothing.json()["scope"]) == (200, "")


def test_one_way_of_authentication_only(agent: Agent, holder: Holder, tenant: Tenant, settings: Any) -> None:
    key = make_key(tenant)

    both = ask(assertion(holder, agent, settings), Authorization=basic("x", key))
    in_body = ask(assertion(holder, agent, settings), client_secret=key, client_id=agent.did)
    named = ask(assertion(holder, agent, settings), client_id="another")
    sound = ask(assertion(holder, agent, settings), client_id=agent.did)
    untyped = ask(assertion(holder, agent, settings), client_assertion_type="x")

    assert [refusal(one)[1] for one in (both, in_body, named, untyped)] == [
        *("invalid_request", "invalid_request", "invalid_client", "invalid_client"),
    ]
    assert sound.status_code == 200


def test_grants_are_of_one_kind_of_client(
    agent: Agent, holder: Holder, tenant: Tenant, settings: Any
) -> None:
    exchange = ask(assertion(holder, agent, settings), **with_id_token("x", agent))
    unknown = ask(assertion(holder, agent, settings), grant_type="password")
    by_key = send({"grant_type": CLIENT_CREDENTIALS}, key=make_key(tenant))

    assert [refusal(one)[1] for one in (exchange, unknown, by_key)] == [
        *("unauthorized_client", "unsupported_grant_type", "unsupported_grant_type"),
    ]


def test_assertion_opens_no_other_endpoint(agent: Agent, holder: Holder, settings: Any) -> None:
    for path in ("/oauth/introspect", "/oauth/revoke"):
        form = {"client_assertion_type": ASSERTION_TYPE, "token": "x"}
        answer = send({**form, "client_assertion": assertion(holder, agent, settings)}, path=path)
        assert refusal(answer)[:2] == (401, "invalid_client")


def test_nothing_is_issued_while_replays_cannot_be_seen(
    agent: Agent, holder: Holder, settings: Any, redis_is_down: None
) -> None:
    assert refusal(ask(assertion(holder, agent, settings)))[:2] == (503, "temporarily_unavailable")


@pytest.fixture
def jag(tenant: Tenant, agent: Agent, provider: Provider, settings: Any) -> Callable[..., str]:
    """Make identity assertion grants of a trusted issuer for the agent."""
    make_issuer(tenant, provider.issuer)

    def make(*, typ: str | None = "oauth-id-jag+jwt", **changed: Any) -> str:
        right = {"aud": settings.TOKEN_ISSUER, "client_id": agent.did, "jti": str(uuid4())}
        return provider.token(header={"typ": typ}, **{**right, **changed})

    return make


def grant(holder: Holder, agent: Agent, settings: Any, text: str, **form: Any) -> Any:
    return ask(assertion(holder, agent, settings), grant_type=JWT_BEARER, assertion=text, **form)


def test_id_jag_makes_its_person_the_verified_root(
    agent: Agent, holder: Holder, provider: Provider, jag: Callable[..., str], settings: Any
) -> None:
    answer = grant(holder, agent, settings, jag(scope="read pay", resource="https://api.example/"))

    assert answer.status_code == 200, answer.content
    assert answer.json()["scope"] == "read pay"
    claims = jws.parse(answer.json()["access_token"]).payload
    assert (claims["sub"], claims["act"]["sub"]) == ("alice@example.com", agent.did)
    assert claims["sub_id"]["iss"] == provider.issuer
    assert claims["aud"] == "https://api.example/"


def test_id_jag_bounds_scope_and_resource(
    agent: Agent, holder: Holder, jag: Callable[..., str], settings: Any
) -> None:
    narrowed = grant(holder, agent, settings, jag(scope="read pay"), scope="read")
    beyond = grant(holder, agent, settings, jag(scope="read"), scope="read pay")
    not_permitted = grant(holder, agent, settings, jag(scope="delete"))
    elsewhere = grant(
        holder,
        agent,
        settings,
        jag(resource=["https://a.example", "https://b.example"]),
        resource="https://c.example",
    )
    several = grant(holder, agent, settings, jag(resource=["https://a.example", "https://b.example"]))

    assert narrowed.json()["scope"] == "read"
    assert [refusal(one)[1] for one in (beyond, not_permitted)] == ["invalid_scope", "invalid_scope"]
    assert [refusal(one)[1] for one in (elsewhere, several)] == ["invalid_target", "invalid_target"]


JAG_FAULTS: dict[str, dict[str, Any]] = {
    "unsupported_type": {"typ": "JWT"},
    "wrong_audience": {"aud": CLIENT_ID},
    "wrong_client": {"client_id": "another"},
    "expired": {"exp": 1_700_000_000},
    "invalid_signature": {"key": OTHER_KEY},
    "untrusted_issuer": {"iss": "https://other.example"},
    "malformed": {"jti": None},
    "not_an_id_token": {"cnf": {"jkt": "x"}},
    "too_old": {"iat": int((now() - timedelta(hours=2)).timestamp())},
}


@pytest.mark.parametrize("fault", JAG_FAULTS)
def test_id_jag_that_does_not_hold_grants_nothing(
    agent: Agent, holder: Holder, jag: Callable[..., str], settings: Any, fault: str
) -> None:
    answer = grant(holder, agent, settings, jag(**JAG_FAULTS[fault]))

    assert refusal(answer) == (400, "invalid_grant", f"assertion: {fault}")


def test_id_jag_counts_once(agent: Agent, holder: Holder, jag: Callable[..., str], settings: Any) -> None:
    text = jag()

    assert grant(holder, agent, settings, text).status_code == 200
    assert refusal(grant(holder, agent, settings, text))[2] == "assertion: used_before"


@pytest.mark.parametrize("client", [["x"], {}, 5, None])
def test_id_jag_whose_client_is_no_text_grants_nothing(
    agent: Agent, holder: Holder, jag: Callable[..., str], settings: Any, client: Any
) -> None:
    assert refusal(grant(holder, agent, settings, jag(client_id=client)))[2] == "assertion: wrong_client"


def test_id_jag_is_not_used_up_by_another_tenants_issuer_of_the_same_name(
    agent: Agent, holder: Holder, provider: Provider, jag: Callable[..., str], settings: Any
) -> None:
    stranger, theirs = make_certified_agent(make_tenant()), Holder(Ed25519PrivateKey.generate())
    register(stranger, theirs)
    make_issuer(stranger.tenant, provider.issuer, jwks={"keys": [public(OTHER_KEY, "rsa")]})

    burnt = grant(theirs, stranger, settings, jag(key=OTHER_KEY, client_id=stranger.did, jti="1"))
    own = grant(holder, agent, settings, jag(jti="1"))

    assert (burnt.status_code, own.status_code) == (200, 200), (burnt.content, own.content)


def test_id_token_is_no_id_jag_and_the_other_way_round(
    agent: Agent, holder: Holder, provider: Provider, jag: Callable[..., str], tenant: Tenant, settings: Any
) -> None:
    key = make_key(tenant)

    as_grant = grant(holder, agent, settings, provider.token())
    as_id_token = send(with_id_token(jag(), agent), key=key)
    as_subject = send(with_id_token(jag(client_id=CLIENT_ID), agent, subject_token_type=ID_JAG), key=key)
    anothers = send(with_id_token(jag(), agent, subject_token_type=ID_JAG), key=key)

    assert refusal(as_grant)[2] == "assertion: unsupported_type"
    assert refusal(as_id_token)[2] == "subject_token: unsupported_type"
    assert as_subject.status_code == 200, as_subject.content
    assert refusal(anothers)[2] == "subject_token: wrong_client"
