"""Certificates in the console: revoking with a reason, retiring, reading what was signed."""

from datetime import timedelta

import pytest
from django.urls import reverse

from agents.models import AgentStatus
from auditlog.models import AuditEntry
from certificates.models import Certificate, CertificateStatus
from certificates.tests.factories import (
    make_certified_agent,
    make_expired_certificate,
    make_revoked_certificate,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.console import actor_id_of, address_in, console_of, make_member, make_operator
from tenancy import services as tenancy
from tenancy.models import Role, Tenant

BOTH = pytest.mark.parametrize("environment", list(Environment))


def row_page(certificate: Certificate) -> str:
    return reverse("admin:certificates_certificate_change", args=[certificate.pk])


@BOTH
def test_officer_revokes_a_certificate_with_a_reason(acme: Tenant, environment: Environment) -> None:
    client = console_of(make_member(acme, Role.OFFICER), environment)
    with environments.use(environment):
        agent = make_certified_agent(tenancy.get_tenant(tenant_id=acme.id))
        certificate = Certificate.objects.get(agent=agent)

        client.post(
            reverse("admin:certificates_certificate_revoke", args=[certificate.pk]),
            {"reason": "key compromise: laptop lost"},
        )

        certificate.refresh_from_db()
        (entry,) = AuditEntry.objects.for_tenant(acme.id).of_type("certificate.revoked")
    assert certificate.status == CertificateStatus.REVOKED
    assert certificate.revocation_reason == "key compromise: laptop lost"
    assert certificate.revocation_code == "keyCompromise"
    assert entry.actor_id == actor_id_of("officer")


@BOTH
def test_officer_suspends_and_reinstates_an_agent_with_its_certificate(
    acme: Tenant, environment: Environment
) -> None:
    client = console_of(make_member(acme, Role.OFFICER), environment)
    with environments.use(environment):
        agent = make_certified_agent(tenancy.get_tenant(tenant_id=acme.id))
        certificate = Certificate.objects.get(agent=agent)

        client.post(reverse("admin:agents_agent_suspend", args=[agent.pk]), {"reason": "odd"})
        certificate.refresh_from_db()
        held, page = certificate.revocation_code, client.get(row_page(certificate)).content.decode()
        client.post(reverse("admin:agents_agent_reinstate", args=[agent.pk]), {"reason": "fixed"})

        agent.refresh_from_db()
        certificate.refresh_from_db()
    assert held == "certificateHold"
    assert "revoked, on hold" in page
    assert address_in(environment, "certificates_certificate_revoke", certificate.pk) in page
    assert (agent.status, certificate.status) == (AgentStatus.ACTIVE, CertificateStatus.ACTIVE)


def test_the_page_shows_the_certificates_own_fields(acme: Tenant) -> None:
    agent = make_certified_agent(acme, name="Treasury bot", metadata={"permitted_actions": ["place_order"]})
    certificate = Certificate.objects.get(agent=agent)

    page = console_of(make_operator()).get(row_page(certificate)).content.decode()

    for text in ("Treasury bot", "sha256_rsa", agent.did, "place_order", "BEGIN CERTIFICATE"):
        assert text in page, text


def test_a_certificate_that_cannot_be_read_is_said_to_be_so(acme: Tenant) -> None:
    agent = make_certified_agent(acme)
    Certificate.objects.filter(agent=agent).update(certificate_pem="<b>not one</b>")
    certificate = Certificate.objects.get(agent=agent)

    page = console_of(make_operator()).get(row_page(certificate))

    assert page.status_code == 200
    assert "The stored octets are not a certificate." in page.content.decode()


@pytest.mark.parametrize("spelled", ["{serial}", "0x{serial}", "{colons}", "{upper}", "{start}"])
def test_a_certificate_is_found_by_its_serial_number(acme: Tenant, spelled: str) -> None:
    agent = make_certified_agent(acme, name="found")
    make_certified_agent(acme, name="other")
    certificate = Certificate.objects.get(agent=agent)
    serial = certificate.serial_number
    colons = ":".join(serial[i : i + 2] for i in range(0, 40, 2))
    term = spelled.format(serial=serial, colons=colons, upper=serial.upper(), start=serial[:12])

    page = console_of(make_operator()).get(reverse("admin:certificates_certificate_changelist"), {"q": term})

    assert list(page.context["cl"].result_list) == [certificate]


def test_the_state_filter_goes_by_the_clock(acme: Tenant) -> None:
    expired, revoked = make_expired_certificate(acme), make_revoked_certificate(acme)
    active = Certificate.objects.get(agent=make_certified_agent(acme))
    client = console_of(make_operator())
    address = reverse("admin:certificates_certificate_changelist")

    found = {
        state: list(client.get(address, {"state": state}).context["cl"].result_list)
        for state in ("active", "7", "revoked", "expired")
    }

    assert found == {"active": [active], "7": [], "revoked": [revoked], "expired": [expired]}


@pytest.mark.parametrize(
    ("state", "shown"),
    [("revoked", "certificate revoked"), ("held", "certificate on hold"), ("expired", "certificate expired")],
)
def test_agent_without_a_valid_certificate_says_so(acme: Tenant, state: str, shown: str) -> None:
    agent = make_certified_agent(acme)
    certificate = Certificate.objects.get(agent=agent)
    client = console_of(make_member(acme, Role.OFFICER))
    page = reverse("admin:agents_agent_change", args=[agent.pk])
    before = client.get(page).content.decode()
    if state == "expired":
        past = now() - timedelta(days=400)
        Certificate.objects.filter(pk=certificate.pk).update(
            not_before=past, issued_at=past, expires_at=now() - timedelta(days=1)
        )
    else:
        name = "certificates_certificate_revoke" if state == "revoked" else "agents_agent_suspend"
        row = certificate if state == "revoked" else agent
        client.post(reverse(f"admin:{name}", args=[row.pk]), {"reason": "odd"})

    after = client.get(page).content.decode()
    listed = client.get(reverse("admin:agents_agent_changelist")).content.decode()

    assert shown not in before
    assert shown in after
    assert shown in listed
