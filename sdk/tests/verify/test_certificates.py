"""Certificates that the service issued, and forgeries of them."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from agentid import Client
from agentid.client.generated.results import Certificate
from agentid.verify import (
    NotValid,
    OcspAnswer,
    OcspQuestion,
    Reason,
    RevocationLists,
    TrustedAuthorities,
    VerifiedCertificate,
    verify_certificate,
)
from agentid.verify.x509.certificates import RevocationSource
from auditlog.vocabulary import Actor
from certificates.lists import publication
from certificates.models import CertificateAuthority
from compliance.core.clock import now as service_now

SYSTEM = Actor.system("tests")
DAY = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


def check(
    certificate: Certificate, trusted: TrustedAuthorities, revocation: RevocationSource | None = None
) -> VerifiedCertificate:
    return verify_certificate(certificate.certificate_pem, trusted=trusted, revocation=revocation, now=now())


def reason_of(call: Callable[[], object]) -> Reason:
    with pytest.raises(NotValid) as refused:
        call()
    return refused.value.reason


def publish() -> None:
    """Have the lists say what the database says."""
    for authority in CertificateAuthority.objects.all():
        publication.publish(authority_id=authority.id, actor=SYSTEM, now=service_now(), force=True)


def lists_of(client: Client, found: VerifiedCertificate) -> RevocationLists:
    return RevocationLists.of(client.authorities.crl_of(f"{found.issuer.serial_number:040x}"))


def test_certificate_states_who_the_agent_is(certificate: Certificate, trusted: TrustedAuthorities) -> None:
    found = check(certificate, trusted)

    assert (found.agent_id, found.serial_number) == (certificate.agent_id, certificate.serial_number)
    assert found.identity.permitted_actions == frozenset({"read", "write"})
    assert (found.identity.permits("read"), found.identity.permits("delete")) == (True, False)
    assert (found.identity.model, found.identity.model_hash) == ("m", "sha256:0")
    assert found.identity.environment == "live"


def test_list_says_whether_it_is_revoked(
    client: Client, own: Certificate, trusted: TrustedAuthorities
) -> None:
    found = check(own, trusted)
    publish()
    before = lists_of(client, found)
    check(own, trusted, before)

    client.certificates.revoke(own.id, reason="keyCompromise")
    publish()

    assert reason_of(lambda: check(own, trusted, lists_of(client, found))) is Reason.REVOKED


def test_responder_says_whether_it_is_revoked(
    client: Client, own: Certificate, trusted: TrustedAuthorities
) -> None:
    found = check(own, trusted)

    def asked() -> OcspAnswer:
        question = OcspQuestion.about(found.certificate, found.issuer)
        return OcspAnswer(client.authorities.ocsp(question.request), question.nonce)

    good = asked()
    check(own, trusted, good)
    client.certificates.revoke(own.id, reason="keyCompromise")

    assert reason_of(lambda: check(own, trusted, asked())) is Reason.REVOKED
    assert reason_of(lambda: check(own, trusted, replace(good, nonce=b"other"))) is Reason.WRONG_NONCE
    later = now() + timedelta(hours=1)
    assert reason_of(lambda: good.check(found.certificate, issuer=found.issuer, now=later)) is Reason.STALE


def test_answer_about_another_certificate_says_nothing(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities
) -> None:
    other = check(client.agents.certify(client.agents.register(name="b", model_hash="x").id), trusted)
    question = OcspQuestion.about(other.certificate, other.issuer)
    answer = OcspAnswer(client.authorities.ocsp(question.request), question.nonce)

    assert reason_of(lambda: check(certificate, trusted, answer)) is Reason.NOT_COVERED


def test_changed_answer_is_refused(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities
) -> None:
    found = check(certificate, trusted)
    question = OcspQuestion.about(found.certificate, found.issuer)
    octets = client.authorities.ocsp(question.request)
    at = octets.index(b"\x80\x00")  # good
    unknown = OcspAnswer(octets[:at] + b"\x82\x00" + octets[at + 2 :], None)

    assert reason_of(lambda: check(certificate, trusted, unknown)) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: check(certificate, trusted, OcspAnswer(b"\x30\x00", None))) is Reason.MALFORMED


def test_stale_list_and_list_of_another_ca_say_nothing(
    certificate: Certificate, trusted: TrustedAuthorities
) -> None:
    found = check(certificate, trusted)
    key = rsa.generate_private_key(65537, 2048)
    forged = a_list(found.issuer.subject, key)
    foreign = a_list(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Other CA")]), key)

    assert reason_of(lambda: check(certificate, trusted, forged)) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: check(certificate, trusted, foreign)) is Reason.NOT_COVERED
    assert reason_of(lambda: check(certificate, trusted, RevocationLists(()))) is Reason.NOT_COVERED


def test_list_past_its_time_is_stale(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities
) -> None:
    found = check(certificate, trusted)
    publish()
    lists = lists_of(client, found)

    later, earlier = now() + 30 * DAY, now() - DAY

    assert reason_of(lambda: lists.check(found.certificate, issuer=found.issuer, now=later)) is Reason.STALE
    assert (
        reason_of(lambda: lists.check(found.certificate, issuer=found.issuer, now=earlier))
        is Reason.NOT_YET_VALID
    )


def a_list(issuer: x509.Name, key: rsa.RSAPrivateKey) -> RevocationLists:
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer)
        .last_update(now() - DAY)
        .next_update(now() + DAY)
    )
    return RevocationLists.of(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER))


def test_other_roots_are_not_trusted(certificate: Certificate, trusted: TrustedAuthorities) -> None:
    stranger = forged_root(trusted.roots[0].subject)
    only_intermediates = replace(trusted, roots=(stranger,))

    assert reason_of(lambda: check(certificate, only_intermediates)) is Reason.UNTRUSTED_ISSUER
    assert reason_of(lambda: check(certificate, replace(trusted, roots=()))) is Reason.UNTRUSTED_ISSUER


def test_agent_cannot_certify_another(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities
) -> None:
    """A certificate signed by a key that is no CA's is refused, whoever is named as its issuer."""
    found = check(certificate, trusted)
    forged = as_pem(forged_leaf(found))
    with_leaf = replace(trusted, intermediates=(*trusted.intermediates, found.certificate))

    def judge(given: TrustedAuthorities) -> Reason:
        return reason_of(lambda: verify_certificate(forged, trusted=given, revocation=None, now=now()))

    assert {judge(trusted), judge(with_leaf)} <= {Reason.UNTRUSTED_ISSUER, Reason.NOT_AN_AUTHORITY}


def test_time_and_environment_count(certificate: Certificate, trusted: TrustedAuthorities) -> None:
    pem = certificate.certificate_pem

    def at(moment: datetime, **more: str) -> Reason:
        given = replace(trusted, **more)  # type: ignore[arg-type]
        return reason_of(lambda: verify_certificate(pem, trusted=given, revocation=None, now=moment))

    assert at(now() + 366 * DAY) is Reason.EXPIRED
    assert at(now() + timedelta(days=30 * 365)) is Reason.EXPIRED
    assert at(now() - timedelta(days=365)) is Reason.NOT_YET_VALID
    assert at(now(), environment="test") is Reason.WRONG_ENVIRONMENT
    assert at(now(), identity_oid="1.2.3.4") is Reason.MALFORMED


@pytest.mark.parametrize(
    "pem", [b"", b"x", "\ud800", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
)
def test_what_is_no_certificate_is_malformed(pem: bytes | str, trusted: TrustedAuthorities) -> None:
    assert (
        reason_of(lambda: verify_certificate(pem, trusted=trusted, revocation=None, now=now()))
        is Reason.MALFORMED
    )


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_changed_octets_raise_nothing_but_not_valid(
    client: Client, certificate: Certificate, trusted: TrustedAuthorities
) -> None:
    found = check(certificate, trusted)
    publish()
    question = OcspQuestion.about(found.certificate, found.issuer)
    listed = client.authorities.crl_of(f"{found.issuer.serial_number:040x}")
    told = client.authorities.ocsp(question.request)
    own = found.certificate.public_bytes(Encoding.DER)

    for octets in forgeries(listed):
        with suppress(NotValid):
            check(certificate, trusted, RevocationLists.of(octets))
    for octets in forgeries(told):
        with suppress(NotValid):
            check(certificate, trusted, OcspAnswer(octets, question.nonce))
    for octets in forgeries(own):
        pem = b"-----BEGIN CERTIFICATE-----\n" + b64encode(octets) + b"\n-----END CERTIFICATE-----\n"
        with pytest.raises(NotValid):
            verify_certificate(pem, trusted=trusted, revocation=None, now=now())


def forgeries(octets: bytes) -> Iterator[bytes]:
    """The octets with each of them changed once, the same changes in every run."""
    chosen = Random(8)
    for place in range(len(octets)):
        yield octets[:place] + bytes([octets[place] ^ chosen.randrange(1, 256)]) + octets[place + 1 :]


def forged_root(name: x509.Name) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1 << 158)
        .not_valid_before(now() - DAY)
        .not_valid_after(now() + DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )


def forged_leaf(found: VerifiedCertificate) -> x509.Certificate:
    """A copy of a certificate with another key, signed by nobody's key."""
    key = rsa.generate_private_key(65537, 2048)
    own = found.certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(own.subject)
        .issuer_name(own.subject)
        .public_key(key.public_key())
        .serial_number(own.serial_number + 1)
        .not_valid_before(now() - DAY)
        .not_valid_after(now() + DAY)
    )
    for extension in own.extensions:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    return builder.sign(key, hashes.SHA256())


def as_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)
