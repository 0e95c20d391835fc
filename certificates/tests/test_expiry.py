"""The expiry sweep."""

from datetime import timedelta

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services
from certificates.tests.factories import make_certificate, make_overdue_certificate
from compliance.core.clock import now
from tenancy.models import Tenant


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
