"""Keys in the tokens against keys in the database: which nothing names, and which are named and gone."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.db.models import Model, QuerySet

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates import key_pool
from certificates.models import Certificate, CertificateAuthority, PooledKey
from compliance import environments
from compliance.errors import Conflict
from compliance.keys import KeyNotFound, StoredKey, backend_for
from compliance.keys.uri import parse
from delegation.lifecycle import KeyStatus
from delegation.models import TokenKey

log = logging.getLogger(__name__)


GRACE: Final = timedelta(hours=1)
"""A key is made before the row that names it: a request or a worker's turn is long over by then."""
REFERENCES: Final = frozenset({"key_uri", "kms_key_arn"})
"""Fields that name a key, in whatever table; so that no table to come is forgotten."""


class KeyInUse(Conflict):
    """Somebody still needs the key."""

    message = "Something names the key"


@dataclass(frozen=True)
class Shelf:
    """What one token holds, and what it should hold and doesn't."""

    token: str
    keys: int = 0
    young: int = 0
    """Named nowhere, but too young to say that they won't be."""
    orphans: list[StoredKey] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Keys that something in force needs: certificates, pool, CAs, token keys."""

    @property
    def is_sound(self) -> bool:
        return not self.orphans and not self.missing


def reconcile(*, now: datetime, grace: timedelta = GRACE) -> list[Shelf]:
    """The current environment's tokens, compared with its database; 503 errors of the HSM.

    The tokens are read first: a key that is named later than that is found named, and one made later isn't
    looked at. All tables are read in one statement, since a key may move from one to another.
    """
    held = backend_for(environments.current()).list_keys()
    named = _named()
    loose = [key for key in held if key.uri not in named]
    orphans = [key for key in loose if _is_old(key, now - grace)]
    present = {key.uri for key in held if key.is_complete}
    missing = [uri for uri in _needed(now) if uri not in present and _is_gone(uri)]
    return _by_token(held, loose, orphans, missing)


def destroy_orphans(*, orphans: Iterable[StoredKey], actor: Actor, now: datetime) -> int:
    """Destroy those agents' keys that are still named nowhere; how many were. 503 errors of the HSM.

    Others are left to a person: a CA's key without its row may be all that is left of a lost database.
    """
    destroyed = 0
    for key in orphans:
        if key.label != key_pool.LABEL or _named(key.uri):
            continue
        try:
            _destroy(key.uri, actor, now)
        except KeyNotFound:
            continue
        destroyed += 1
    return destroyed


def destroy(*, uri: str, actor: Actor, now: datetime) -> None:
    """Destroy a key of the current environment's tokens, whatever it was for, and audit it.

    Raises `KeyInUse` for one that anything names, `KeyNotFound`, and 503 errors of the HSM.
    """
    backend_for(environments.current()).public_key(uri)
    if _named(uri):
        raise KeyInUse()
    _destroy(uri, actor, now)


def _destroy(uri: str, actor: Actor, now: datetime) -> None:
    """The entry first: a crash may leave a key that was to go, which is found again; none goes unsaid."""
    with environments.atomic():
        auditlog.record(
            tenant_id=SERVICE_TENANT_ID,
            action=AuditAction.KEY_DESTROYED,
            affected_id=uri[:255],
            description="A key that nothing names is destroyed",
            metadata={"key_uri": uri},
            actor=actor,
            now=now,
        )
    backend_for(environments.current()).destroy(uri)
    log.warning("destroyed the orphan key %s", uri)


@cache
def reference_fields() -> tuple[tuple[type[Model], str], ...]:
    """Every table and field that may name a key."""
    found = [
        (model, column.name)
        for model in apps.get_models()
        for column in model._meta.concrete_fields
        if column.name in REFERENCES
    ]
    return (*found, (TokenKey, "uri"))


def _named(uri: str | None = None) -> set[str]:
    """The keys named in the database, or only this one, in one statement and so of one moment."""
    parts: list[QuerySet[Any, Any]] = []
    for model, name in reference_fields():
        rows = model._default_manager.order_by().values_list(name, flat=True)
        parts.append(rows if uri is None else rows.filter(**{name: uri}))
    return set(parts[0].union(*parts[1:], all=True).iterator())


def _needed(now: datetime) -> set[str]:
    signing = TokenKey.objects.filter(status__in=[KeyStatus.ACTIVE, KeyStatus.PUBLISHED])
    needed: list[QuerySet[Any, Any]] = [
        Certificate.objects.active(now).order_by().values_list("kms_key_arn", flat=True),
        PooledKey.objects.order_by().values_list("key_uri", flat=True),
        CertificateAuthority.objects.publishing(now).order_by().values_list("key_uri", flat=True),
        signing.order_by().values_list("uri", flat=True),
    ]
    return set(needed[0].union(*needed[1:], all=True).iterator())


def _is_old(key: StoredKey, before: datetime) -> bool:
    """A key whose id tells no time is from before ids told one."""
    return key.made_at is None or key.made_at < before


def _is_gone(uri: str) -> bool:
    """Asks the token itself: the key may have been made, or its row removed, since the tokens were read."""
    try:
        backend_for(environments.current()).public_key(uri)
    except KeyNotFound:
        return bool(_named(uri))
    return False


def _by_token(
    held: list[StoredKey], loose: list[StoredKey], orphans: list[StoredKey], missing: list[str]
) -> list[Shelf]:
    keys = Counter(parse(key.uri).token for key in held)
    unnamed = Counter(parse(key.uri).token for key in loose)
    shelves = {token: Shelf(token, keys=count) for token, count in keys.items()}
    for key in orphans:
        shelves[parse(key.uri).token].orphans.append(key)
    for uri in missing:
        token = parse(uri).token
        shelves.setdefault(token, Shelf(token)).missing.append(uri)
    return [
        Shelf(
            shelf.token, shelf.keys, unnamed[shelf.token] - len(shelf.orphans), shelf.orphans, shelf.missing
        )
        for shelf in sorted(shelves.values(), key=lambda shelf: shelf.token)
    ]
