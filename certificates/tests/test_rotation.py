"""Rotation: a new CA issues, the old one goes on telling what it has revoked."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import AuthorityInformationAccessOID
from django.conf import settings

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import authorities
from certificates.lists import publication
from certificates.models import AuthorityState, CertificateAuthority, RevocationList
from certificates.pki import MAX_LIFETIME
from certificates.pki.names import certificate_base_url
from certificates.querysets import LISTS_AFTER_RETIREMENT
from certificates.tests import outside
from certificates.tests.factories import make_authorities, make_certificate
from certificates.tests.test_commands import run
from certificates.tests.test_ocsp import leaf_of
from certificates.tests.test_tasks import lose_key
from compliance.core.clock import now
from compliance.core.errors import Conflict
from compliance.keys.base import KeyNotFound
from compliance.tests.client import ApiClient
from compliance.tests.threads import at_once
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorities, "CA_KEY_BITS", 2048)


def rotate(**options: bool) -> authorities.Rotation:
    return authorities.rotate(actor=ACTOR, now=now(), force=True, **options)


def loaded(authority: CertificateAuthority) -> x509.Certificate:
    return x509.load_der_x509_certificate(bytes(authority.certificate_der))


def parent_of(authority: CertificateAuthority) -> CertificateAuthority:
    assert authority.parent is not None
    return authority.parent


def test_new_ca_issues_and_the_old_one_still_revokes(
    api: ApiClient, client: ApiClient, tenant: Tenant, tmp_path: Path
) -> None:
    old = make_certificate(make_agent(tenant))

    rotation = rotate()
    new = make_certificate(make_agent(tenant))
    client.post(f"/v1/certificates/{old.id}/revoke", {"reason": "keyCompromise"})
    publication.publish_due(actor=ACTOR, now=now())

    assert (old.authority_id, new.authority_id) == (rotation.predecessor.id, rotation.successor.id)
    leaf_of(new).verify_directly_issued_by(loaded(rotation.successor))
    states = {
        item.serial_number: api.get(f"/v1/verify/{item.serial_number}").json()["data"]["status"]
        for item in (old, new)
    }
    assert states == {old.serial_number: "revoked", new.serial_number: "active"}
    lists = {ca.id: RevocationList.objects.latest_of(ca) for ca in (old.authority, new.authority)}
    assert [lists[item.authority_id].entry_count for item in (old, new)] == [1, 0]

    root = parent_of(rotation.successor)
    trusted: list[str | Path] = ["-CAfile", outside.write_pem(tmp_path / "root", loaded(root))]
    both = outside.write_pem(tmp_path / "both", loaded(old.authority), loaded(new.authority))
    crls: list[str | Path] = []
    for number, found in enumerate(lists.values()):
        (tmp_path / f"{number}.crl").write_bytes(bytes(found.der))
        crls += ["-CRLfile", tmp_path / f"{number}.crl"]
    for item in (old, new):
        outside.write_pem(tmp_path / item.serial_number, leaf_of(item))
    judge: list[str | Path] = ["verify", "-x509_strict", "-crl_check", *trusted, "-untrusted", both, *crls]
    assert outside.openssl(*judge, tmp_path / new.serial_number)
    assert "revoked" in outside.openssl_refusal(*judge, tmp_path / old.serial_number)
    assert outside.pkilint_certificate(loaded(rotation.successor)) == []


def test_every_address_in_every_certificate_resolves_to_der(api: ApiClient, tenant: Tenant) -> None:
    certificates = [make_certificate(make_agent(tenant))]
    rotate()
    certificates.append(make_certificate(make_agent(tenant)))
    issuing = [loaded(item.authority) for item in certificates]

    for certificate in [*map(leaf_of, certificates), *issuing]:
        access = certificate.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
        point = certificate.extensions.get_extension_for_class(x509.CRLDistributionPoints).value[0]
        assert point.full_name is not None
        for description in access:
            if description.access_method != AuthorityInformationAccessOID.CA_ISSUERS:
                continue
            found = fetch(api, description.access_location.value, "application/pkix-cert")
            certificate.verify_directly_issued_by(x509.load_der_x509_certificate(found))
        crl = x509.load_der_x509_crl(fetch(api, point.full_name[0].value, "application/pkix-crl"))
        assert crl.issuer == certificate.issuer


def fetch(api: ApiClient, url: str, content_type: str) -> bytes:
    assert url.startswith(certificate_base_url(settings.BASE_URL))
    answer = api.get(url.removeprefix(certificate_base_url(settings.BASE_URL)), Accept="*/*")
    assert (answer.status_code, answer["Content-Type"]) == (200, content_type)
    content: bytes = answer.content
    return content


def test_cas_are_listed_with_their_states(api: ApiClient, authority: CertificateAuthority) -> None:
    rotation = rotate()

    data = api.get("/v1/ca").json()["data"]

    assert [(item["role"], item["status"]) for item in data["certificates"]] == [
        ("issuing", "active"), ("issuing", "retiring"), ("root", "active"),
    ]  # fmt: skip
    assert data["certificates"][0]["serial_number"] == rotation.successor.serial_number
    assert data["certificates"][1]["serial_number"] == authority.serial_number
    assert data["chain_pem"] == data["certificates"][0]["pem"] + data["certificates"][2]["pem"]


def test_rotated_ca_signs_lists_until_its_last_certificate_is_long_past(
    authority: CertificateAuthority,
) -> None:
    rotate()
    authority.refresh_from_db()
    assert authority.retired_at is not None
    last = authority.retired_at + LISTS_AFTER_RETIREMENT

    for moment, state in ((last, "retiring"), (last + timedelta(seconds=1), "retired")):
        assert authority.state_at(moment) == state
        publishing = CertificateAuthority.objects.publishing(moment)
        assert publishing.filter(id=authority.id).exists() is (state == "retiring")
    assert authority.state_at(authority.not_after + timedelta(seconds=1)) == AuthorityState.EXPIRED
    assert LISTS_AFTER_RETIREMENT > MAX_LIFETIME


def test_command_run_twice_rotates_once(authority: CertificateAuthority) -> None:
    CertificateAuthority.objects.update(created_at=now() - timedelta(days=2))

    done = run("ca_rotate")
    with pytest.raises(SystemExit) as refused:
        run("ca_rotate")

    assert done["retired"] == authority.serial_number
    assert refused.value.code == 4
    assert CertificateAuthority.objects.issuing().serial_number == done["serial_number"]
    kinds = [entry.event_type for entry in AuditEntry.objects.filter(actor_id="ca_rotate").order_by("id")]
    assert sorted(kinds) == ["ca.created", "ca.rotated", "crl.published", "ocsp_responder.created"]


def test_command_without_a_ca_ends_with_3() -> None:
    with pytest.raises(SystemExit) as refused:
        run("ca_rotate")

    assert refused.value.code == 3


def test_rotation_that_fails_leaves_the_old_ca_in_service(authority: CertificateAuthority) -> None:
    root = parent_of(authority)
    lose_key(root)

    with pytest.raises(KeyNotFound):
        rotate()

    assert CertificateAuthority.objects.issuing().id == authority.id
    assert CertificateAuthority.objects.count() == 2


def test_new_root_on_demand_and_when_the_old_one_ends(authority: CertificateAuthority) -> None:
    CertificateAuthority.objects.filter(id=parent_of(authority).id).update(
        not_after=now() + timedelta(days=364)
    )

    with pytest.raises(Conflict, match="root CA ends"):
        rotate()
    rotation = rotate(with_root=True)

    root = parent_of(rotation.successor)
    assert root.id != authority.parent_id
    loaded(rotation.successor).verify_directly_issued_by(loaded(root))
    assert RevocationList.objects.filter(authority=root).exists()


def test_expired_issuing_ca_is_503_until_it_is_rotated(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)
    authority = make_authorities()
    CertificateAuthority.objects.filter(id=authority.id).update(not_after=now() - timedelta(seconds=1))

    refused = client.post(f"/v1/agents/{agent.id}/certify")
    rotate()
    certified = client.post(f"/v1/agents/{agent.id}/certify")

    assert refused.status_code == 503
    assert refused.json() == {"error": "The issuing CA has expired and must be rotated"}
    assert certified.status_code == 201


def test_one_of_several_rotations_at_once_takes_place(committed: None) -> None:
    make_authorities()
    CertificateAuthority.objects.update(created_at=now() - timedelta(days=2))
    before = CertificateAuthority.objects.count()

    outcomes = at_once(lambda: authorities.rotate(actor=ACTOR, now=now()))

    assert sorted(type(outcome) is Conflict for outcome in outcomes) == [False, True, True, True]
    assert CertificateAuthority.objects.count() == before + 1
