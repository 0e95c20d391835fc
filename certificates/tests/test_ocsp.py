"""`/v1/ocsp`, as openssl and a second reader see it."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from asn1crypto import ocsp as asn1
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import HealthCheck, given, settings, strategies as st

from agents.tests.factories import make_agent
from certificates.models import Certificate, CertificateAuthority, OcspResponder
from certificates.ocsp import responders
from certificates.pki.serials import new_serial
from certificates.tests import outside
from certificates.tests.factories import (
    make_authorities,
    make_certificate,
    make_held_certificate,
    make_revoked_certificate,
    revoke_certificate,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.keys.base import KeyNotFound
from compliance.keys.registry import backend_for
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR

Statuses = ocsp.OCSPResponseStatus


def leaf_of(certificate: Certificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate.certificate_pem.encode())


def issuer_of(certificate: Certificate) -> x509.Certificate:
    return x509.load_der_x509_certificate(bytes(certificate.authority.certificate_der))


def question(
    certificate: Certificate,
    *,
    serial: int | None = None,
    hash_algorithm: hashes.HashAlgorithm | None = None,
    nonce: bytes | None = None,
) -> bytes:
    issuer = issuer_of(certificate)
    algorithm = hash_algorithm or hashes.SHA1()  # noqa: S303  (what most clients send)
    builder: Any = ocsp.OCSPRequestBuilder()
    if serial is None:
        builder = builder.add_certificate(leaf_of(certificate), issuer, algorithm)
    else:
        whole = ocsp.load_der_ocsp_request(question(certificate))
        builder = builder.add_certificate_by_hash(
            whole.issuer_name_hash, whole.issuer_key_hash, serial, algorithm
        )
    if nonce is not None:
        builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
    der: bytes = builder.build().public_bytes(Encoding.DER)
    return der


def ask(api: ApiClient, der: bytes) -> Any:
    answer = api.raw("POST", "/v1/ocsp", der, "application/ocsp-request")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/ocsp-response")
    return ocsp.load_der_ocsp_response(answer.content)


@pytest.fixture
def certificate(tenant: Tenant) -> Certificate:
    return make_certificate(make_agent(tenant))


def test_openssl_is_satisfied(api: ApiClient, tenant: Tenant, tmp_path: Path) -> None:
    good, revoked = make_certificate(make_agent(tenant)), make_revoked_certificate(tenant)
    held = make_held_certificate(tenant)
    (tmp_path / "chain").write_text(api.get("/v1/ca", Accept="text/plain").content.decode())
    issuer = outside.write_pem(tmp_path / "issuer", issuer_of(good))

    for certificate, verdict, reason in (
        (good, "good", ""),
        (revoked, "revoked", "keyCompromise"),
        (held, "revoked", "certificateHold"),
    ):
        leaf = outside.write_pem(tmp_path / certificate.serial_number, leaf_of(certificate))
        request, response = tmp_path / "request", tmp_path / "response"
        named: list[str | Path] = ["-issuer", issuer, "-cert", leaf]
        outside.openssl("ocsp", *named, "-reqout", request)
        answer = api.raw("POST", "/v1/ocsp", request.read_bytes(), "application/ocsp-request")
        response.write_bytes(answer.content)

        # Without -no_nonce it would put a new nonce beside that of the request it reads.
        checked: list[str | Path] = [
            "-CAfile",
            tmp_path / "chain",
            "-reqin",
            request,
            "-respin",
            response,
            "-no_nonce",
        ]
        found = outside.openssl("ocsp", *named, *checked, "-respin", response, "-no_intern")

        assert f"{leaf}: {verdict}" in found
        assert found.partition("Reason: ")[2].partition("\n")[0] == reason


def test_answer_says_how_the_certificate_stands(api: ApiClient, certificate: Certificate) -> None:
    before = ask(api, question(certificate))
    revoke_certificate(certificate, reason="superseded")

    after = ask(api, question(certificate, hash_algorithm=hashes.SHA256(), nonce=b"n" * 32))

    certificate.refresh_from_db()
    assert certificate.revoked_at is not None
    assert before.certificate_status is ocsp.OCSPCertStatus.GOOD
    assert before.serial_number == int(certificate.serial_number, 16)
    assert before.next_update_utc - before.this_update_utc == responders.ANSWER_LIFETIME
    assert after.certificate_status is ocsp.OCSPCertStatus.REVOKED
    assert after.revocation_reason is x509.ReasonFlags.superseded
    assert after.revocation_time_utc == certificate.revoked_at.replace(microsecond=0)
    assert after.extensions.get_extension_for_class(x509.OCSPNonce).value.nonce == b"n" * 32


def test_answer_is_signed_by_a_delegated_responder(api: ApiClient, certificate: Certificate) -> None:
    found = ask(api, question(certificate))

    (responder,) = found.certificates
    responder.verify_directly_issued_by(issuer_of(certificate))
    usage = responder.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.OCSP_SIGNING]
    assert responder.extensions.get_extension_for_class(x509.OCSPNoCheck)
    assert responder.not_valid_after_utc - now() < timedelta(days=7)
    responder.public_key().verify(
        found.signature, found.tbs_response_bytes, ec.ECDSA(found.signature_hash_algorithm)
    )
    assert outside.pkilint_certificate(responder) == []


def test_get_carries_the_request_in_its_address(api: ApiClient, certificate: Certificate) -> None:
    shared = api.get("/v1/ocsp/" + quote(base64.b64encode(question(certificate)).decode(), safe=""))
    own = api.get("/v1/ocsp/" + quote(base64.b64encode(question(certificate, nonce=b"1")).decode()))

    joined = api.get("/v1/ocsp//" + quote(base64.b64encode(question(certificate)).decode(), safe=""))
    posted = api.raw("POST", "/v1/ocsp/", question(certificate), "application/ocsp-request")

    for answer in (shared, own, joined, posted):
        assert ocsp.load_der_ocsp_response(answer.content).certificate_status is ocsp.OCSPCertStatus.GOOD
    assert "max-age" in shared["Cache-Control"]
    assert own["Cache-Control"] == "no-store"


def test_the_request_in_an_address_has_one_spelling(api: ApiClient, certificate: Certificate) -> None:
    text = base64.b64encode(
        next(der for der in (question(certificate, nonce=b"1" * n) for n in (1, 2)) if len(der) % 3)
    )
    spelled = text.decode().rstrip("=")
    padding = "=" * (len(text) - len(spelled))
    following = chr(ord(spelled[-1]) + 1)

    for other in (spelled, spelled[:-1] + following + padding, text.decode() + "="):
        answer = api.get("/v1/ocsp/" + quote(other, safe=""))
        assert ocsp.load_der_ocsp_response(answer.content).response_status.name == "MALFORMED_REQUEST"


def test_serials_never_issued_are_unknown(api: ApiClient, certificate: Certificate) -> None:
    for serial in (new_serial(Environment.LIVE), new_serial(Environment.TEST), 1):
        found = ask(api, question(certificate, serial=serial))
        assert found.certificate_status is ocsp.OCSPCertStatus.UNKNOWN


def test_certificates_of_other_cas_are_unauthorized(api: ApiClient, certificate: Certificate) -> None:
    request = asn1.OCSPRequest.load(question(certificate))
    request["tbs_request"]["request_list"][0]["req_cert"]["issuer_key_hash"] = b"\0" * 20

    found = ask(api, request.dump(force=True))

    assert found.response_status is Statuses.UNAUTHORIZED


def test_sandbox_certificates_are_answered_by_their_own_ca(api: ApiClient, tenant: Tenant) -> None:
    make_authorities()
    with environments.use(Environment.TEST):
        certificate = make_certificate(make_agent(tenant))
        request, issuer = question(certificate), issuer_of(certificate)

    found = ask(api, request)

    assert found.certificate_status is ocsp.OCSPCertStatus.GOOD
    found.certificates[0].verify_directly_issued_by(issuer)


@pytest.mark.parametrize("size", [0, 129])
def test_nonces_of_a_wrong_length_are_malformed(api: ApiClient, size: int, certificate: Certificate) -> None:
    assert ask(api, question(certificate, nonce=b"n" * size)).response_status is Statuses.MALFORMED_REQUEST


def test_bounds(api: ApiClient, certificate: Certificate) -> None:
    request = asn1.OCSPRequest.load(question(certificate))
    items = request["tbs_request"]["request_list"]
    items.append(items[0].copy())

    too_many = request.dump(force=True)
    too_long = b"0" * (responders.MAX_REQUEST + 1)
    refused = [
        b"",
        b"\x30\x00",
        b"nonsense",
        too_long,
        too_many,
        question(certificate)[:-1],
        question(certificate) + b"0",
    ]

    assert [ask(api, der).response_status for der in refused] == [Statuses.MALFORMED_REQUEST] * len(refused)
    for encoded in ("%00", "====", "a", "%E2%82%AC", "MAA%3D"):
        found = ocsp.load_der_ocsp_response(api.get(f"/v1/ocsp/{encoded}").content)
        assert found.response_status is Statuses.MALFORMED_REQUEST


@pytest.mark.parametrize(
    ("is_critical", "status"), [(True, Statuses.MALFORMED_REQUEST), (False, Statuses.SUCCESSFUL)]
)
def test_critical_extension_about_the_certificate_is_refused(
    api: ApiClient, tenant: Tenant, is_critical: bool, status: Statuses
) -> None:
    request = asn1.OCSPRequest.load(question(make_certificate(make_agent(tenant))))
    extension = {"extn_id": "1.3.6.1.4.1.55555.1", "critical": is_critical, "extn_value": b"\x05\x00"}
    request["tbs_request"]["request_list"][0]["single_request_extensions"] = [extension]

    assert ask(api, request.dump(force=True)).response_status is status


def test_mutilated_requests_are_answered_all_the_same(api: ApiClient, tenant: Tenant) -> None:
    sound = question(make_certificate(make_agent(tenant)), nonce=b"n" * 16)

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.integers(0, len(sound) - 1), st.integers(0, 255)), min_size=1, max_size=6))
    def check(changes: list[tuple[int, int]]) -> None:
        octets = bytearray(sound)
        for position, value in changes:
            octets[position] = value
        responders.answer(request=bytes(octets), now=now())

    check()


def test_without_a_responder_or_its_key_it_is_try_later(
    owned: None, api: ApiClient, certificate: Certificate
) -> None:
    OcspResponder.objects.update(key_uri="pkcs11:token=service-live;id=%00")
    lost = ask(api, question(certificate))
    OcspResponder.objects.all().delete()

    for found in (lost, ask(api, question(certificate))):
        assert found.response_status is Statuses.TRY_LATER


def test_responders_are_renewed_at_half_their_life_and_removed_with_their_keys(
    authority: CertificateAuthority,
) -> None:
    first = OcspResponder.objects.get()
    half = now() + responders.LIFETIME / 2
    counts = [responders.maintain(actor=ACTOR, now=moment) for moment in (now(), half, half)]

    second = OcspResponder.objects.filter(authority=authority).order_by("-created_at")[0]
    # The first one's key is shared with other tests of this run: let the second be the one that has expired.
    OcspResponder.objects.filter(id=first.id).delete()
    responders.maintain(actor=ACTOR, now=second.not_after + timedelta(minutes=11))

    assert counts == [0, 1, 0]
    assert not OcspResponder.objects.filter(id=second.id).exists()
    with pytest.raises(KeyNotFound):
        backend_for(Environment.LIVE).public_key(second.key_uri)
