"""The life of the token keys: made, published, put to work, retired, withdrawn, destroyed."""

import logging
from datetime import datetime, timedelta

from django.db import IntegrityError

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance import environments
from compliance.keys import KeyNotFound, KeyRef, backend_for
from delegation import keyring
from delegation.errors import RotationUnderWay, TokenKeysMissing
from delegation.jwks import Jwk, public_jwk
from delegation.lifecycle import PUBLISHED_AHEAD, KeyStatus
from delegation.models import TokenKey

log = logging.getLogger(__name__)

LABEL = "token-signing"


def bootstrap(*, actor: Actor, now: datetime) -> TokenKey:
    """The active key of the current environment, made if there is none; safe to repeat and to race."""
    active = _active()
    if active is not None:
        return active
    ref = backend_for(environments.current()).generate_ec(label=LABEL)
    try:
        with environments.atomic():
            return _insert(ref, KeyStatus.ACTIVE, active_from=now, actor=actor, now=now)
    except IntegrityError:
        backend_for(environments.current()).destroy(ref.uri)
        return TokenKey.objects.with_status(KeyStatus.ACTIVE).get()


def rotate(*, actor: Actor, now: datetime) -> TokenKey:
    """Publish the next key; it signs once verifiers have had time to see it (`PUBLISHED_AHEAD`).

    The first key of an environment signs at once. Raises `RotationUnderWay` while a key waits for its turn.
    """
    promote_due(actor=actor, now=now)
    if _active() is None:
        return bootstrap(actor=actor, now=now)
    return _add_next(active_from=now + PUBLISHED_AHEAD, actor=actor, now=now)


def replace_compromised(*, actor: Actor, now: datetime) -> TokenKey:
    """Withdraw the active key, with all its tokens, and sign with another from now on; `TokenKeysMissing`.

    Other processes refuse the withdrawn key's tokens within `keyring.MAX_AGE_SECONDS`; verifiers who cached
    the JWKS, when their copy is `JWKS_MAX_AGE` old.
    """
    compromised = signing_key()
    waiting = TokenKey.objects.with_status(KeyStatus.PUBLISHED).first()
    successor = waiting or _add_next(active_from=now, actor=actor, now=now)
    with environments.atomic():
        _end(_locked(compromised), KeyStatus.WITHDRAWN, actor, now)
        successor = _locked(successor)
        if successor.status == KeyStatus.PUBLISHED:
            _activate(successor, now)
    keyring.forget()
    return successor


def promote_due(*, actor: Actor, now: datetime) -> TokenKey | None:
    """Put the published key to work if its time has come, and retire the one before it."""
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
    """What the clock asks for: put a published key to work, publish the next when the active one has signed
    for `lifetime`, destroy what has ended. Safe to repeat; does nothing before `bootstrap`.
    """
    promote_due(actor=actor, now=now)
    active = _active()
    is_alone = not TokenKey.objects.with_status(KeyStatus.PUBLISHED).exists()
    if active is not None and is_alone and active.active_from <= now - lifetime:
        _add_next(active_from=now + PUBLISHED_AHEAD, actor=actor, now=now)
    destroy_ended(now=now)


def destroy_ended(*, now: datetime) -> int:
    """Destroy the private halves of keys that will not sign again; how many were destroyed."""
    backend = backend_for(environments.current())
    ended = list(TokenKey.objects.to_destroy(now))
    for key in ended:
        try:
            backend.destroy(key.uri)
        except KeyNotFound:
            log.info("token key %s was already gone from its token", key.kid)
        key.destroyed_at = now
        key.save(update_fields=["destroyed_at"])
    return len(ended)


def signing_key() -> TokenKey:
    """The key that signs now; raises `TokenKeysMissing` before `bootstrap`."""
    active = _active()
    if active is None:
        raise TokenKeysMissing()
    return active


def jwks(*, now: datetime) -> list[Jwk]:
    """The current environment's published keys, newest first (RFC 7517 §5 `keys`)."""
    return [key.public_jwk for key in TokenKey.objects.published(now)]


def _active() -> TokenKey | None:
    return TokenKey.objects.with_status(KeyStatus.ACTIVE).first()


def _add_next(*, active_from: datetime, actor: Actor, now: datetime) -> TokenKey:
    if TokenKey.objects.with_status(KeyStatus.PUBLISHED).exists():
        raise RotationUnderWay()
    ref = backend_for(environments.current()).generate_ec(label=LABEL)
    try:
        with environments.atomic():
            return _insert(ref, KeyStatus.PUBLISHED, active_from=active_from, actor=actor, now=now)
    except IntegrityError as error:
        backend_for(environments.current()).destroy(ref.uri)
        raise RotationUnderWay() from error


def _insert(
    ref: KeyRef, status: KeyStatus, *, active_from: datetime, actor: Actor, now: datetime
) -> TokenKey:
    jwk = public_jwk(ref.public_key)
    key = TokenKey.objects.create(
        kid=jwk["kid"], uri=ref.uri, public_jwk=jwk, status=status, published_at=now, active_from=active_from
    )
    _record(AuditAction.TOKEN_KEY_CREATED, key, actor, now)
    return key


def _locked(key: TokenKey) -> TokenKey:
    return TokenKey.objects.select_for_update().get(id=key.id)


def _end(key: TokenKey, status: KeyStatus, actor: Actor, now: datetime) -> None:
    key.status, key.retired_at = status, now
    key.save(update_fields=["status", "retired_at"])
    _record(AuditAction.TOKEN_KEY_RETIRED, key, actor, now)


def _activate(key: TokenKey, now: datetime) -> None:
    key.status, key.active_from = KeyStatus.ACTIVE, now
    key.save(update_fields=["status", "active_from"])


def _record(action: AuditAction, key: TokenKey, actor: Actor, now: datetime) -> None:
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=action,
        affected_id=key.id,
        description=f"Token key {key.kid} is {key.status}",
        metadata={"kid": key.kid, "status": key.status, "active_from": key.active_from.isoformat()},
        actor=actor,
        now=now,
    )
