"""The lists that the service publishes: full, by shard and as deltas, alone and combined."""

from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings

from agentid import Client
from agentid.client.generated.results import Certificate
from agentid.verify import Reason, RevocationLists, TrustedAuthorities, VerifiedCertificate
from certificates.lists.crl import DELTA, CrlWindow, ListScope, build_crl
from certificates.models import Certificate as StoredCertificate
from certificates.models import CertificateAuthority
from certificates.pki.reasons import encode_entry
from compliance.core.clock import now as service_now
from compliance.keys.registry import rsa_private_key
from tests.verify.test_certificates import check, publish, reason_of

FULL = "full"


@pytest.fixture
def certificate(own: Certificate) -> Certificate:
    return own


@pytest.fixture
def found(certificate: Certificate, trusted: TrustedAuthorities) -> VerifiedCertificate:
    """The certificate, verified but for its revocation; on no list."""
    publish()
    return check(certificate, trusted)


@pytest.fixture
def authority(found: VerifiedCertificate) -> CertificateAuthority:
    return StoredCertificate.objects.get(serial_number=found.serial_number).authority


def shard_of(found: VerifiedCertificate) -> str:
    """The last segment of the address that the certificate names."""
    points = found.certificate.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    assert points[0].full_name is not None
    return urlsplit(str(points[0].full_name[0].value)).path.rpartition("/")[2]


def published(client: Client, found: VerifiedCertificate, part: str) -> bytes:
    serial = f"{found.issuer.serial_number:040x}"
    return client.authorities.crl_of(serial) if part == FULL else client.authorities.crl_part(serial, part)


def signed(
    authority: CertificateAuthority,
    *entries: bytes,
    number: int,
    base: int | None = None,
    ages: timedelta = timedelta(),
    url: str | None = None,
) -> bytes:
    """A list that the CA really signed; `ages` moves its dates back."""
    this_update = service_now().replace(microsecond=0) - ages
    window = CrlWindow(number, this_update, this_update + timedelta(hours=1))
    scope = ListScope(DELTA if base is not None else FULL, url, base_number=base)
    issuer, key = authority.as_issuer, rsa_private_key(authority.key_uri)
    return build_crl(list(entries), window=window, issuer=issuer, key=key, scope=scope)


def number_of(octets: bytes) -> int:
    return x509.load_der_x509_crl(octets).extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


def test_shard_tells_of_its_certificates_only(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities, found: VerifiedCertificate
) -> None:
    own = shard_of(found)
    other = str((int(own) + 1) % settings.CRL_SHARDS)
    check(certificate, trusted, RevocationLists.of(published(client, found, own)))

    client.certificates.revoke(certificate.id, reason="keyCompromise")
    publish()
    shard, neighbour = (published(client, found, part) for part in (own, other))

    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(shard))) is Reason.REVOKED
    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(neighbour))) is Reason.NOT_COVERED


def test_delta_adds_to_the_list_before_it(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities, found: VerifiedCertificate
) -> None:
    full, shard = (published(client, found, part) for part in (FULL, shard_of(found)))
    client.certificates.revoke(certificate.id, reason="keyCompromise")
    publish()
    delta = published(client, found, DELTA)

    check(certificate, trusted, RevocationLists.of(full))
    for each in (RevocationLists.of(*given) for given in ((full, delta), (delta, full), (shard, delta))):
        assert reason_of(partial(check, certificate, trusted, each)) is Reason.REVOKED
    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(delta))) is Reason.NOT_COVERED


def test_delta_ends_a_hold_on_the_list_that_it_continues(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities, found: VerifiedCertificate
) -> None:
    client.agents.suspend(certificate.agent_id, reason="looked at")
    publish()
    full, shard = (published(client, found, part) for part in (FULL, shard_of(found)))
    client.agents.reinstate(certificate.agent_id, reason="nothing found")
    publish()
    delta = published(client, found, DELTA)

    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(full))) is Reason.REVOKED
    check(certificate, trusted, RevocationLists.of(full, delta))
    # A shard has another scope than the delta (RFC 5280 §5.2.4).
    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(shard, delta))) is Reason.REVOKED
    check(certificate, trusted, RevocationLists.of(shard, published(client, found, FULL)))


def test_delta_of_a_later_base_only_revokes(
    client: Client,
    certificate: Certificate,
    trusted: TrustedAuthorities,
    found: VerifiedCertificate,
    authority: CertificateAuthority,
) -> None:
    full = published(client, found, FULL)
    serial, number = found.certificate.serial_number, number_of(full)
    held, revoked, ended = (
        encode_entry(serial, service_now(), reason)
        for reason in (
            x509.ReasonFlags.certificate_hold,
            x509.ReasonFlags.key_compromise,
            x509.ReasonFlags.remove_from_crl,
        )
    )
    listed = signed(authority, held, number=number)
    gone, back = (signed(authority, each, number=number + 3, base=number + 2) for each in (revoked, ended))

    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(full, gone))) is Reason.REVOKED
    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(listed, back))) is Reason.REVOKED
    continuing = signed(authority, ended, number=number + 1, base=1)
    check(certificate, trusted, RevocationLists.of(listed, continuing))


def test_stale_and_changed_deltas_are_refused(
    client: Client,
    certificate: Certificate,
    trusted: TrustedAuthorities,
    found: VerifiedCertificate,
    authority: CertificateAuthority,
) -> None:
    full, delta = (published(client, found, part) for part in (FULL, DELTA))
    old = signed(authority, number=number_of(full) + 1, base=1, ages=timedelta(hours=2))
    spoilt = delta[:-1] + bytes([delta[-1] ^ 1])
    elsewhere = signed(authority, number=number_of(full) + 1, base=1, url="https://elsewhere.example/crl")

    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(full, old))) is Reason.STALE
    assert reason_of(lambda: check(certificate, trusted, RevocationLists.of(full, spoilt))) is (
        Reason.INVALID_SIGNATURE
    )
    # One of other certificates says nothing of this one.
    check(certificate, trusted, RevocationLists.of(full, elsewhere))


def test_lists_are_read_as_pem_too(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities, found: VerifiedCertificate
) -> None:
    pem = x509.load_der_x509_crl(published(client, found, FULL)).public_bytes(Encoding.PEM)

    check(certificate, trusted, RevocationLists.of(pem))
