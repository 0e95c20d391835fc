"""On Citus a look-up by serial number asks the shard that the number names, and all for what is not there.

The statements are plain SQL: what they find is tested without Citus, too.
"""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from cryptography.x509 import ocsp
from django.db import connections
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from agents.tests.factories import make_agent
from certificates import services
from certificates.errors import CertificateNotFound
from certificates.models import Certificate
from certificates.pki.serials import bucket_in, format_serial, new_serial
from certificates.public import known_tenants
from certificates.public.endpoints import VERIFY_CERTIFICATE, VerifyRequest
from certificates.public.verification import Verification, first_query
from certificates.tests.factories import make_certificate
from certificates.tests.test_ocsp import question
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.stores.hash_ranges import bucket_of
from compliance.tenancy.models import Tenant
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.citus import on_citus

LIVE = Environment.LIVE


@pytest.fixture(autouse=True)
def process(settings: Settings) -> Iterator[None]:
    """A process on Citus that has met no tenant."""
    settings.DATABASE_CITUS = True
    known_tenants.forget()
    yield
    known_tenants.forget()


@pytest.fixture
def certificate(tenant: Tenant) -> Certificate:
    return make_certificate(make_agent(tenant))


@pytest.fixture
def old_certificate(tenant: Tenant) -> Certificate:
    """A certificate from before serial numbers named a bucket."""
    made = make_certificate(make_agent(tenant))
    made.serial_number = format_serial(new_serial(LIVE, bucket=bucket_of(tenant.id) ^ 1))
    made.save(update_fields=["serial_number"])
    return made


def verified(certificate: Certificate) -> list[str]:
    """Verify the certificate; return the statements that it took."""
    with CaptureQueriesContext(connections["default"]) as captured:
        found = services.verify(serial=certificate.serial_number, now=now())

    assert found.certificate.pk == certificate.pk
    return [query["sql"] for query in captured.captured_queries]


def names_tenants(statements: list[str]) -> list[bool]:
    return ["tenant_id = ANY($2)" in statement for statement in statements]


def test_certificates_name_the_bucket_of_their_tenant(certificate: Certificate, tenant: Tenant) -> None:
    assert bucket_in(int(certificate.serial_number, 16)) == bucket_of(tenant.id)


def test_first_look_up_asks_all_and_the_next_names_the_tenant(
    certificate: Certificate, tenant: Tenant
) -> None:
    assert names_tenants(verified(certificate)) == [False]
    assert names_tenants(verified(certificate)) == [True]
    assert names_tenants(verified(make_certificate(make_agent(tenant)))) == [True]


def test_older_serial_numbers_are_found_wherever_they_point(old_certificate: Certificate) -> None:
    serial = int(old_certificate.serial_number, 16)
    somebody = next(one for one in iter(uuid4, None) if bucket_of(one) == bucket_in(serial))
    known_tenants.learn([(serial, somebody)], LIVE)

    assert names_tenants(verified(old_certificate)) == [True, False]
    assert known_tenants.named_by([serial], LIVE) == {somebody}


def test_serial_numbers_that_nobody_has_are_not_found(certificate: Certificate, tenant: Tenant) -> None:
    verified(certificate)
    unknown = format_serial(new_serial(LIVE, bucket=bucket_of(tenant.id)))

    with pytest.raises(CertificateNotFound):
        services.verify(serial=unknown, now=now())


def test_look_up_without_citus_is_one_statement(certificate: Certificate, settings: Settings) -> None:
    settings.DATABASE_CITUS = False

    for _ in range(2):
        assert names_tenants(verified(certificate)) == [False]


def test_look_ups_together_find_known_and_new_tenants(certificate: Certificate) -> None:
    verified(certificate)
    both = (certificate, make_certificate(make_agent(make_tenant())))
    questions = [VerifyRequest(int(one.serial_number, 16), now(), None) for one in both]

    found = VERIFY_CERTIFICATE.work(questions)

    assert [one.certificate.pk for one in found if isinstance(one, Verification)] == [one.pk for one in both]


def test_environments_know_tenants_apart(certificate: Certificate) -> None:
    verified(certificate)

    assert known_tenants.named_by([int(certificate.serial_number, 16)], Environment.TEST) == set()


def test_bucket_keeps_the_tenants_met_last() -> None:
    serial = new_serial(LIVE, bucket=7)
    crowd = [one for one in (UUID(int=number) for number in range(1 << 16)) if bucket_of(one) == 7]

    for one in crowd:
        known_tenants.learn([(serial, one), (serial, one)], LIVE)

    known = known_tenants.MOST_OF_A_BUCKET
    assert known_tenants.named_by([serial], LIVE) == set(crowd[-known:])


def ocsp_status(certificate: Certificate) -> ocsp.OCSPCertStatus:
    request = question(certificate, serial=int(certificate.serial_number, 16))
    return ocsp.load_der_ocsp_response(
        services.answer_ocsp(request=request, now=now()).der
    ).certificate_status


def test_ocsp_finds_certificates_of_new_and_known_tenants(certificate: Certificate, tenant: Tenant) -> None:
    first, second = ocsp_status(certificate), ocsp_status(certificate)

    assert (first, second) == (ocsp.OCSPCertStatus.GOOD, ocsp.OCSPCertStatus.GOOD)
    assert known_tenants.named_by([int(certificate.serial_number, 16)], LIVE) == {tenant.id}


def test_ocsp_finds_older_serial_numbers(old_certificate: Certificate) -> None:
    assert ocsp_status(old_certificate) is ocsp.OCSPCertStatus.GOOD


@on_citus
def test_known_tenant_is_looked_up_in_one_shard(certificate: Certificate) -> None:
    verified(certificate)
    asked = first_query({int(certificate.serial_number, 16)}, LIVE)

    plan = "\n".join(line for (line,) in sql.asked(f"EXPLAIN {asked.text}", asked.params))

    assert "$2" in asked.text
    assert "Task Count: 1\n" in plan
