"""Full, sharded and delta lists: who is on which, what each claims to be, and what the audit notices."""

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from django.core.management import call_command
from django.db import IntegrityError
from pytest_django.fixtures import Settings

from agents.tests.factories import make_agent
from certificates import authorities
from certificates.lists import list_audit
from certificates.models import Certificate, CertificateAuthority, RevocationList, RevocationListPart
from certificates.tests import outside
from certificates.tests.factories import make_certificate, make_revoked_certificate
from certificates.tests.test_commands import run
from certificates.tests.test_crl_api import read
from certificates.tests.test_holds import publish_now
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.keys.base import KeyNotFound
from compliance.tests.client import ApiClient
from tenancy.models import Tenant


def serials_of(crl: x509.CertificateRevocationList) -> set[str]:
    return {f"{entry.serial_number:040x}" for entry in crl}


def number_of(crl: x509.CertificateRevocationList) -> int:
    return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


def point_of(certificate: Certificate) -> str:
    leaf = x509.load_pem_x509_certificate(certificate.certificate_pem.encode())
    point = leaf.extensions.get_extension_for_class(x509.CRLDistributionPoints).value[0]
    assert point.full_name is not None
    url: str = point.full_name[0].value
    return url


def test_revoked_certificate_is_on_its_shard_the_full_list_and_the_delta(
    api: ApiClient, tenant: Tenant, tmp_path: Path
) -> None:
    certificate = make_revoked_certificate(tenant)
    authority = certificate.authority

    publish_now(authority)

    shard = int(certificate.serial_number, 16) % authority.crl_shards
    base = f"/v1/crl/{authority.serial_number}"
    lists = {part: read(api.get(base + part)) for part in ("", f"/{shard}", "/delta")}
    assert point_of(certificate).endswith(f"{base}/{shard}")
    assert all(serials_of(crl) == {certificate.serial_number} for crl in lists.values())
    other = read(api.get(f"{base}/{(shard + 1) % authority.crl_shards}"))
    assert serials_of(other) == set()

    own = lists[f"/{shard}"].extensions.get_extension_for_class(x509.IssuingDistributionPoint)
    indicator = lists["/delta"].extensions.get_extension_for_class(x509.DeltaCRLIndicator)
    numbers = {number_of(crl) for crl in lists.values()}
    assert own.critical
    assert [name.value for name in own.value.full_name or ()] == [point_of(certificate)]
    assert (indicator.critical, indicator.value.crl_number, numbers) == (True, 1, {2})
    for part in ("", f"/{shard}", "/delta"):
        assert outside.pkilint_crl(api.get(base + part).content) == []


def test_openssl_accepts_the_shard_for_its_certificates_only(
    api: ApiClient, tenant: Tenant, tmp_path: Path
) -> None:
    certificate = make_certificate(make_agent(tenant))
    authority, shard = certificate.authority, certificate.crl_shard
    assert shard is not None
    (tmp_path / "ca").write_text(api.get("/v1/ca", Accept="text/plain").content.decode())
    (tmp_path / "leaf").write_text(certificate.certificate_pem)
    verdicts: list[list[str | Path]] = []
    for number in (shard, (shard + 1) % authority.crl_shards):
        path = tmp_path / f"{number}.crl"
        path.write_bytes(api.get(f"/v1/crl/{authority.serial_number}/{number}").content)
        verdicts.append(["-crl_check", "-CAfile", tmp_path / "ca", "-CRLfile", path, tmp_path / "leaf"])

    assert outside.openssl("verify", "-x509_strict", *verdicts[0])
    assert "scope" in outside.openssl_refusal("verify", "-x509_strict", *verdicts[1])


@pytest.mark.parametrize("part", ["16", "-1", "01", "delta2", "x", "%D9%A1", "999999"])
def test_other_parts_are_404(api: ApiClient, authority: CertificateAuthority, part: str) -> None:
    answer = api.get(f"/v1/crl/{authority.serial_number}/{part}")

    assert (answer.status_code, answer.json()) == (404, {"error": "Revocation list not found"})


def test_root_has_no_delta_and_a_first_list_neither(api: ApiClient, authority: CertificateAuthority) -> None:
    assert authority.parent is not None

    assert api.get(f"/v1/crl/{authority.parent.serial_number}/delta").status_code == 404
    assert api.get(f"/v1/crl/{authority.serial_number}/delta").status_code == 503


def test_only_touched_shards_are_made_again(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)

    publish_now(certificate.authority)

    second = RevocationList.objects.filter(authority=certificate.authority, number=2)
    assert set(second.values_list("scope", flat=True)) == {"full", "delta", f"shard-{certificate.crl_shard}"}


def test_head_and_304_read_no_octets(
    api: ApiClient, authority: CertificateAuthority, django_assert_num_queries: Any
) -> None:
    answer, pem = api.get("/v1/crl"), api.get("/v1/crl", Accept="text/plain")
    RevocationListPart.objects.all().delete()

    head = api.head("/v1/crl")
    unchanged = api.get("/v1/crl", If_None_Match=answer["ETag"])

    assert head["Content-Length"] == str(len(answer.content))
    assert api.head("/v1/crl", Accept="text/plain")["Content-Length"] == str(len(pem.content))
    assert (head.status_code, unchanged.status_code) == (200, 304)


def test_lists_of_a_ca_without_shards_name_their_address(
    api: ApiClient, tenant: Tenant, settings: Settings
) -> None:
    settings.CRL_SHARDS = 0
    authorities.bootstrap(now=now())
    certificate = make_revoked_certificate(tenant)

    publish_now(certificate.authority)

    crl = read(api.get("/v1/crl"))
    point = crl.extensions.get_extension_for_class(x509.IssuingDistributionPoint).value
    assert [name.value for name in point.full_name or ()] == [point_of(certificate)]
    assert certificate.crl_shard is None
    certificate.authority.refresh_from_db()
    assert list_audit.findings(certificate.authority, now()) == []


def test_round_that_was_cut_short_is_made_up_for(tenant: Tenant, authority: CertificateAuthority) -> None:
    certificate = make_revoked_certificate(tenant)
    CertificateAuthority.objects.filter(id=authority.id).update(crl_number=2)
    Certificate.objects.filter(id=certificate.id).update(first_crl_number=2)

    published = publish_now(authority)

    assert published is not None
    assert (published.number, published.entry_count) == (3, 1)
    shard = RevocationList.objects.latest_of(authority, f"shard-{certificate.crl_shard}")
    assert (shard.number, shard.entry_count) == (3, 1)
    assert publish_now(authority) is None


def test_lists_can_be_made_again_after_the_hsm_failed(authority: CertificateAuthority) -> None:
    working = authority.key_uri
    CertificateAuthority.objects.filter(id=authority.id).update(key_uri="pkcs11:token=service-live;id=%00")

    with pytest.raises(KeyNotFound):
        publish_now(authority, force=True)

    CertificateAuthority.objects.filter(id=authority.id).update(key_uri=working)
    assert publish_now(authority, force=True) is not None


def test_database_refuses_numbers_that_do_not_rise(authority: CertificateAuthority) -> None:
    publish_now(authority, force=True)
    newest = RevocationList.objects.latest_of(authority)

    for number in (newest.number, newest.number - 1):
        newest.id, newest.number = new_id(), number
        with pytest.raises(IntegrityError, match="only rises"), environments.atomic():
            newest.save(force_insert=True)
    with pytest.raises(IntegrityError, match="only rises"), environments.atomic():
        CertificateAuthority.objects.filter(id=authority.id).update(crl_number=0)


def test_audit_notices_what_the_lists_do_not_say(tenant: Tenant) -> None:
    restated, forgotten, lost = [make_revoked_certificate(tenant) for _ in range(3)]
    rows, authority = Certificate.objects, lost.authority
    rows.filter(id=lost.id).update(first_crl_number=9)
    publish_now(authority)
    authority.refresh_from_db()
    rows.filter(id=restated.id).update(revocation_code="superseded")
    rows.filter(id=forgotten.id).update(first_crl_number=None, revoked_at=now() - timedelta(minutes=2))
    rows.filter(id=lost.id).update(first_crl_number=authority.crl_number)
    full = f"full #{authority.crl_number}"

    found = "\n".join(list_audit.findings(authority, now()))

    assert f"{full}: misstates 1 certificates: {restated.serial_number}" in found
    assert f"{full}: should not list 1 certificates: {forgotten.serial_number}" in found
    assert f"{full}: lacks 1 certificates: {lost.serial_number}" in found
    assert "1 revocations have been on no list" in found
    with pytest.raises(SystemExit) as ended:
        call_command("crl_check", stdout=io.StringIO())
    assert ended.value.code == 6


def test_audit_reads_the_newest_list_of_each_kind_once(tenant: Tenant) -> None:
    for _ in range(3):
        certificate = make_revoked_certificate(tenant)
        publish_now(certificate.authority)
    rows, authority = RevocationList.objects, certificate.authority
    authority.refresh_from_db()
    assert rows.filter(authority=authority, scope="delta").count() == 3
    Certificate.objects.filter(id=certificate.id).update(revocation_code="superseded")

    found = list_audit.findings(authority, now())

    shard = f"shard-{certificate.crl_shard}"
    assert sorted(one.partition(" ")[0] for one in found) == sorted(["delta", "full", shard])


def test_audit_notices_age_and_forgery(owned: None, authority: CertificateAuthority) -> None:
    full = RevocationList.objects.latest_of(authority)
    later = list_audit.findings(authority, full.next_update)
    aged = list_audit.findings(authority, full.this_update + timedelta(hours=20))
    der = bytearray(full.der)
    der[-100] ^= 1
    full.parts.update(body=bytes(der))

    assert f"full #{full.number}: is past its next update" in later
    assert f"full #{full.number}: should have been renewed by now" in aged
    assert list_audit.findings(authority, now()) == [f"full #{full.number}: the signature is not the CA's"]
    full.parts.update(body=b"nonsense")
    assert list_audit.findings(authority, now()) == [f"full #{full.number}: can't be read"]


def test_lists_are_shown_by_scope(authority: CertificateAuthority) -> None:
    shown = run("crl_show")

    shards = [f"shard-{number}" for number in range(authority.crl_shards)]
    assert len(shown) == 2 + len(shards)
    assert [item["scope"] for item in shown if item["scope"] not in {"full", "delta"}] == shards
    assert {(item["number"], item["entries"]) for item in shown if item["scope"] == "shard-3"} == {(1, 0)}
