"""`GET /v1/crl` and `/v1/ca`: what verifiers fetch, and how the lists come to be."""

from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.db import IntegrityError

from certificates.lists.publication import KEPT_BODIES, publish
from certificates.models import Certificate, CertificateAuthority, RevocationList
from certificates.pki.serials import format_serial, new_serial
from certificates.tests.factories import make_authorities, make_revoked_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR

DER = "application/pkix-crl"


def publish_now(authority: CertificateAuthority) -> RevocationList | None:
    return publish(authority_id=authority.id, actor=ACTOR, now=now())


def read(answer: Any) -> x509.CertificateRevocationList:
    assert answer.status_code == 200
    return x509.load_der_x509_crl(answer.content)


def test_list_is_served_as_der_and_as_pem(api: ApiClient, authority: CertificateAuthority) -> None:
    der, pem = api.get("/v1/crl", Accept=DER), api.get("/v1/crl", Accept="text/plain")

    assert (der["Content-Type"], pem["Content-Type"]) == (DER, "text/plain; charset=utf-8")
    assert pem.content.startswith(b"-----BEGIN X509 CRL-----\n")
    assert x509.load_pem_x509_crl(pem.content) == read(der)
    issuer = x509.load_der_x509_certificate(bytes(authority.certificate_der))
    assert read(der).is_signature_valid(issuer.public_key())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", DER),
        ("*/*", DER),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", DER),
        ("application/json", DER),
        ("text/plain;q=0.5, application/pkix-crl", DER),
        ("text/plain, */*;q=0.1", "text/plain; charset=utf-8"),
        ("text/plain;q=0", DER),
        ("nonsense;;;q=x", DER),
    ],
)
def test_accept_chooses_and_der_is_the_default(
    api: ApiClient, authority: CertificateAuthority, accept: str, content_type: str
) -> None:
    assert api.get("/v1/crl", Accept=accept)["Content-Type"] == content_type


def test_nothing_is_published_when_nothing_is_due(tenant: Tenant, authority: CertificateAuthority) -> None:
    assert publish_now(authority) is None
    make_revoked_certificate(tenant)
    make_revoked_certificate(tenant)

    assert publish_now(authority) is not None
    assert publish_now(authority) is None


def test_list_is_renewed_at_half_its_life(authority: CertificateAuthority) -> None:
    first = RevocationList.objects.latest_of(authority)
    half = first.this_update + (first.next_update - first.this_update) / 2

    assert publish(authority_id=authority.id, actor=ACTOR, now=half - timedelta(seconds=1)) is None
    renewed = publish(authority_id=authority.id, actor=ACTOR, now=half)

    assert renewed is not None
    assert renewed.next_update > first.next_update


def test_expired_certificate_stays_one_period_then_leaves(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)
    number = int(certificate.serial_number, 16)

    def listed_at(moment: Any) -> bool:
        made = publish(authority_id=certificate.authority_id, actor=ACTOR, now=moment, force=True)
        assert made is not None
        found = x509.load_der_x509_crl(bytes(made.der)).get_revoked_certificate_by_serial_number(number)
        return found is not None

    assert listed_at(certificate.expires_at + timedelta(hours=23))
    assert not listed_at(certificate.expires_at + timedelta(hours=25))


def test_only_the_newest_lists_keep_their_octets(authority: CertificateAuthority) -> None:
    for _ in range(KEPT_BODIES + 1):
        publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True)

    lists = RevocationList.objects.filter(authority=authority, scope="full").order_by("-number")

    assert [bool(published.der) for published in lists] == [True] * KEPT_BODIES + [False] * 2
    authority.refresh_from_db()
    assert lists[0].number == authority.crl_number == authority.crl_completed


def test_rows_go_with_their_lists_end(authority: CertificateAuthority) -> None:
    for days in (0, 0, 2):
        moment = now() + timedelta(days=days)
        publish(authority_id=authority.id, actor=ACTOR, now=moment, force=True)

    lists = RevocationList.objects.filter(authority=authority, scope="full")
    assert lists.count() == KEPT_BODIES
    assert not RevocationList.objects.filter(authority=authority, scope="delta").exists()


def test_before_the_first_list_it_is_503(api: ApiClient, authority: CertificateAuthority) -> None:
    RevocationList.objects.filter(authority=authority).delete()

    answer = api.get("/v1/crl")

    assert answer.status_code == 503
    assert "not been generated" in answer.json()["error"]
    assert answer["Retry-After"]


def test_without_any_ca_it_is_503(api: ApiClient) -> None:
    answer = api.get("/v1/crl")

    assert (answer.status_code, set(answer.json())) == (503, {"error"})


def test_unchanged_list_is_304(api: ApiClient, tenant: Tenant, authority: CertificateAuthority) -> None:
    first = api.get("/v1/crl")

    by_tag = api.get("/v1/crl", If_None_Match=first["ETag"])
    by_date = api.get("/v1/crl", If_Modified_Since=first["Last-Modified"])
    other_form = api.get("/v1/crl", If_None_Match=first["ETag"], Accept="text/plain")
    make_revoked_certificate(tenant)
    publish_now(authority)
    changed = api.get("/v1/crl", If_None_Match=first["ETag"])

    assert [by_tag.status_code, by_date.status_code, changed.status_code] == [304, 304, 200]
    assert other_form.status_code == 200
    assert first["Vary"] == "Accept"
    assert "max-age" in first["Cache-Control"]
    assert by_tag.content == b""


def test_environments_have_their_own_lists(
    api: ApiClient, tenant: Tenant, authority: CertificateAuthority
) -> None:
    with environments.use(Environment.TEST):
        sandbox = make_authorities()
        revoked = make_revoked_certificate(tenant)
        publish_now(sandbox)
    number = int(revoked.serial_number, 16)

    assert read(api.get("/v1/crl")).get_revoked_certificate_by_serial_number(number) is None
    found = read(api.get("/v1/crl?environment=test"))
    assert found.get_revoked_certificate_by_serial_number(number) is not None
    assert api.get("/v1/crl?environment=prod").status_code == 400


def test_one_ca_is_served_as_der_and_as_pem(api: ApiClient, authority: CertificateAuthority) -> None:
    der = api.get(f"/v1/ca/{authority.serial_number}")
    pem = api.get(f"/v1/ca/{authority.serial_number}", Accept="text/plain")

    assert der.content == bytes(authority.certificate_der)
    assert x509.load_pem_x509_certificate(pem.content).public_bytes(Encoding.DER) == der.content
    assert api.get(f"/v1/ca/{authority.serial_number}", If_None_Match=der["ETag"]).status_code == 304


def test_chain_is_served_as_pem_and_the_issuing_ca_as_der(
    api: ApiClient, authority: CertificateAuthority
) -> None:
    described = api.get("/v1/ca").json()["data"]

    assert api.get("/v1/ca", Accept="text/plain").content.decode() == described["chain_pem"]
    assert api.get("/v1/ca", Accept="application/x-pem-file").content.decode() == described["chain_pem"]
    assert api.get("/v1/ca", Accept="application/pkix-cert").content == bytes(authority.certificate_der)
    assert api.get("/v1/ca", Accept="text/html, */*;q=0.8").json()["data"] == described
    assert api.get("/v1/ca?environment=test").status_code == 503


@pytest.mark.parametrize("kind", ["ca", "crl"])
def test_unknown_ca_is_404(api: ApiClient, authority: CertificateAuthority, kind: str) -> None:
    for serial in ("nonsense", format_serial(new_serial(Environment.TEST))):
        answer = api.get(f"/v1/{kind}/{serial}")
        assert (answer.status_code, answer.json()) == (404, {"error": "Certificate authority not found"})


def test_only_one_ca_of_a_role_is_in_service(authority: CertificateAuthority) -> None:
    in_service = CertificateAuthority.objects.in_service()

    assert sorted(in_service.values_list("role", flat=True)) == ["issuing", "root"]
    twin = CertificateAuthority.objects.issuing()
    twin.id, twin.serial_number, twin.key_uri = new_id(), "5" * 40, "pkcs11:token=t;id=%01"
    with pytest.raises(IntegrityError, match="certificates_one_ca_in_service"):
        twin.save(force_insert=True)


def test_unpublished_certificates_of_an_outage_are_not_due_forever(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)
    Certificate.objects.filter(id=certificate.id).update(
        issued_at=now() - timedelta(days=9), expires_at=now() - timedelta(days=2)
    )

    assert publish_now(certificate.authority) is None
