"""Ends of certificates are announced 30, 7 and 1 days before."""

import json
from datetime import timedelta

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services
from certificates.models import Certificate
from certificates.tests.factories import make_certificate, make_overdue_certificate, suspend_agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from webhooks.models import Message
from webhooks.openapi import EXAMPLE_DATA
from webhooks.tests.factories import make_webhook

DAY = timedelta(days=1)


def announced(certificate: Certificate) -> list[int]:
    entries = AuditEntry.objects.about(certificate.id).of_type("certificate.expiring").order_by("created_at")
    return [(entry.metadata or {})["days"] for entry in entries]


def test_each_number_of_days_is_announced_once(tenant: Tenant) -> None:
    make_webhook(tenant, events=["certificate.expiring"])
    certificate = make_certificate(make_agent(tenant))
    end = certificate.expires_at

    counts = [
        services.announce_due(now=end - left)
        for left in (31 * DAY, 30 * DAY, 29 * DAY, 7 * DAY, 6 * DAY, DAY, DAY / 2, -DAY)
    ]

    assert counts == [0, 1, 0, 1, 0, 1, 0, 0]
    assert announced(certificate) == [30, 7, 1]
    told = [json.loads(bytes(one.body))["data"] for one in Message.objects.filter(tenant=tenant)]
    assert sorted(data["days"] for data in told) == [1, 7, 30]
    assert all(set(data) == set(EXAMPLE_DATA["certificate.expiring"]) for data in told)


def test_late_sweep_announces_the_fewest_days_only(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))

    counts = [services.announce_due(now=certificate.expires_at - 5 * DAY) for _ in range(2)]

    assert (counts, announced(certificate)) == ([1, 0], [7])


def test_short_life_is_not_announced_at_its_beginning(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    Certificate.objects.filter(id=certificate.id).update(expires_at=certificate.issued_at + 30 * DAY)

    at_once = services.announce_due(now=certificate.issued_at + timedelta(minutes=1))

    assert at_once == 0
    assert services.announce_due(now=certificate.issued_at + 24 * DAY) == 1
    assert announced(certificate) == [7]


def test_renewed_and_held_certificates_are_not_announced(client: ApiClient, tenant: Tenant) -> None:
    renewed = make_certificate(make_agent(tenant), at=now() - DAY)
    held = make_certificate(make_agent(tenant))
    path = f"/v1/agents/{renewed.agent_id}/renew"
    assert client.post(path, {"overlap_seconds": 604_800}).status_code == 201
    suspend_agent(held.agent)
    soon = now() + 6 * DAY
    Certificate.objects.filter(id__in=[renewed.id, held.id]).update(expires_at=soon + DAY)

    assert services.announce_due(now=soon) == 0


def test_list_is_filtered_by_end(client: ApiClient, tenant: Tenant) -> None:
    first, second = (make_certificate(make_agent(tenant)) for _ in range(2))
    Certificate.objects.filter(id=first.id).update(expires_at=now() + 5 * DAY)
    middle, late = (f"{now() + days * DAY:%Y-%m-%dT%H:%M:%SZ}" for days in (30, 800))

    def listed(query: str) -> set[str]:
        return {row["id"] for row in client.get(f"/v1/certificates?{query}").json()["data"]}

    assert listed(f"expires_before={middle}") == {str(first.id)}
    assert listed(f"expires_after={middle}") == {str(second.id)}
    assert listed(f"expires_after={middle}&expires_before={late}") == {str(second.id)}
    assert client.get("/v1/certificates?expires_before=soon").status_code == 400


# --- The expiry sweep ------------------------------------------------------------------------------


def test_overdue_certificate_expires_once(tenant: Tenant) -> None:
    certificate = make_overdue_certificate(tenant)
    make_certificate(make_agent(tenant))

    counts = [services.expire_due(now=now()) for _ in range(2)]

    certificate.refresh_from_db()
    assert counts == [1, 0]
    assert certificate.status == "expired"
    entries = AuditEntry.objects.about(certificate.id).of_type("certificate.expired")
    assert [entry.actor_type for entry in entries] == ["system"]


def test_last_second_still_counts(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))

    assert certificate.status_at(certificate.expires_at) == "active"
    assert certificate.status_at(certificate.expires_at + timedelta(seconds=1)) == "expired"

    services.expire_due(now=certificate.expires_at)

    certificate.refresh_from_db()
    assert certificate.status == "active"
