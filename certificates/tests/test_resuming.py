"""Lists continue after the database went back to an earlier moment, as others' copies of them show."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.lists import publication, resuming
from certificates.lists.list_audit import findings
from certificates.lists.resuming import ListGap, gap, parse_list, recognized
from certificates.models import Certificate, CertificateAuthority, RevocationList
from certificates.tests.factories import (
    lost,
    make_authorities,
    make_certificate,
    make_revoked_certificate,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from certificates.tests.test_commands import run
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR


def published() -> bytes:
    """Publish a list of the issuing CA, and return it as a client gets it."""
    authority = CertificateAuthority.objects.issuing()
    found = publication.publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True)
    assert found is not None
    return found.der


def gap_of(der: bytes) -> ListGap:
    kept = recognized(parse_list(der))
    assert kept is not None
    return gap(kept, now=now())


def number_of(der: bytes) -> int:
    crl = x509.load_der_x509_crl(der)
    return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


@pytest.fixture
def certificate(tenant: Tenant) -> Certificate:
    return make_certificate(make_agent(tenant))


def test_next_number_exceeds_all_that_can_have_been_published() -> None:
    authority = make_authorities()
    published()
    RevocationList.objects.filter(authority=authority).update(this_update=now() - timedelta(hours=1))
    with lost():
        numbers = [number_of(published()) for _ in range(3)]

    resuming.resume(kept=[], actor=ACTOR, now=now())

    newest = RevocationList.objects.latest_of(authority)
    assert newest.number > max(numbers) + 3_600 * 100
    assert findings(newest.authority, now()) == []


def test_next_number_exceeds_that_of_a_kept_list() -> None:
    authority = make_authorities()
    with lost():
        CertificateAuthority.objects.filter(id=authority.id).update(crl_number=10**12)
        der = published()
    kept = gap_of(der).kept

    resumed = {each.authority.id: each for each in resuming.resume(kept=[kept], actor=ACTOR, now=now())}

    assert resumed[authority.id].number == 10**12 + 2
    assert resumed[authority.id].last_known == authority.crl_number
    entry = AuditEntry.objects.about(authority.id).of_type("crl.resumed").get()
    assert entry.metadata is not None
    assert entry.metadata["after"] == 10**12 + 1


def test_lists_from_before_are_no_base_of_a_delta() -> None:
    authority = make_authorities()
    published()

    resuming.resume(kept=[], actor=ACTOR, now=now())

    (first,) = RevocationList.objects.filter(authority=authority, scope="full")
    assert not RevocationList.objects.filter(authority=authority, scope="delta").exists()
    published()
    assert RevocationList.objects.latest_of(authority, "delta").base_number == first.number


def test_lost_revocation_is_found_and_made_again_with_its_date(certificate: Certificate) -> None:
    with lost():
        revoked_at = revoke_certificate(certificate).revoked_at
        der = published()
    assert revoked_at is not None

    found = gap_of(der)
    resuming.resume(kept=[found.kept], actor=ACTOR, now=now())

    assert (found.ahead, [each.id for each in found.lost]) == (1, [certificate.id])
    row = Certificate.objects.get(id=certificate.id)
    assert (row.status, row.revocation_code) == ("revoked", "keyCompromise")
    assert row.revoked_at == max(revoked_at.replace(microsecond=0), row.issued_at)
    newest = x509.load_der_x509_crl(RevocationList.objects.latest_of(row.authority).der)
    assert newest.get_revoked_certificate_by_serial_number(int(row.serial_number, 16)) is not None
    assert gap_of(der).lost == ()


def test_lost_hold_suspends_the_agent_again(certificate: Certificate) -> None:
    with lost():
        suspend_agent(certificate.agent)
        der = published()

    resuming.resume(kept=[gap_of(der).kept], actor=ACTOR, now=now())

    assert Certificate.objects.get(id=certificate.id).is_on_hold(now())
    assert Agent.objects.get(id=certificate.agent_id).status == "suspended"


def test_hold_lifted_after_the_list_is_not_lost(certificate: Certificate) -> None:
    suspend_agent(certificate.agent)
    der = published()
    reinstate_agent(Agent.objects.get(id=certificate.agent_id))
    published()

    found = gap_of(der)

    assert (found.ahead, found.lost) == (-1, ())


def test_hold_that_became_a_revocation_is_lost(certificate: Certificate) -> None:
    suspend_agent(certificate.agent)
    with lost():
        revoke_certificate(certificate)
        der = published()

    resuming.resume(kept=[gap_of(der).kept], actor=ACTOR, now=now())

    assert Certificate.objects.get(id=certificate.id).revocation_code == "keyCompromise"


def test_list_older_than_the_database_has_no_gap(tenant: Tenant) -> None:
    make_revoked_certificate(tenant)
    der = published()
    make_revoked_certificate(tenant)
    published()

    found = gap_of(der)

    assert (found.ahead, found.lost, found.unknown) == (-1, (), ())


def test_certificate_without_a_row_is_unknown(tenant: Tenant, tmp_path: Path) -> None:
    make_authorities()
    with lost():
        certificate = make_revoked_certificate(tenant)
        (tmp_path / "list").write_bytes(published())

    rows = run("crl_resume", "--environment", "live", "--list", str(tmp_path / "list"))

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
