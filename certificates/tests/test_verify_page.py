"""`/verify`: the page for people without an account."""

import re
from collections.abc import Callable
from ssl import DER_cert_to_PEM_cert
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.tests.factories import (
    make_certificate,
    make_expired_certificate,
    make_held_certificate,
    make_past_end,
    make_revoked_certificate,
)
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy.models import Tenant

FORM = "application/x-www-form-urlencoded"


def ask(api: ApiClient, text: str) -> str:
    answer = api.raw(
        "POST", "/verify", urlencode({"certificate": text}, errors="surrogatepass").encode(), FORM
    )
    assert answer.status_code == 200, answer.content
    assert answer["Cache-Control"] == "no-store"
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    return str(answer.content, "utf-8")


def copy_of(certificate: Certificate) -> str:
    """A certificate of a stranger's own key under the serial number and name of ours."""
    ours = x509.load_pem_x509_certificate(certificate.certificate_pem.encode())
    builder = x509.CertificateBuilder(
        ours.issuer,
        ours.subject,
        ec.generate_private_key(ec.SECP256R1()).public_key(),
        ours.serial_number,
        ours.not_valid_before_utc,
        ours.not_valid_after_utc,
    )
    forged = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return forged.public_bytes(Encoding.PEM).decode()


def test_a_valid_certificate_by_serial_number_and_pem(api: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant, metadata={"permitted_actions": ["orders.read"]}))

    for text in (
        certificate.serial_number,
        certificate.certificate_pem,
        str(int(certificate.serial_number, 16)),
        f"serial={certificate.serial_number.upper()}",  # openssl x509 -serial
        f"Serial Number:\n    {':'.join(re.findall('..', certificate.serial_number))}",  # -text
        " ".join(re.findall("....", certificate.serial_number)),
    ):
        page = ask(api, text)
        assert "<h2>Valid</h2>" in page
        assert "orders.read" in page
        assert tenant.name in page


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (make_held_certificate, "On hold"),
        (make_revoked_certificate, "Revoked"),
        (make_expired_certificate, "Expired"),
    ],
)
def test_a_certificate_that_does_not_stand(
    api: ApiClient, tenant: Tenant, make: Callable[..., Certificate], verdict: str
) -> None:
    assert f"<h2>{verdict}</h2>" in ask(api, make(tenant).serial_number)


def test_a_hold_that_outlived_its_certificate_says_nothing_of_the_agent(
    api: ApiClient, tenant: Tenant
) -> None:
    certificate = make_held_certificate(tenant)
    make_past_end(certificate)

    page = ask(api, certificate.serial_number)

    assert "<h2>Revoked</h2>" in page
    assert "The agent is suspended" not in page


def test_a_test_certificate_is_named_as_one(api: ApiClient, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        serial = make_certificate(make_agent(tenant)).serial_number

    assert "<h2>Valid in the test environment</h2>" in ask(api, serial)


def test_a_copy_under_a_serial_number_of_ours_is_forged(api: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))

    page = ask(api, copy_of(certificate))

    assert "<h2>Forged</h2>" in page
    assert tenant.name not in page


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("4" * 40, "Unknown"),
        ("<script>alert(1)</script>", "Unknown"),
        ("", "Not read"),
        (" \n", "Not read"),
        ("\x00\ud7ff", "Unknown"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "Not read"),
        ("-----BEGIN CERTIFICATE-----" * 1000, "Not read"),
    ],
)
def test_anything_else_is_answered_in_words(api: ApiClient, tenant: Tenant, text: str, verdict: str) -> None:
    page = ask(api, text)

    assert f"<h2>{verdict}</h2>" in page
    assert "<script" not in page


def test_a_certificate_of_a_version_that_is_none_is_not_read(api: ApiClient, tenant: Tenant) -> None:
    ours = x509.load_pem_x509_certificate(make_certificate(make_agent(tenant)).certificate_pem.encode())
    der = ours.public_bytes(Encoding.DER).replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x01", 1)

    page = ask(api, DER_cert_to_PEM_cert(der))

    assert "<h2>Not read</h2>" in page


def test_a_person_is_told_of_a_refusal_on_the_page_and_a_program_in_json(
    api: ApiClient, settings: Any
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "verify": 1}

    by_program = api.raw("POST", "/verify", b'{"certificate": "4"}')
    by_person = api.get("/verify", Accept="text/html,*/*;q=0.8")

    assert (by_program.status_code, by_program.json()) == (415, {"error": f"Content-Type must be {FORM}"})
    assert (by_person.status_code, by_person["Content-Type"]) == (429, "text/html; charset=utf-8")
    assert "<h2>Not checked</h2>" in by_person.content.decode()
    assert int(by_person["Retry-After"]) > 0
    assert list(api.get("/verify").json()) == ["error"]
