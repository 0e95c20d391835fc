"""Wrapped agents' keys: stored, used, wrapped anew when the wrapping key is rotated, and deleted."""

import hashlib
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.db.models import Exists, OuterRef, QuerySet

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import Certificate, Issuance, IssuanceState, PooledKey, WrappedAgentKey, WrappingKey
from compliance.core import environments
from compliance.core.errors import Conflict
from compliance.keys import base
from compliance.keys.registry import backend_for, destroy_if_present
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

LABEL: Final = "wrapping"
BATCH: Final = 100
READ_AT_ONCE: Final = 10_000
DESTROY_AFTER: Final = timedelta(minutes=10)
"""Longer than any request or key generation that read the wrapping key before it was retired."""
UNNAMED_AFTER: Final = timedelta(hours=1)
"""A record is stored before the row that names it, in the same task or request."""


def current() -> base.WrappingKeyRef:
    """Return the key that wraps now; raises `KeyServiceNotConfigured` before `rotate()`."""
    found = WrappingKey.objects.filter(retired_at=None).first()
    if found is None:
        log.error("KMS not configured: AGENT_KEYS is wrapped, and there is no wrapping key: run ca_init")
        raise base.KeyServiceNotConfigured
    return _ref(found)


def store(*, wrapped: base.WrappedKey, now: datetime) -> None:
    WrappedAgentKey.objects.create(
        key_uri=wrapped.key.uri,
        spki=wrapped.key.spki,
        wrapping_key=WrappingKey.objects.get(key_uri=wrapped.wrapping.uri),
        blob=wrapped.blob,
        created_at=now,
    )


def sign(*, certificate: Certificate, octets: bytes) -> bytes:
    """Sign with the certificate's key; raises `KeyMismatch` if the record holds another key, and 503 errors.

    The public key is the certificate's own, so a record put in another's place signs nothing.
    """
    leaf = x509.load_pem_x509_certificate(certificate.certificate_pem.encode("ascii"))
    spki = leaf.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    key = base.KeyRef(certificate.kms_key_arn, spki)
    backend, digest = backend_for(environments.current()), hashlib.sha256(octets).digest()
    try:
        return backend.sign_wrapped(read(key), digest)
    except base.KeyMismatch:
        raise
    except base.KeyNotFound:
        # The wrapping key was destroyed after the record was read: by now the record is under its successor.
        return backend.sign_wrapped(read(key), digest)


def read(key: base.KeyRef) -> base.WrappedKey:
    """Read the record of a key; raises `KeyNotFound`, and `KeyMismatch` if it is another key's."""
    row = WrappedAgentKey.objects.select_related("wrapping_key").filter(key_uri=key.uri).first()
    if row is None:
        raise base.KeyNotFound
    if bytes(row.spki) != key.spki:
        log.error("the record of the wrapped key %s holds another public key", key.uri)
        raise base.KeyMismatch
    return base.WrappedKey(key, _ref(row.wrapping_key), bytes(row.blob))


def unnamed(*, now: datetime) -> Iterator[list[UUID]]:
    """Yield the ids of records that nothing can use: no certificate that may sign again, pool or issuance.

    Certificates are read after the others, as a key goes from the pool by an issuance to its certificate.
    """
    pooled = PooledKey.objects.filter(key_uri=OuterRef("key_uri"))
    intended = Issuance.objects.filter(key_uri=OuterRef("key_uri"), state=IssuanceState.STARTED)
    old = WrappedAgentKey.objects.filter(created_at__lt=now - UNNAMED_AFTER)
    unclaimed, last = old.filter(~Exists(pooled), ~Exists(intended)).order_by("id"), UUID(int=0)
    while found := dict(unclaimed.filter(id__gt=last).values_list("id", "key_uri")[:READ_AT_ONCE]):
        usable = Certificate.objects.filter(kms_key_arn__in=list(found.values()), expires_at__gte=now)
        certified = set(usable.values_list("kms_key_arn", flat=True))
        yield [key_id for key_id, uri in found.items() if uri not in certified]
        last = max(found)


def delete_unnamed(*, now: datetime) -> int:
    return sum(WrappedAgentKey.objects.filter(id__in=ids).delete()[0] for ids in unnamed(now=now))


def rotate(*, actor: Actor, now: datetime) -> WrappingKey:
    """Put a new wrapping key into service; the present one is retired.

    Raises: Conflict while keys under a retired one wait, and the errors of `KeyBackend`.
    """
    if waiting().exists():
        raise Conflict("An earlier rotation is unfinished: run wrapping_key_rotate --resume first")
    ref = backend_for(environments.current()).make_wrapping_key(label=LABEL)
    fresh = WrappingKey(key_uri=ref.uri, mechanism=ref.mechanism.value, created_at=now)
    with environments.atomic():
        WrappingKey.objects.select_for_update().filter(retired_at=None).update(retired_at=now)
        fresh.save(force_insert=True)
        _record(AuditAction.WRAPPING_KEY_CREATED, fresh, "A wrapping key was put into service", actor, now)
    return fresh


def waiting() -> QuerySet[WrappedAgentKey]:
    return WrappedAgentKey.objects.filter(wrapping_key__retired_at__isnull=False)


def wrap_waiting() -> int:
    """Wrap the waiting keys under the present wrapping key; return how many. Safe to repeat or break off.

    Damaged records are left. Signing goes on: both blobs hold the same key.
    """
    target, last, wrapped = WrappingKey.objects.filter(retired_at=None).first(), UUID(int=0), 0
    if target is None:
        return 0
    while ids := list(waiting().filter(id__gt=last).order_by("id").values_list("id", flat=True)[:BATCH]):
        wrapped += each(ids, partial(_wrap_anew, target=target))
        last = ids[-1]
    return wrapped


def _wrap_anew(key_id: UUID, *, target: WrappingKey) -> bool:
    row = WrappedAgentKey.objects.select_related("wrapping_key").filter(id=key_id).first()
    if row is None or row.wrapping_key_id == target.id:
        return False
    wrapped = base.WrappedKey(
        base.KeyRef(row.key_uri, bytes(row.spki)), _ref(row.wrapping_key), bytes(row.blob)
    )
    try:
        fresh = backend_for(environments.current()).wrap_anew(wrapped, _ref(target))
    except base.KeyMismatch:
        return False
    unchanged = WrappedAgentKey.objects.filter(id=row.id, wrapping_key_id=row.wrapping_key_id)
    return bool(unchanged.update(blob=fresh.blob, wrapping_key=target))


def destroy_retired(*, actor: Actor, now: datetime) -> int:
    """Destroy the retired wrapping keys under which no key is left; return how many.

    What they wrapped in backups is lost with them.
    """
    old = WrappingKey.objects.filter(retired_at__lt=now - DESTROY_AFTER, destroyed_at=None)
    unused = old.filter(~Exists(WrappedAgentKey.objects.filter(wrapping_key=OuterRef("pk"))))
    return each(list(unused.order_by("id")), partial(_destroy, actor=actor, now=now))


def _destroy(key: WrappingKey, *, actor: Actor, now: datetime) -> bool:
    with environments.atomic():
        _record(AuditAction.KEY_DESTROYED, key, "A retired wrapping key is destroyed", actor, now)
    destroy_if_present(key.key_uri)
    key.destroyed_at = now
    key.save(update_fields=["destroyed_at"])
    return True


def _ref(key: WrappingKey) -> base.WrappingKeyRef:
    return base.WrappingKeyRef(key.key_uri, base.WrapMechanism(key.mechanism))


def _record(action: AuditAction, key: WrappingKey, description: str, actor: Actor, now: datetime) -> None:
    metadata = {"key_uri": key.key_uri}
    auditlog.record(of=key, action=action, description=description, metadata=metadata, actor=actor, now=now)
