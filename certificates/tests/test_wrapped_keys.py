"""Agents' keys that the HSM wraps and the database stores: issued, used, swapped, wrapped anew, deleted."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from django.db import IntegrityError

from agents.tests.factories import ACTOR, make_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates import services
from certificates.apps import check_agent_keys
from certificates.issuing import issuance, key_pool, wrapped_keys
from certificates.models import (
    Certificate,
    CertificateAuthority,
    Issuance,
    IssuanceState,
    PooledKey,
    WrappedAgentKey,
    WrappingKey,
)
from certificates.public import messages
from certificates.tests.factories import (
    lost,
    make_authorities,
    make_certificate,
    make_intent,
    make_past_end,
    reinstate_agent,
    renew_certificate,
    retire_agent,
    revoke_certificate,
    suspend_agent,
)
from certificates.tests.test_commands import run
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Conflict
from compliance.keys.base import KeyMismatch, KeyNotFound, KeyServiceNotConfigured, KeyStorage, WrappedKey
from compliance.keys.registry import backend_for
from compliance.keys.uri import parse
from compliance.tests.client import ApiClient
from ops import doctor, key_inventory
from tenancy.models import Tenant

OCTETS = b"what the service composed"
_made: list[tuple[WrappedKey, ...]] = []


@pytest.fixture(autouse=True)
def wrapped_mode(settings: Any, authority: CertificateAuthority) -> None:
    """One wrapping key and three wrapped keys of the test run, laid down again for each test."""
    settings.AGENT_KEYS = "wrapped"
    if not _made:
        backend = backend_for(environments.current())
        wrapping = backend.make_wrapping_key(label=wrapped_keys.LABEL)
        _made.append(tuple(backend.generate_wrapped(wrapping, label=key_pool.LABEL) for _ in range(3)))
    ref = _made[0][0].wrapping
    WrappingKey.objects.create(key_uri=ref.uri, mechanism=ref.mechanism.value, created_at=now())
    for wrapped in _made[0]:
        wrapped_keys.store(wrapped=wrapped, now=now())
        key_pool.put_back(key=wrapped.key, now=now())


def certify(tenant: Tenant) -> Certificate:
    agent = make_agent(tenant)
    return issuance.issue(tenant_id=tenant.id, agent_id=agent.id, actor=ACTOR, now=now())


def record_of(certificate: Certificate) -> WrappedAgentKey:
    return WrappedAgentKey.objects.get(key_uri=certificate.kms_key_arn)


def is_stored(certificate: Certificate) -> bool:
    return WrappedAgentKey.objects.filter(key_uri=certificate.kms_key_arn).exists()


def signs(certificate: Certificate) -> bool:
    """Sign with the certificate's key and verify by the certificate."""
    verify(certificate, messages.sign_octets(certificate, OCTETS))
    return True


def verify(certificate: Certificate, signature: bytes) -> None:
    public_key = x509.load_pem_x509_certificate(certificate.certificate_pem.encode()).public_key()
    assert isinstance(public_key, rsa.RSAPublicKey)
    public_key.verify(signature, OCTETS, padding.PKCS1v15(), hashes.SHA256())


def wrapping_keys() -> set[str]:
    return {key.uri for key in backend_for(environments.current()).list_keys(wrapped_keys.LABEL)}


@pytest.fixture
def certificate(tenant: Tenant) -> Certificate:
    return certify(tenant)


def test_certificate_says_that_its_key_is_wrapped(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    data = client.post(f"/v1/agents/{agent.id}/certify").json()["data"]

    assert data["key_storage"] == "wrapped"
    certificate = Certificate.objects.get()
    assert (certificate.key_storage, certificate.kms_key_arn) == ("wrapped", data["kms_key_arn"])
    assert is_stored(certificate)
    assert signs(certificate)


def test_resident_certificate_says_so_and_signs_beside_wrapped_ones(tenant: Tenant, settings: Any) -> None:
    wrapped = certify(tenant)
    settings.AGENT_KEYS = "resident"

    resident = make_certificate(make_agent(tenant))

    assert resident.key_storage == "resident"
    assert not is_stored(resident)
    verify(resident, messages.sign_octets(resident, OCTETS))
    verify(wrapped, messages.sign_octets(wrapped, OCTETS))


def test_pool_gives_keys_of_the_wanted_storage_only(tenant: Tenant, settings: Any) -> None:
    settings.AGENT_KEYS = "resident"

    assert key_pool.waiting() == 0
    assert key_pool.take_for(make_intent(make_agent(tenant))) is None
    assert PooledKey.objects.filter(storage=KeyStorage.WRAPPED).count() == 3


def test_empty_pool_makes_a_wrapped_key(tenant: Tenant) -> None:
    PooledKey.objects.all().delete()

    certificate = certify(tenant)

    assert certificate.kms_key_arn not in {wrapped.key.uri for wrapped in _made[0]}
    assert signs(certificate)


def test_without_a_wrapping_key_no_key_is_made() -> None:
    with environments.use(Environment.TEST):
        with pytest.raises(KeyServiceNotConfigured):
            key_pool.generate(now=now())
        assert "no wrapping key" in doctor.keys_wrapped(now()).problem


def test_first_wrapping_key_is_made_once_with_the_authorities() -> None:
    with environments.use(Environment.TEST):
        for _ in range(2):
            make_authorities()

        assert wrapped_keys.current().uri == WrappingKey.objects.get().key_uri
        assert AuditEntry.objects.filter(event_type=AuditAction.WRAPPING_KEY_CREATED).count() == 1
        assert key_pool.generate(now=now()).storage is KeyStorage.WRAPPED


@pytest.mark.parametrize("columns", [("blob",), ("blob", "spki")])
def test_swapped_records_sign_nothing(tenant: Tenant, columns: tuple[str, ...]) -> None:
    """Whoever writes the database may not make one agent sign with another's key."""
    mine, theirs = certify(tenant), certify(tenant)
    swapped, source = record_of(mine), record_of(theirs)
    WrappedAgentKey.objects.filter(id=swapped.id).delete()
    for name in columns:
        setattr(swapped, name, getattr(source, name))
    swapped.save(force_insert=True)

    with pytest.raises(KeyMismatch):
        signs(mine)
    with pytest.raises(KeyMismatch):
        messages.sign_octets(Certificate.objects.get(id=mine.id), OCTETS)
    assert signs(theirs)


def test_certificates_with_swapped_references_sign_nothing(tenant: Tenant) -> None:
    mine, theirs = certify(tenant), certify(tenant)
    mine.kms_key_arn, theirs.kms_key_arn = theirs.kms_key_arn, mine.kms_key_arn

    for certificate in (mine, theirs):
        with pytest.raises(KeyMismatch):
            messages.sign_octets(certificate, OCTETS)


def test_wrapped_certificate_declared_resident_signs_nothing(certificate: Certificate) -> None:
    signs(certificate)
    certificate.key_storage = KeyStorage.RESIDENT.value

    with pytest.raises(KeyNotFound):
        messages.sign_octets(certificate, OCTETS)


def test_damaged_record_answers_503_in_the_envelope(client: ApiClient, certificate: Certificate) -> None:
    WrappedAgentKey.objects.filter(key_uri=certificate.kms_key_arn).update(blob=b"no key")

    answer = client.post(f"/v1/agents/{certificate.agent_id}/sign", {"payload": {"a": 1}})

    assert answer.status_code == 503
    assert answer.json() == {"error": KeyMismatch.message}


def expire(certificate: Certificate) -> None:
    make_past_end(certificate)
    services.expire_due(now=now())


@pytest.mark.parametrize(
    "end",
    [revoke_certificate, lambda certificate: retire_agent(certificate.agent), renew_certificate, expire],
    ids=["revoked", "retired", "renewed", "expired"],
)
def test_ended_certificate_leaves_no_key(
    end: Callable[[Certificate], object], certificate: Certificate
) -> None:
    end(certificate)

    assert not is_stored(certificate)


def test_hold_keeps_the_key_and_the_final_revocation_deletes_it(certificate: Certificate) -> None:
    suspend_agent(certificate.agent)
    assert is_stored(certificate)
    reinstate_agent(certificate.agent)
    assert signs(Certificate.objects.get(id=certificate.id))
    suspend_agent(certificate.agent)
    retire_agent(certificate.agent)

    assert not is_stored(certificate)


def test_failed_revocation_keeps_the_key(certificate: Certificate) -> None:
    with lost():
        revoke_certificate(certificate)

    assert is_stored(certificate)


def test_records_that_nothing_can_use_are_deleted(tenant: Tenant) -> None:
    certified, held = certify(tenant), certify(tenant)
    suspend_agent(held.agent)
    make_past_end(held)
    pooled = PooledKey.objects.get()
    later = now() + timedelta(hours=2)

    assert wrapped_keys.delete_unnamed(now=now()) == 0
    assert wrapped_keys.delete_unnamed(now=later) == 1

    assert is_stored(certified)
    assert not is_stored(held)
    pooled.delete()
    assert wrapped_keys.delete_unnamed(now=later) == 1


def test_unfinished_issuance_puts_its_wrapped_key_back(tenant: Tenant) -> None:
    intent = make_intent(make_agent(tenant))
    key = key_pool.take_for(intent)
    assert key is not None
    Issuance.objects.update(created_at=now() - timedelta(days=1))

    assert wrapped_keys.delete_unnamed(now=now() + timedelta(hours=2)) == 0
    assert issuance.settle(now=now()) == 1

    assert Issuance.objects.get().state == IssuanceState.FAILED
    assert PooledKey.objects.get(key_uri=key.uri).storage == KeyStorage.WRAPPED


def test_rotation_wraps_every_key_anew(tenant: Tenant) -> None:
    certificate, before = certify(tenant), wrapped_keys.current()

    shown = run("wrapping_key_rotate")

    assert shown["wrapped"] == 3
    assert wrapped_keys.current() != before
    assert wrapped_keys.waiting().count() == 0
    assert record_of(certificate).wrapping_key.key_uri == wrapped_keys.current().uri == shown["wrapping_key"]
    assert signs(certificate)
    assert before.uri in wrapping_keys()


def test_interrupted_rotation_goes_on_and_no_other_begins(tenant: Tenant) -> None:
    certificates = [certify(tenant) for _ in range(3)]
    wrapped_keys.rotate(actor=ACTOR, now=now())

    assert all(signs(certificate) for certificate in certificates)
    assert "3 keys wait" in doctor.keys_wrapped(now()).problem
    with pytest.raises(Conflict, match="unfinished"):
        wrapped_keys.rotate(actor=ACTOR, now=now())
    assert wrapped_keys.wrap_waiting() == 3
    assert wrapped_keys.wrap_waiting() == 0
    assert doctor.keys_wrapped(now()).problem == ""
    assert all(signs(certificate) for certificate in certificates)


def test_damaged_record_does_not_hold_up_a_rotation(tenant: Tenant) -> None:
    damaged = certify(tenant)
    WrappedAgentKey.objects.filter(key_uri=damaged.kms_key_arn).update(blob=b"no key")
    wrapped_keys.rotate(actor=ACTOR, now=now())

    assert wrapped_keys.wrap_waiting() == 2
    assert wrapped_keys.waiting().get().key_uri == damaged.kms_key_arn


def test_record_deleted_or_wrapped_meanwhile_is_left_alone(certificate: Certificate) -> None:
    wrapped_keys.rotate(actor=ACTOR, now=now())
    record, target = record_of(certificate), WrappingKey.objects.get(retired_at=None)
    record.delete()

    assert not wrapped_keys._wrap_anew(record.id, target=target)
    assert not is_stored(certificate)


def test_retired_wrapping_key_is_destroyed_once_it_wraps_nothing() -> None:
    first = wrapped_keys.rotate(actor=ACTOR, now=now())
    wrapped_keys.wrap_waiting()
    wrapped_keys.rotate(actor=ACTOR, now=now())
    later = now() + timedelta(minutes=11)

    assert wrapped_keys.destroy_retired(actor=ACTOR, now=now()) == 0
    kept = WrappingKey.objects.exclude(key_uri=first.key_uri).filter(retired_at__isnull=False)
    kept.update(destroyed_at=now())  # the key of all tests
    assert wrapped_keys.destroy_retired(actor=ACTOR, now=later) == 0
    wrapped_keys.wrap_waiting()
    assert wrapped_keys.destroy_retired(actor=ACTOR, now=later) == 1

    assert WrappingKey.objects.get(id=first.id).destroyed_at == later
    assert AuditEntry.objects.filter(event_type=AuditAction.KEY_DESTROYED).count() == 1
    assert first.key_uri not in wrapping_keys()


def test_inventory_misses_records_and_wrapping_keys_not_objects(certificate: Certificate) -> None:
    def missing() -> set[str]:
        later = now() + timedelta(hours=2)
        return {uri for token in key_inventory.reconcile(now=later) for uri in token.missing}

    assert missing() == set()
    lost = WrappingKey.objects.create(
        key_uri=f"pkcs11:token={parse(certificate.kms_key_arn).token};id=%01;type=secret-key",
        mechanism="AES_KEY_WRAP_PAD",
        created_at=now(),
        retired_at=now(),
    )
    assert missing() == set()
    WrappedAgentKey.objects.exclude(key_uri=certificate.kms_key_arn).update(wrapping_key=lost)
    record_of(certificate).delete()
    assert missing() == {certificate.kms_key_arn, lost.key_uri}


def test_unknown_setting_is_reported(settings: Any) -> None:
    assert check_agent_keys() == []

    settings.AGENT_KEYS = "exported"

    assert [found.id for found in check_agent_keys()] == ["certificates.E001"]
    assert key_pool.storage() is KeyStorage.RESIDENT


def test_only_one_wrapping_key_is_in_service() -> None:
    with pytest.raises(IntegrityError), environments.atomic():
        WrappingKey.objects.create(key_uri="pkcs11:token=t;id=%02", mechanism="x", created_at=now())
