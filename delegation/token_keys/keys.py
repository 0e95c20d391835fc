"""The life of token keys: generated, published, active, retired or withdrawn, destroyed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db import IntegrityError

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.keys.adaptors import HsmECPrivateKey
from compliance.keys.registry import backend_for, destroy_if_present, private_key
from compliance.stores import sql
from compliance.stores.sql import Question
from compliance.stores.sweeps import each
from delegation.errors import RotationUnderWay, TokenKeysMissing
from delegation.jose.jws import public_jwk
from delegation.lifecycle import DESTROY_AFTER, PUBLISHED_AHEAD, KeyStatus
from delegation.models import TokenKey
from delegation.token_keys import keyring

ACTIVE: Final[Question] = (TokenKey, "WHERE status = %s ORDER BY id LIMIT 1", (KeyStatus.ACTIVE.value,))
"""What `sql.read_together` asks for the key that signs."""


def bootstrap(*, actor: Actor, now: datetime) -> TokenKey:
    """The active key of the environment, generated if there is none; safe to repeat and in parallel."""
    return (
        TokenKey.objects.with_status(KeyStatus.ACTIVE).first()
        or _generate(KeyStatus.ACTIVE, active_from=now, actor=actor, now=now)
        or TokenKey.objects.with_status(KeyStatus.ACTIVE).get()
    )


def rotate(*, actor: Actor, now: datetime) -> TokenKey:
    """Publish the next key, which signs after `PUBLISHED_AHEAD`, a first one at once.

    Raises `RotationUnderWay` if a next key is published already.
    """
    promote_due(actor=actor, now=now)
    if TokenKey.objects.with_status(KeyStatus.ACTIVE).first() is None:
        return bootstrap(actor=actor, now=now)
    return _publish_next(active_from=now + PUBLISHED_AHEAD, actor=actor, now=now)


def replace_compromised(*, actor: Actor, now: datetime) -> TokenKey:
    """Withdraw the active key with all its tokens, and sign with another at once; raises `TokenKeysMissing`.

    Other processes take `keyring.MAX_AGE_SECONDS` to refuse its tokens, other verifiers `JWKS_MAX_AGE`.
    """
    compromised = signing_key()
    waiting = TokenKey.objects.with_status(KeyStatus.PUBLISHED).first()
    successor = waiting or _publish_next(active_from=now, actor=actor, now=now)
    with environments.atomic():
        locked = TokenKey.objects.select_for_update()
        _end(locked.get(id=compromised.id), KeyStatus.WITHDRAWN, actor, now)
        successor = locked.get(id=successor.id)
        if successor.status == KeyStatus.PUBLISHED:
            _activate(successor, now)
    keyring.forget()
    return successor


def promote_due(*, actor: Actor, now: datetime) -> TokenKey | None:
    """Activate the published key if its time has come, and retire the active one."""
    with environments.atomic():
        active = TokenKey.objects.with_status(KeyStatus.ACTIVE).select_for_update().first()
        due = TokenKey.objects.with_status(KeyStatus.PUBLISHED).filter(active_from__lte=now)
        key = due.select_for_update().first()
        if key is not None:
            if active is not None:
                _end(active, KeyStatus.RETIRED, actor, now)
            _activate(key, now)
    return key


def maintain(*, lifetime: timedelta, actor: Actor, now: datetime) -> None:
    """Promote a due key, publish the next once the active one has signed for `lifetime`, destroy ended."""
    promote_due(actor=actor, now=now)
    active = TokenKey.objects.with_status(KeyStatus.ACTIVE).first()
    is_alone = not TokenKey.objects.with_status(KeyStatus.PUBLISHED).exists()
    if active is not None and is_alone and active.active_from <= now - lifetime:
        _publish_next(active_from=now + PUBLISHED_AHEAD, actor=actor, now=now)
    destroy_ended(now=now)


def destroy_ended(*, now: datetime) -> int:
    """Destroy the private halves of retired and withdrawn keys; return how many."""
    ended = TokenKey.objects.filter(retired_at__lt=now - DESTROY_AFTER, destroyed_at=None)
    return each(ended.order_by("retired_at", "id").values_list("id", flat=True), partial(_destroy, now=now))


def _destroy(key_id: UUID, *, now: datetime) -> int:
    key = TokenKey.objects.get(id=key_id)
    destroy_if_present(key.uri)
    key.destroyed_at = now
    key.save(update_fields=["destroyed_at"])
    return 1


def signing_key() -> TokenKey:
    """The active key; raises `TokenKeysMissing` before `bootstrap`."""
    ((*found,),) = sql.read_together(ACTIVE)
    return the_active(found)


def the_active(found: Sequence[TokenKey]) -> TokenKey:
    """The key in the rows of `ACTIVE`; raises `TokenKeysMissing` before `bootstrap`."""
    if found:
        return found[0]
    raise TokenKeysMissing()


def private_half(key: TokenKey) -> HsmECPrivateKey:
    """The key in the HSM; raises `TokenKeysMissing` if it is not there, and 503 errors."""
    signer = private_key(environments.current(), key.uri)
    if not isinstance(signer, HsmECPrivateKey):
        raise TokenKeysMissing()
    return signer


def jwks(*, now: datetime) -> list[dict[str, str]]:
    """The current environment's published keys, newest first (RFC 7517 §5 `keys`)."""
    return [key.public_jwk for key in TokenKey.objects.published(now)]


def _publish_next(*, active_from: datetime, actor: Actor, now: datetime) -> TokenKey:
    if not TokenKey.objects.with_status(KeyStatus.PUBLISHED).exists():
        made = _generate(KeyStatus.PUBLISHED, active_from=active_from, actor=actor, now=now)
        if made is not None:
            return made
    raise RotationUnderWay()


def add(key: TokenKey, *, actor: Actor, now: datetime) -> None:
    """Insert a key that is in the HSM, with its audit entry. Raises: IntegrityError if there is another."""
    key.save(force_insert=True)
    _record(AuditAction.TOKEN_KEY_CREATED, key, actor, now)


def _generate(status: KeyStatus, *, active_from: datetime, actor: Actor, now: datetime) -> TokenKey | None:
    """Generate a key; None, and no key left in the HSM, if another process has made one of this status."""
    backend = backend_for(environments.current())
    ref = backend.generate_ec(label="token-signing")
    jwk = public_jwk(ref.public_key)
    key = TokenKey(
        kid=jwk["kid"], uri=ref.uri, public_jwk=jwk, status=status, published_at=now, active_from=active_from
    )
    try:
        with environments.atomic():
            add(key, actor=actor, now=now)
    except IntegrityError:
        backend.destroy(ref.uri)
        return None
    return key


def _end(key: TokenKey, status: KeyStatus, actor: Actor, now: datetime) -> None:
    key.status, key.retired_at = status, now
    key.save(update_fields=["status", "retired_at"])
    _record(AuditAction.TOKEN_KEY_RETIRED, key, actor, now)


def _activate(key: TokenKey, now: datetime) -> None:
    key.status, key.active_from = KeyStatus.ACTIVE, now
    key.save(update_fields=["status", "active_from"])


def _record(action: AuditAction, key: TokenKey, actor: Actor, now: datetime) -> None:
    description = f"Token key {key.kid} is {key.status}"
    metadata = {"kid": key.kid, "status": key.status, "active_from": key.active_from.isoformat()}
    auditlog.record(of=key, action=action, description=description, metadata=metadata, actor=actor, now=now)
