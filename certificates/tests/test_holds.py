"""Certificates on hold: what suspending and reinstating an agent does to its certificate, rows and lists."""

import random
from datetime import timedelta
from typing import Any

import pytest
from asn1crypto import crl as asn1
from cryptography import x509
from django.conf import settings
from django.db import IntegrityError

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services
from certificates.lists import list_audit
from certificates.lists.crl import DELTA, CrlWindow, ListScope
from certificates.lists.publication import publish, read_entries
from certificates.models import Certificate, CertificateAuthority, EndedHold, RevocationList
from certificates.pki.der import SEQUENCE, tlv
from certificates.tests.factories import (
    make_authorities,
    make_certificate,
    make_certified_agent,
    make_held_certificate,
    make_past_end,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from certificates.tests.test_crl_api import read
from compliance.core import environments
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_key
from webhooks.models import Message
from webhooks.tests.factories import make_webhook

Lines = dict[str, str]
"""What a list says: the reason, by serial number."""


def fresh(certificate: Certificate) -> Certificate:
    return Certificate.objects.select_related("agent").get(id=certificate.id)


def publish_now(authority: CertificateAuthority, **options: Any) -> RevocationList | None:
    return publish(authority_id=authority.id, actor=ACTOR, now=now(), **options)


def findings(authority: CertificateAuthority) -> list[str]:
    authority.refresh_from_db()
    return list_audit.findings(authority, now())


def lines_of(api: ApiClient, authority: CertificateAuthority, part: str = "") -> Lines:
    crl = read(api.get(f"/v1/crl/{authority.serial_number}{part}"))
    return {
        f"{entry.serial_number:040x}": str(
            entry.extensions.get_extension_for_class(x509.CRLReason).value.reason.value
        )
        for entry in crl
    }


@pytest.fixture
def held(tenant: Tenant) -> Certificate:
    return make_held_certificate(tenant)


def test_suspending_and_reinstating_goes_over_the_api(client: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    agent_path = f"/v1/agents/{certificate.agent_id}"

    suspended = client.post(f"{agent_path}/suspend", {"reason": "odd trades"}).json()["data"]
    held = client.get(f"/v1/certificates/{certificate.id}").json()["data"]
    reinstated = client.post(f"{agent_path}/reinstate", {"reason": "cause fixed"}).json()["data"]
    released = client.get(f"/v1/certificates/{certificate.id}").json()["data"]

    assert (suspended["status"], reinstated["status"]) == ("suspended", "active")
    assert (held["status"], held["revocation_reason"]) == ("revoked", "certificateHold")
    assert released["status"] == "active"
    assert (released["revoked_at"], released["revocation_reason"]) == (None, None)
    assert client.post(f"{agent_path}/certify").status_code == 409
    assert client.post(f"{agent_path}/renew").status_code == 201


def test_hold_and_release_are_told_without_the_tenants_reason(
    client: ApiClient, api: ApiClient, tenant: Tenant
) -> None:
    make_webhook(tenant, events=["certificate.revoked", "agent.suspended"])
    certificate = make_certificate(make_agent(tenant))

    client.post(f"/v1/agents/{certificate.agent_id}/suspend", {"reason": "odd trades"})
    shown = api.get(f"/v1/verify/{certificate.serial_number}")
    client.post(f"/v1/agents/{certificate.agent_id}/reinstate", {"reason": "fixed"})

    assert b"odd trades" not in shown.content
    bodies = {message.event: bytes(message.body) for message in Message.objects.filter(tenant=tenant)}
    assert set(bodies) == {"certificate.revoked", "agent.suspended"}
    assert b'"revocation_reason":"certificateHold"' in bodies["certificate.revoked"]
    assert b"odd trades" not in bodies["certificate.revoked"]
    told = AuditEntry.objects.for_tenant(tenant.id).order_by("created_at", "id")
    assert list(told.values_list("event_type", flat=True))[-4:] == [
        "agent.suspended",
        "certificate.held",
        "agent.reinstated",
        "certificate.released",
    ]


def test_certificate_on_hold_is_revoked_for_good_since_the_hold(client: ApiClient, held: Certificate) -> None:
    path = f"/v1/certificates/{held.id}/revoke"

    answer = client.post(path, {"reason": "keyCompromise"})

    revoked = fresh(held)
    assert (answer.status_code, answer.json()["data"]["reason"]) == (200, "keyCompromise")
    assert (revoked.revoked_at, revoked.revocation_code) == (held.revoked_at, "keyCompromise")
    assert client.post(path, {"reason": "again"}).status_code == 409
    assert reinstate_agent(revoked.agent).status == AgentStatus.PENDING
    assert fresh(held).status == "revoked"


def test_certificate_past_its_end_stays_on_hold(client: ApiClient, held: Certificate) -> None:
    make_past_end(held)

    assert services.expire_due(now=now()) == 0
    answer = client.post(f"/v1/certificates/{held.id}/revoke", {"reason": "x"})
    assert (answer.status_code, fresh(held).status) == (409, "revoked")
    assert reinstate_agent(held.agent).status == AgentStatus.PENDING
    assert fresh(held).status == "revoked"


def test_certificate_on_hold_is_not_renewed(client: ApiClient, held: Certificate) -> None:
    by_agent = client.post(f"/v1/agents/{held.agent_id}/renew")
    by_certificate = client.post(f"/v1/certificates/{held.id}/renew")

    assert (by_agent.status_code, by_certificate.status_code) == (422, 422)


def test_agent_suspended_without_a_certificate_leaves_no_hold(tenant: Tenant) -> None:
    agent = make_agent(tenant)

    suspend_agent(agent)

    assert not Certificate.objects.of_agent(agent.id).exists()
    assert reinstate_agent(agent).status == AgentStatus.PENDING


def test_agent_with_a_revoked_certificate_holds_nothing(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    revoke_certificate(certificate)

    suspend_agent(certificate.agent)

    assert fresh(certificate).revocation_code == "keyCompromise"
    assert reinstate_agent(certificate.agent).status == AgentStatus.PENDING


def test_database_keeps_one_current_certificate_of_an_agent(tenant: Tenant) -> None:
    held = make_held_certificate(tenant)
    Agent.objects.filter(id=held.agent_id).update(status="pending")
    make_certificate(fresh(held).agent)
    Agent.objects.filter(id=held.agent_id).update(status="suspended")

    with pytest.raises(IntegrityError, match="one_current"), environments.atomic():
        Certificate.objects.filter(id=held.id).update(
            status="active", revoked_at=None, revocation_reason=None, crl_entry=None
        )


def test_hold_that_no_list_told_of_needs_no_list_for_its_end(held: Certificate) -> None:
    reinstate_agent(held.agent)

    assert publish_now(held.authority) is None


def test_delta_tells_a_release_though_the_certificate_is_held_again_meanwhile(held: Certificate) -> None:
    base = publish_now(held.authority)
    reinstate_agent(held.agent)
    published = publish_now(held.authority)
    assert base is not None
    assert published is not None

    suspend_agent(held.agent)

    assert delta_of(published, base.number) == [(held.serial_number, "remove_from_crl")]


@pytest.mark.parametrize("seed", [0, *(pytest.param(later, marks=pytest.mark.drill) for later in (1, 2))])
def test_any_full_list_with_the_delta_to_it_is_the_newest_full_list(
    api: ApiClient, tenant: Tenant, seed: int
) -> None:
    """Over a walk of holds, releases, revocations and rounds, for every base there was."""
    chance = random.Random(seed)
    # Each round makes a list of every shard: few make it quick.
    CertificateAuthority.objects.filter(id=make_authorities().id).update(crl_shards=2)
    certificates = [make_certificate(make_agent(tenant)) for _ in range(3)]
    authority = certificates[0].authority
    full: dict[int, Lines] = {1: {}}

    for _ in range(10):
        for _ in range(chance.randrange(4)):
            _one_step(chance, fresh(chance.choice(certificates)))
        published = publish_now(authority, force=True)
        assert published is not None
        full[published.number] = lines_of(api, authority)
        combined = {base: apply(told, delta_of(published, base)) for base, told in full.items()}
        assert combined == dict.fromkeys(full, full[published.number])
        assert findings(authority) == []
    assert EndedHold.objects.count() > 3


def _one_step(chance: random.Random, certificate: Certificate) -> None:
    if certificate.agent.status == AgentStatus.SUSPENDED and certificate.is_on_hold(now()):
        if chance.random() < 0.85:
            reinstate_agent(certificate.agent)
        else:
            revoke_certificate(certificate)
    elif certificate.status == "active":
        suspend_agent(certificate.agent)


def delta_of(published: RevocationList, base: int) -> list[tuple[str, str]]:
    """The entries of the delta between a base and a round."""
    _, octets = read_entries(
        authority=published.authority,
        window=CrlWindow(published.number, published.this_update, published.next_update),
        scope=ListScope(DELTA, base_number=base),
        period=settings.CRL_VALIDITY,
    )
    entries = asn1.RevokedCertificates.load(tlv(SEQUENCE, *octets))
    return [(f"{entry['user_certificate'].native:040x}", _reason(entry)) for entry in entries]


def _reason(entry: Any) -> str:
    names = {"certificate_hold": "certificateHold", "key_compromise": "keyCompromise"}
    found = str(entry.crl_reason_value.native)
    return names.get(found, found)


def apply(told: Lines, delta: list[tuple[str, str]]) -> Lines:
    """A list as its delta changes it (RFC 5280 §5.2.4)."""
    assert len({serial for serial, _ in delta}) == len(delta)
    changed = {**told, **dict(delta)}
    return {serial: reason for serial, reason in changed.items() if reason != "remove_from_crl"}


def test_audit_waits_a_minute_for_the_end_of_a_hold(held: Certificate) -> None:
    authority = held.authority
    publish_now(authority)

    reinstate_agent(held.agent)

    assert findings(authority) == []
    later = list_audit.findings(authority, now() + timedelta(minutes=2))
    assert "1 holds ended more than a minute ago and are still on the lists" in later


def test_audit_notices_a_released_certificate_on_a_list(held: Certificate) -> None:
    authority, serial = held.authority, held.serial_number
    publish_now(authority)
    reinstate_agent(held.agent)
    authority.refresh_from_db()

    EndedHold.objects.update(end_crl_number=authority.crl_number)

    number, found = authority.crl_number, findings(authority)
    assert f"full #{number}: should not list 1 certificates: {serial}" in found
    assert f"delta #{number}: misstates 1 certificates: {serial}" in found


def test_automatic_revocation_of_a_certificate_on_hold_is_final(held: Certificate) -> None:
    with environments.atomic():
        agent = Agent.objects.for_tenant(held.tenant_id).locked().find(held.agent_id)
        services.revoke_for_agent(
            agent=agent,
            reason="Automatic revocation",
            code=x509.ReasonFlags.privilege_withdrawn,
            actor=ACTOR,
            now=now(),
        )

    assert fresh(held).revocation_code == "privilegeWithdrawn"
    assert reinstate_agent(agent).status == AgentStatus.PENDING


def test_clock_of_another_process_may_be_ahead(held: Certificate) -> None:
    assert held.revoked_at is not None

    reinstate_agent(held.agent, at=held.revoked_at - timedelta(seconds=1))

    assert held.ended_holds.get().ended_at == held.revoked_at


@pytest.mark.parametrize(
    ("scopes", "stopped", "status"),
    [
        (["agents:write"], False, 200),
        (["agents:write"], True, 403),
        (["agents:reinstate"], True, 403),
        (["agents:write", "agents:reinstate"], True, 200),
    ],
)
def test_stop_by_the_service_is_undone_with_a_scope_of_its_own(
    api: ApiClient, tenant: Tenant, scopes: list[str], stopped: bool, status: int
) -> None:
    agent = make_certified_agent(tenant)
    suspend_agent(agent)
    Agent.objects.filter(id=agent.id).update(stopped_by_strikes=3 if stopped else None)

    answer = api.as_key(make_key(tenant, scopes)).post(f"/v1/agents/{agent.id}/reinstate", {"reason": "x"})

    assert answer.status_code == status
    assert Agent.objects.get(id=agent.id).status == ("active" if status == 200 else "suspended")
