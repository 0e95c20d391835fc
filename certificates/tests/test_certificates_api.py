"""`/v1/certificates`: read, list, revoke, renew; and the retirement of agents."""

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import (
    make_certificate,
    make_expired_certificate,
    make_overdue_certificate,
    make_revoked_certificate,
    stock_pool,
)
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy.models import Tenant

ABSENT = "01890000-0000-7000-8000-000000000000"


def test_certificate_is_revoked_and_the_agents_status_stays(client: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    reason = "keyCompromise: laptop stolen"

    answer = client.post(f"/v1/certificates/{certificate.id}/revoke", {"reason": reason})

    assert answer.status_code == 200
    data = answer.json()["data"]
    assert set(data) == {"certificate_id", "status", "revoked_at", "reason"}
    assert data["certificate_id"] == str(certificate.id)
    assert (data["status"], data["reason"]) == ("revoked", reason)
    certificate.refresh_from_db()
    assert certificate.revocation_code == "keyCompromise"
    assert certificate.agent.status == AgentStatus.ACTIVE
    told = AuditEntry.objects.about(certificate.id).of_type("certificate.revoked").get()
    assert told.metadata is not None
    assert told.metadata["code"] == "keyCompromise"


@pytest.mark.parametrize("verb", ["revoke", "renew"])
@pytest.mark.parametrize(
    ("make", "status", "error"),
    [
        (make_revoked_certificate, 409, "Certificate is already revoked"),
        (make_expired_certificate, 422, "Certificate has expired"),
        (make_overdue_certificate, 422, "Certificate has expired"),
    ],
)
def test_ended_certificate_is_neither_revoked_nor_renewed(
    client: ApiClient, tenant: Tenant, make: Any, status: int, error: str, verb: str
) -> None:
    answer = client.post(f"/v1/certificates/{make(tenant).id}/{verb}", {"reason": "keyCompromise"})

    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_certificate_is_fetched(client: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))

    data = client.get(f"/v1/certificates/{certificate.id}").json()["data"]

    assert data["serial_number"] == certificate.serial_number
    assert data["certificate_pem"] == certificate.certificate_pem


def test_list_filters_by_agent_and_status(client: ApiClient, tenant: Tenant) -> None:
    active = make_certificate(make_agent(tenant))
    revoked, overdue = make_revoked_certificate(tenant), make_overdue_certificate(tenant)

    def ids(query: str) -> list[str]:
        return [row["id"] for row in client.get(f"/v1/certificates?{query}").json()["data"]]

    assert set(ids("")) == {str(item.id) for item in (active, revoked, overdue)}
    assert ids("status=active") == [str(active.id)]
    assert ids("status=revoked") == [str(revoked.id)]
    assert ids("status=expired") == [str(overdue.id)]
    assert ids(f"agent_id={active.agent_id}") == [str(active.id)]
    assert ids(f"agent_id={ABSENT}") == []


def test_renewal_issues_a_successor_and_supersedes(client: ApiClient, tenant: Tenant) -> None:
    old = make_certificate(make_agent(tenant))
    Agent.objects.filter(id=old.agent_id).update(version="9")
    stock_pool()

    answer = client.post(f"/v1/certificates/{old.id}/renew")

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert data["serial_number"] != old.serial_number
    assert data["kms_key_arn"] != old.kms_key_arn
    old.refresh_from_db()
    assert (old.status, old.revocation_code) == ("revoked", "superseded")
    assert Certificate.objects.get(id=data["id"]).claims["model_version"] == "9"
    assert AuditEntry.objects.about(data["id"]).get().event_type == "certificate.renewed"


def test_agent_is_renewed_once_a_minute(client: ApiClient, tenant: Tenant) -> None:
    agent, other = make_agent(tenant), make_agent(tenant)
    for one in (agent, other):
        make_certificate(one)
    path = f"/v1/agents/{agent.id}/renew"

    first, again = client.post(path), client.post(path)
    certificate = client.post(f"/v1/certificates/{first.json()['data']['id']}/renew")

    assert first.status_code == 201
    for refused in (again, certificate):
        assert (refused.status_code, set(refused.json())) == (429, {"error"})
        assert 30 <= int(refused["Retry-After"]) <= 60
        assert (refused["X-RateLimit-Limit"], refused["X-RateLimit-Remaining"]) == ("1", "0")
    assert client.post(f"/v1/agents/{other.id}/renew").status_code == 201
    Certificate.objects.filter(agent=agent).update(issued_at=now() - timedelta(seconds=61))
    assert client.post(path).status_code == 201


def test_agent_without_an_active_certificate_can_not_be_renewed(client: ApiClient, tenant: Tenant) -> None:
    answer = client.post(f"/v1/agents/{make_agent(tenant).id}/renew")

    assert (answer.status_code, answer.json()) == (422, {"error": "Agent has no active certificate"})


def test_retirement_revokes_and_is_final(client: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))

    answer = client.post(f"/v1/agents/{certificate.agent_id}/retire", {"reason": "project ended"})
    again = client.post(f"/v1/agents/{certificate.agent_id}/retire", {"reason": "project ended"})

    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "retired")
    assert again.status_code == 422
    certificate.refresh_from_db()
    assert (certificate.status, certificate.revocation_code) == ("revoked", "cessationOfOperation")


def test_uncertified_agent_can_be_retired(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    assert client.post(f"/v1/agents/{agent.id}/retire", {"reason": "x"}).status_code == 200
    assert client.post(f"/v1/agents/{agent.id}/retire", {}).status_code == 400
    assert client.post(f"/v1/agents/{ABSENT}/retire", {"reason": "x"}).status_code == 404
