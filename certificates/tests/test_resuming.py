"""Lists continue after the database went back to an earlier moment, as others' copies of them show."""

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.core.management import call_command

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services
from certificates.lists.kept_lists import ListGap, gap, parse_list, recognized
from certificates.lists.list_audit import findings
from certificates.models import Certificate, CertificateAuthority, EndedHold, RevocationList
from certificates.tests.factories import (
    ACTOR,
    make_authorities,
    make_certificate,
    make_revoked_certificate,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.tenancy.models import Tenant


def published() -> bytes:
    """Publish a list of the issuing CA, and return it as a client gets it."""
    authority = CertificateAuthority.objects.issuing()
    found = services.publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True)
    assert found is not None
    return found.der


def forget_revocation(certificate: Certificate) -> None:
    """Make the row of a certificate what it was before it was revoked."""
    EndedHold.objects.filter(certificate=certificate).delete()
    Certificate.objects.filter(id=certificate.id).update(
        status="active",
        revoked_at=None,
        revocation_reason=None,
        revocation_code="",
        crl_entry=None,
        first_crl_number=None,
    )
    Agent.objects.filter(id=certificate.agent_id).update(status="active")


def go_back(*, numbers: int = 2, hours: float = 1.0) -> None:
    """Make the CA's numbers what they were, at the time of a list so long ago."""
    authority = CertificateAuthority.objects.issuing()
    authority.crl_number -= numbers
    authority.crl_completed = authority.crl_number
    authority.save(update_fields=["crl_number", "crl_completed"])
    lists = RevocationList.objects.filter(authority=authority)
    lists.filter(number__gt=authority.crl_number).delete()
    lists.update(this_update=now() - timedelta(hours=hours))


def gap_of(der: bytes) -> ListGap:
    kept = recognized(parse_list(der))
    assert kept is not None
    return gap(kept, now=now())


def run(*arguments: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("crl_resume", "--environment", "live", *arguments, "--json", stdout=out)
    rows: list[dict[str, Any]] = json.loads(out.getvalue())
    return rows


def test_next_number_exceeds_all_that_can_have_been_published(tenant: Tenant) -> None:
    make_certificate(make_agent(tenant))
    published()
    lost = x509.load_der_x509_crl(published())
    go_back(hours=1)

    services.resume_lists(kept=[], actor=ACTOR, now=now())

    newest = RevocationList.objects.latest_of(CertificateAuthority.objects.issuing())
    lost_number = lost.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    assert newest.number > lost_number + 3_600 * 100
    assert findings(newest.authority, now()) == []


def test_next_number_exceeds_that_of_a_kept_list(tenant: Tenant) -> None:
    authority = make_authorities()
    CertificateAuthority.objects.filter(id=authority.id).update(crl_number=10**12)
    kept = recognized(parse_list(published()))
    CertificateAuthority.objects.filter(id=authority.id).update(crl_number=4, crl_completed=4)
    assert kept is not None

    resumed = {each.authority.id: each for each in services.resume_lists(kept=[kept], actor=ACTOR, now=now())}

    assert resumed[authority.id].number == 10**12 + 2
    assert resumed[authority.id].last_known == 4


def test_lists_from_before_are_no_base_of_a_delta(tenant: Tenant) -> None:
    authority = make_authorities()
    published()

    services.resume_lists(kept=[], actor=ACTOR, now=now())

    (first,) = RevocationList.objects.filter(authority=authority, scope="full")
    assert not RevocationList.objects.filter(authority=authority, scope="delta").exists()
    published()
    assert RevocationList.objects.latest_of(authority, "delta").base_number == first.number


def test_resuming_is_audited() -> None:
    authority = make_authorities()

    services.resume_lists(kept=[], actor=ACTOR, now=now())

    entry = AuditEntry.objects.about(authority.id).of_type("crl.resumed").get()
    assert entry.metadata is not None
    assert entry.metadata["after"] >= entry.metadata["last_known"]


def test_lost_revocation_is_found_and_made_again_with_its_date(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)
    revoked_at = Certificate.objects.get(id=certificate.id).revoked_at
    der = published()
    forget_revocation(certificate)
    go_back()
    assert revoked_at is not None

    found = gap_of(der)
    services.resume_lists(kept=[found.kept], actor=ACTOR, now=now())

    assert [each.serial_number for each in found.lost] == [certificate.serial_number]
    row = Certificate.objects.get(id=certificate.id)
    assert (row.status, row.revocation_code) == ("revoked", "keyCompromise")
    assert row.revoked_at == max(revoked_at.replace(microsecond=0), row.issued_at)
    newest = RevocationList.objects.latest_of(row.authority)
    serial = int(row.serial_number, 16)
    assert x509.load_der_x509_crl(newest.der).get_revoked_certificate_by_serial_number(serial) is not None
    assert gap_of(der).lost == ()


def test_lost_hold_suspends_the_agent_again(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    suspend_agent(certificate.agent)
    der = published()
    forget_revocation(certificate)
    go_back()

    services.resume_lists(kept=[gap_of(der).kept], actor=ACTOR, now=now())

    assert Certificate.objects.get(id=certificate.id).is_on_hold(now())
    assert Agent.objects.get(id=certificate.agent_id).status == "suspended"


def test_hold_lifted_after_the_list_is_not_lost(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    suspend_agent(certificate.agent)
    der = published()
    reinstate_agent(Agent.objects.get(id=certificate.agent_id))
    published()

    found = gap_of(der)

    assert (found.ahead, found.lost) == (-1, ())


def test_hold_that_became_a_revocation_is_lost(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    suspend_agent(certificate.agent)
    revoke_certificate(certificate)
    der = published()
    Certificate.objects.filter(id=certificate.id).update(revocation_code="certificateHold")

    services.resume_lists(kept=[gap_of(der).kept], actor=ACTOR, now=now())

    assert Certificate.objects.get(id=certificate.id).revocation_code == "keyCompromise"


def test_list_older_than_the_database_has_no_gap(tenant: Tenant) -> None:
    make_revoked_certificate(tenant)
    der = published()
    make_revoked_certificate(tenant)
    published()

    found = gap_of(der)

    assert (found.ahead, found.lost, found.unknown) == (-1, (), ())


def test_certificate_without_a_row_is_unknown(tenant: Tenant, tmp_path: Path) -> None:
    certificate = make_revoked_certificate(tenant)
    der = published()
    Certificate.objects.filter(id=certificate.id).update(serial_number="5" * 40)
    (tmp_path / "list").write_bytes(der)

    rows = run("--list", str(tmp_path / "list"))

    assert [row["unknown"] for row in rows if row["unknown"]] == [[certificate.serial_number]]


def test_list_is_read_in_pem_too(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)
    pem = x509.load_der_x509_crl(published()).public_bytes(Encoding.PEM)

    kept = recognized(parse_list(pem))

    assert kept is not None
    assert kept.revoked.keys() == {certificate.serial_number}


def test_list_of_another_environment_is_not_recognized() -> None:
    make_authorities()
    der = published()

    with environments.use(Environment.TEST):
        make_authorities()
        assert recognized(parse_list(der)) is None


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(Invalid):
        parse_list(b"no list")
