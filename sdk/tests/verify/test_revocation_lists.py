"""The lists that the service publishes: full, by shard and as deltas, alone and combined."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings

from agentid import Client
from agentid.client.generated.results import Certificate
from agentid.verify import NotValid, Reason, RevocationLists, TrustedAuthorities, VerifiedCertificate
from certificates.lists.crl import DELTA, CrlWindow, ListScope, build_crl
from certificates.models import Certificate as StoredCertificate, CertificateAuthority
from certificates.pki.reasons import encode_entry
from compliance.core.clock import now as service_now
from compliance.keys.registry import rsa_private_key
from tests.verify.test_certificates import check, publish

FULL = "full"


@pytest.fixture
def found(own: Certificate, trusted: TrustedAuthorities) -> VerifiedCertificate:
    """A certificate, verified but for its revocation; on no list."""
    publish()
    return check(own, trusted)


Judge = Callable[..., Reason | None]


@pytest.fixture
def judge(own: Certificate, trusted: TrustedAuthorities) -> Judge:
    """Say why the certificate is refused by lists, if it is."""

    def reason(*lists: bytes) -> Reason | None:
        try:
            check(own, trusted, RevocationLists.of(*lists))
        except NotValid as refused:
            return refused.reason
        return None

    return reason


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
    client: Client, own: Certificate, judge: Judge, found: VerifiedCertificate
) -> None:
    mine = shard_of(found)
    other = str((int(mine) + 1) % settings.CRL_SHARDS)
    assert judge(published(client, found, mine)) is None

    client.certificates.revoke(own.id, reason="keyCompromise")
    publish()
    shard, neighbour = (published(client, found, part) for part in (mine, other))

    assert judge(shard) is Reason.REVOKED
    assert judge(neighbour) is Reason.NOT_COVERED


def test_delta_adds_to_the_list_before_it(
    client: Client, own: Certificate, judge: Judge, found: VerifiedCertificate
) -> None:
    full, shard = (published(client, found, part) for part in (FULL, shard_of(found)))
    client.certificates.revoke(own.id, reason="keyCompromise")
    publish()
    delta = published(client, found, DELTA)

    assert judge(full) is None
    for lists in ((full, delta), (delta, full), (shard, delta)):
        assert judge(*lists) is Reason.REVOKED
    assert judge(delta) is Reason.NOT_COVERED


def test_delta_ends_a_hold_on_the_list_that_it_continues(
    client: Client, own: Certificate, judge: Judge, found: VerifiedCertificate
) -> None:
    client.agents.suspend(own.agent_id, reason="looked at")
    publish()
    full, shard = (published(client, found, part) for part in (FULL, shard_of(found)))
    client.agents.reinstate(own.agent_id, reason="nothing found")
    publish()
    delta = published(client, found, DELTA)

    assert judge(full) is Reason.REVOKED
    assert judge(full, delta) is None
    # A shard has another scope than the delta (RFC 5280 §5.2.4).
    assert judge(shard, delta) is Reason.REVOKED
    assert judge(shard, published(client, found, FULL)) is None


def test_delta_of_a_later_base_only_revokes(
    client: Client, judge: Judge, found: VerifiedCertificate, authority: CertificateAuthority
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

    assert judge(full, gone) is Reason.REVOKED
    assert judge(listed, back) is Reason.REVOKED
    continuing = signed(authority, ended, number=number + 1, base=1)
    assert judge(listed, continuing) is None


def test_stale_and_changed_deltas_are_refused(
    client: Client, judge: Judge, found: VerifiedCertificate, authority: CertificateAuthority
) -> None:
    full, delta = (published(client, found, part) for part in (FULL, DELTA))
    old = signed(authority, number=number_of(full) + 1, base=1, ages=timedelta(hours=2))
    spoilt = delta[:-1] + bytes([delta[-1] ^ 1])
    elsewhere = signed(authority, number=number_of(full) + 1, base=1, url="https://elsewhere.example/crl")

    assert judge(full, old) is Reason.STALE
    assert judge(full, spoilt) is Reason.INVALID_SIGNATURE
    # One of other certificates says nothing of this one.
    assert judge(full, elsewhere) is None


def test_lists_are_read_as_pem_too(
    client: Client, own: Certificate, judge: Judge, found: VerifiedCertificate
) -> None:
    pem = x509.load_der_x509_crl(published(client, found, FULL)).public_bytes(Encoding.PEM)

    assert judge(pem) is None
