"""`parent_token`: handing a token on, with less and never more."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import make_certificate, make_certified_agent, revoke_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation.jose import jws
from delegation.tests.factories import CHAIN, make_token
from delegation.tests.test_standing import expire, renew, revoke, suspend
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant, make_test_key

LONGER = [*CHAIN, {"sub": "quote-service", "type": "service"}]


def hand_on(client: ApiClient, agent: Agent, parent: str, **body: Any) -> Any:
    body = {"chain": LONGER, "parent_token": parent, **body}
    return client.post(f"/v1/agents/{agent.id}/delegation", body)


def test_a_token_is_handed_on(client: ApiClient, agent: Agent) -> None:
    parent = make_token(agent, scope="read trade", audience="https://api.example", ttl=timedelta(seconds=120))

    answer = hand_on(client, agent, parent.token, scope="read", ttl_seconds=86_400)

    assert answer.status_code == 200
    found = client.post("/v1/delegation/verify", {"token": answer.json()["data"]["token"]}).json()["data"]
    assert (found["valid"], found["chain"], found["scope"]) == (True, LONGER, "read")
    assert found["audience"] == "https://api.example"
    assert found["expires_at"] == parent.delegation.expires.isoformat().replace("+00:00", "Z")


def test_the_audit_log_links_to_the_parent(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    parent = make_token(agent)

    hand_on(client, agent, parent.token)

    latest = AuditEntry.objects.for_tenant(tenant.id).filter(event_type="delegation.issued").first()
    assert latest is not None
    assert latest.metadata is not None
    assert latest.metadata["parent_token_id"] == str(parent.delegation.token_id)


def test_nothing_goes_beyond_the_parent(client: ApiClient, agent: Agent) -> None:
    table: list[dict[str, Any]] = [
        {"chain": CHAIN},
        {"chain": CHAIN[:2]},
        {"chain": [*CHAIN[:2], LONGER[3]]},
        {"chain": [CHAIN[0], LONGER[3], *CHAIN[1:]]},
        {"chain": [{"sub": "mallory", "type": "human"}, *LONGER[1:]]},
        {"chain": [{"sub": "alice@example.com", "type": "service"}, *LONGER[1:]]},
        {"scope": "read withdraw"},
        {"audience": "https://other.example"},
    ]
    for body in table:
        parent = make_token(agent, scope="read trade", audience="https://api.example")

        assert hand_on(client, agent, parent.token, **body).status_code == 422


def test_an_open_audience_can_be_narrowed(client: ApiClient, agent: Agent) -> None:
    parent = make_token(agent)

    assert hand_on(client, agent, parent.token, audience="https://api.example").status_code == 200


def test_a_parent_without_scope_lends_none(client: ApiClient, agent: Agent) -> None:
    assert hand_on(client, agent, make_token(agent).token, scope="read").status_code == 422


@pytest.mark.parametrize("fault", ["expired", "tampered", "sandbox"])
def test_a_parent_that_does_not_count_is_refused(
    client: ApiClient, agent: Agent, tenant: Tenant, fault: str
) -> None:
    if fault == "expired":
        token = make_token(agent, at=now() - timedelta(hours=2)).token
    elif fault == "tampered":
        good = make_token(agent).token
        token = good[:-8] + ("A" * 8 if not good.endswith("A" * 8) else "B" * 8)
    else:
        make_test_key(tenant)
        with environments.use(Environment.TEST):
            token = make_token(make_agent(tenant)).token

    assert hand_on(client, agent, token).status_code in (400, 422)


def test_a_parent_of_unknown_standing_is_refused(
    client: ApiClient, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = make_token(agent)
    monkeypatch.setattr("delegation.issuing.issuance.standings", lambda tokens, now: [None])

    assert hand_on(client, agent, parent.token).status_code == 422


def test_another_tenants_token_can_be_handed_on(client: ApiClient, agent: Agent) -> None:
    theirs = make_token(make_agent(make_tenant("Other")))

    assert hand_on(client, agent, theirs.token).status_code == 200


def certificate_of(agent: Agent) -> Certificate:
    return Certificate.objects.get(agent=agent, status="active")


def recertify_after(end: Callable[[Agent], None]) -> Callable[[Agent], None]:
    def ends_and_is_certified_again(agent: Agent) -> None:
        end(agent)
        make_certificate(agent)

    return ends_and_is_certified_again


def certify_and_revoke(agent: Agent) -> None:
    revoke_certificate(make_certificate(agent))


def renew_twice(agent: Agent) -> None:
    renew(agent)
    Certificate.objects.filter(agent=agent).update(issued_at=F("issued_at") - timedelta(minutes=2))
    renew(agent)


@pytest.mark.parametrize(
    ("make", "happens"),
    [
        (make_certified_agent, revoke),
        (make_certified_agent, recertify_after(revoke)),
        (make_certified_agent, expire),
        (make_certified_agent, recertify_after(expire)),
        (make_certified_agent, renew),
        (make_certified_agent, renew_twice),
        (make_agent, suspend),
        (make_agent, make_certificate),
        (make_agent, recertify_after(certify_and_revoke)),
    ],
)
def test_what_an_agents_end_ended_is_not_handed_on_whatever_follows_it(
    client: ApiClient, agent: Agent, tenant: Tenant, make: Any, happens: Any
) -> None:
    first, middle = make(tenant, name="first"), make_agent(tenant, name="middle")
    chain, parent = [*CHAIN, {"sub": "middle", "type": "agent"}], make_token(first).token
    child = hand_on(client, middle, parent, chain=chain).json()["data"]["token"]
    assert hand_on(client, agent, child, chain=[*chain, LONGER[3]]).status_code == 200

    happens(first)

    for token, longer in ((parent, [*CHAIN, LONGER[3]]), (child, [*chain, LONGER[3]])):
        answer = hand_on(client, agent, token, chain=longer)
        assert answer.status_code == 422
        assert "behind the parent token" in answer.json()["error"]
        assert client.post("/v1/delegation/verify", {"token": token}).json()["data"]["valid"] is True


def test_each_agent_behind_a_token_is_named_with_its_certificate(
    client: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    first = make_certified_agent(tenant, name="first")

    parent = make_token(first)
    token = hand_on(client, agent, parent.token).json()["data"]["token"]

    assert jws.parse(token).payload["via"] == [
        {
            "agent_id": str(first.id),
            "cert_serial": certificate_of(first).serial_number,
            "jti": str(parent.delegation.token_id),
        }
    ]


def test_a_scope_that_an_agent_behind_has_lost_is_not_handed_on(
    client: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    first = make_agent(tenant, name="first", metadata={"permitted_actions": ["read", "trade"]})
    token = make_token(first, scope="read trade").token
    client.patch(f"/v1/agents/{first.id}", {"metadata": {"permitted_actions": ["read"]}})

    assert hand_on(client, agent, token, scope="trade").status_code == 422
    assert hand_on(client, agent, token, scope="read").status_code == 200
