"""`POST /v1/delegation/verify`."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import services as certificates
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encodings import b64url_decode, b64url_encode
from compliance.core.environments import Environment
from compliance.keys.registry import private_key
from compliance.tests.client import ApiClient
from delegation import services
from delegation.jose import jws, tokens
from delegation.models import TokenKey
from delegation.services import TokenVerification
from delegation.tests.factories import ACTOR, CHAIN, JKT, VERIFIED, make_software_key, make_token
from delegation.token_keys import keyring, keys
from tenancy.models import Tenant
from tenancy.tests.factories import make_test_key

MALFORMED = {"valid": False, "reason": "malformed"}


def verify(api: ApiClient, token: Any) -> Any:
    answer = api.post("/v1/delegation/verify", {"token": token})
    assert answer.status_code == 200
    return answer.json()["data"]


def test_a_valid_token_tells_its_chain(api: ApiClient, agent: Agent) -> None:
    issued = make_token(agent, scope="read", audience="https://api.example")

    found = verify(api, issued.token)

    assert found == {
        "valid": True,
        "principal": "price-checker",
        "chain": CHAIN,
        "chain_display": "alice@example.com → research-agent → price-checker",
        "scope": "read",
        "agent_id": str(agent.id),
        "expires_at": issued.delegation.expires.isoformat().replace("+00:00", "Z"),
        "audience": "https://api.example",
        "certificate_serial": None,
        "environment": "live",
        "token_id": str(issued.delegation.token_id),
        "root": {"assurance": "asserted", "issuer": None, "subject": None, "vouched_by": None},
        "bound_to": None,
    }


def test_a_verified_root_and_a_bound_key_are_told(api: ApiClient, agent: Agent) -> None:
    token = make_token(agent, subject=VERIFIED, proven_key=JKT).token

    found = verify(api, token)

    assert found["root"] == {
        "assurance": "verified",
        "issuer": VERIFIED.issuer,
        "subject": VERIFIED.subject,
        "vouched_by": str(agent.id),
    }
    assert found["bound_to"] == JKT


def test_an_authentic_token_past_its_time_is_expired(api: ApiClient, agent: Agent) -> None:
    token = make_token(agent, at=now() - timedelta(hours=1, seconds=1)).token

    assert verify(api, token) == {"valid": False, "reason": "expired"}


def test_a_forged_token_past_its_time_is_not_called_expired(api: ApiClient, agent: Agent) -> None:
    header, payload, signature = make_token(agent, at=now() - timedelta(days=2)).token.split(".")
    claims = json.loads(b64url_decode(payload))
    forged = b64url_encode(json.dumps({**claims, "scope": "all"}).encode())

    assert verify(api, f"{header}.{forged}.{signature}")["reason"] == "invalid_signature"


def test_a_key_of_nobodys_is_unknown(api: ApiClient, agent: Agent) -> None:
    key, kid = make_software_key()
    token = jws.sign(tokens.to_claims(make_token(agent).delegation), kid=kid, key=key)

    assert verify(api, token)["reason"] == "unknown_key"


def test_a_foreign_key_under_our_kid_has_an_invalid_signature(api: ApiClient, agent: Agent) -> None:
    key, _ = make_software_key()
    kid = TokenKey.objects.get(status="active").kid
    token = jws.sign(tokens.to_claims(make_token(agent).delegation), kid=kid, key=key)

    assert verify(api, token)["reason"] == "invalid_signature"


@pytest.mark.parametrize(
    ("name", "value"), [("iss", "https://other.example"), ("iss", None), ("env", "test")]
)
def test_another_issuer_or_environment_under_our_key_is_refused(
    api: ApiClient, agent: Agent, name: str, value: Any
) -> None:
    key = keys.signing_key()
    claims = {**tokens.to_claims(make_token(agent).delegation), name: value}
    token = jws.sign(claims, kid=key.kid, key=_signer(key))

    assert verify(api, token)["reason"] == "invalid_issuer"


def test_our_signature_under_claims_that_are_no_delegation_is_malformed(api: ApiClient, agent: Agent) -> None:
    key = keys.signing_key()
    claims = {**tokens.to_claims(make_token(agent).delegation), "exp": "9999999999"}

    assert verify(api, jws.sign(claims, kid=key.kid, key=_signer(key))) == MALFORMED


@pytest.mark.parametrize(
    ("audience", "asked", "expected"),
    [
        ("https://api.example", "https://api.example", None),
        ("https://api.example", None, None),
        (None, None, None),
        ("https://api.example", "https://other.example", "invalid_audience"),
        ("https://api.example", "https://api.example/", "invalid_audience"),
        ("https://api.example", "HTTPS://API.EXAMPLE", "invalid_audience"),
        (None, "https://api.example", "invalid_audience"),
    ],
)
def test_a_token_for_others_is_refused_where_the_caller_names_itself(
    api: ApiClient, agent: Agent, audience: str | None, asked: str | None, expected: str | None
) -> None:
    body = {"token": make_token(agent, audience=audience).token, "audience": asked}

    found = api.post("/v1/delegation/verify", body).json()["data"]

    assert found.get("reason") == expected
    assert found["valid"] is (expected is None)


def test_the_audience_is_looked_at_last(api: ApiClient, agent: Agent) -> None:
    token = make_token(agent, audience="https://api.example", at=now() - timedelta(hours=2)).token

    found = api.post("/v1/delegation/verify", {"token": token, "audience": "https://other.example"})

    assert found.json()["data"]["reason"] == "expired"


def test_a_sandbox_token_verifies_and_says_so(api: ApiClient, tenant: Tenant) -> None:
    make_test_key(tenant)
    with environments.use(Environment.TEST):
        token = make_token(make_agent(tenant)).token

    assert verify(api, token)["environment"] == "test"


def test_a_suspension_after_the_issue_is_not_seen(api: ApiClient, agent: Agent, tenant: Tenant) -> None:
    token = make_token(agent).token
    certificates.suspend_agent(tenant_id=tenant.id, agent_id=agent.id, reason="test", actor=ACTOR, now=now())

    assert verify(api, token)["valid"] is True


def test_warm_verification_reads_no_row(api: ApiClient, agent: Agent) -> None:
    token = make_token(agent).token
    verify(api, make_software_token())

    with (
        CaptureQueriesContext(connections["default"]) as live,
        CaptureQueriesContext(connections["test"]) as test,
    ):
        assert verify(api, token)["valid"] is True
        verify(api, "a.b.c")
        verify(api, make_software_token())

    assert len(live) == len(test) == 0


def test_token_verified_before_is_judged_by_time_key_and_issuer_anew(agent: Agent, settings: Any) -> None:
    issued = make_token(agent)
    first = services.verify(token=issued.token, now=now())
    assert services.verify(token=issued.token, now=now()) == first == TokenVerification(issued.delegation)

    assert reason_of(issued.token, issued.delegation.expires) == "expired"
    assert reason_of(issued.token, issued.delegation.issued - timedelta(minutes=1)) == "not_yet_valid"
    own, settings.TOKEN_ISSUER = settings.TOKEN_ISSUER, "https://other.example"
    assert reason_of(issued.token, now()) == "invalid_issuer"
    settings.TOKEN_ISSUER = own
    keys.replace_compromised(actor=ACTOR, now=now())
    assert reason_of(issued.token, now()) == "unknown_key"


def test_only_authentic_tokens_are_remembered(agent: Agent) -> None:
    token = make_token(agent).token
    head, _, signature = token.rpartition(".")
    forged = [f"{head}.{signature[::-1]}", token + " ", token.upper(), make_software_token(), "a.b.c"]

    assert services.verify(token=token, now=now()).valid
    assert not any(services.verify(token=one, now=now()).valid for one in forged * 2)


def reason_of(token: str, at: datetime) -> str | None:
    return services.verify(token=token, now=at).reason


def test_made_up_keys_cause_one_reading_in_a_cooldown(api: ApiClient, tenant: Tenant) -> None:
    verify(api, make_software_token())

    with CaptureQueriesContext(connections["default"]) as live:
        for _ in range(20):
            assert verify(api, make_software_token())["reason"] == "unknown_key"

    assert len(live) == 0


def test_a_key_published_by_another_process_is_found(
    api: ApiClient, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "COOLDOWN_SECONDS", 0.0)
    verify(api, make_software_token())
    token = make_token(agent).token
    keyring.forget()

    assert verify(api, token)["valid"] is True


def test_known_keys_verify_while_the_databases_are_down(
    api: ApiClient, agent: Agent, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    token = make_token(agent).token
    verify(api, token)
    monkeypatch.setattr(keyring, "MAX_AGE_SECONDS", -1.0)
    monkeypatch.setattr(keyring, "COOLDOWN_SECONDS", -1.0)
    request.getfixturevalue("no_database")

    assert verify(api, token)["valid"] is True
    unknown = api.post("/v1/delegation/verify", {"token": make_software_token()})
    assert (unknown.status_code, unknown["Retry-After"]) == (503, "1")


def test_a_process_that_never_read_the_keys_can_not_say(
    api: ApiClient, agent: Agent, no_database: None
) -> None:
    keyring.forget()

    answer = api.post("/v1/delegation/verify", {"token": make_software_token()})

    assert answer.status_code == 503


def make_software_token() -> str:
    key, kid = make_software_key()
    return jws.sign({"exp": 1}, kid=kid, key=key)


def _signer(key: TokenKey) -> Any:
    return private_key(environments.current(), key.uri)
