"""Compares the keys in the tokens with the keys that the database names."""

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from auditlog import services as auditlog
from auditlog.models import LogKey
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates.issuing import key_pool
from certificates.models import Certificate, CertificateAuthority, PooledKey, WrappedAgentKey, WrappingKey
from compliance.core import environments
from compliance.core.errors import Conflict
from compliance.keys.base import KeyNotFound, KeyStorage, StoredKey
from compliance.keys.registry import backend_for
from compliance.keys.uri import parse
from delegation.lifecycle import KeyStatus
from delegation.models import TokenKey

log = logging.getLogger(__name__)

GRACE: Final = timedelta(hours=1)
"""Age of an orphan: a key is made before the row that names it, at most a request or a task earlier."""
REFERENCES: Final = frozenset({"key_uri", "kms_key_arn"})
"""Names of fields that name a key; every table is searched for them, so that none is forgotten."""


class KeyInUse(Conflict):
    message = "Something names the key"


@dataclass
class TokenInventory:
    """The keys of one token, and the keys that it lacks."""

    token: str
    keys: int = 0
    young: int = 0  # number of keys that no row names and that are too young to be orphans
    orphans: list[StoredKey] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """URIs of keys that are in use, or lie ready in the pool."""

    @property
    def is_sound(self) -> bool:
        return not self.orphans and not self.missing


def reconcile(*, now: datetime, grace: timedelta = GRACE) -> list[TokenInventory]:
    """Compare the current environment's tokens with its database; raises the errors of `KeyBackend`.

    The tokens are read first, so that a key named after that is found named. All tables are read in one
    statement, as a key may move from one to another.
    """
    held = backend_for(environments.current()).list_keys()
    named = _named()
    present = {key.uri for key in held if key.has_private}
    found: dict[str, TokenInventory] = {}
    for key in held:
        token = parse(key.uri).token
        inventory = found.setdefault(token, TokenInventory(token))
        inventory.keys += 1
        is_old = key.made_at is None or key.made_at < now - grace
        if key.uri not in named and is_old:
            inventory.orphans.append(key)
        elif key.uri not in named:
            inventory.young += 1
    resident = KeyStorage.RESIDENT.value
    needed = _values(
        (Certificate.objects.active(now).filter(key_storage=resident), "kms_key_arn"),
        (PooledKey.objects.filter(storage=resident), "key_uri"),
        (CertificateAuthority.objects.publishing(now), "key_uri"),
        (TokenKey.objects.filter(status__in=[KeyStatus.ACTIVE, KeyStatus.PUBLISHED]), "uri"),
        (LogKey.objects.signing(now), "key_uri"),
    )
    missing = [uri for uri in needed if uri not in present and _is_gone(uri)]
    # Those that wrap, or that wrapped keys still need.
    wraps = Q(retired_at=None) | Exists(WrappedAgentKey.objects.filter(wrapping_key=OuterRef("pk")))
    wrapping = _values((WrappingKey.objects.filter(wraps, created_at__lt=now - grace), "key_uri"))
    for uri in (*missing, *_wrapped_without_record(now), *wrapping - present):
        token = parse(uri).token
        found.setdefault(token, TokenInventory(token)).missing.append(uri)
    return [found[token] for token in sorted(found)]


def destroy_orphans(*, orphans: Iterable[StoredKey], actor: Actor, now: datetime) -> int:
    """Destroy the agents' keys that still no row names, and return how many; raises `KeyBackend`'s errors.

    Other keys are left to a person: a CA's key may be all that is left of a lost database.
    """
    destroyed = 0
    for key in orphans:
        if key.label == key_pool.LABEL and not _named(key.uri):
            with suppress(KeyNotFound):
                _destroy(key.uri, actor, now)
                destroyed += 1
    return destroyed


def destroy(*, uri: str, actor: Actor, now: datetime) -> None:
    """Destroy a key of the current environment, whatever its use, and audit it.

    Raises `KeyInUse` if a row names it, and the errors of `KeyBackend`.
    """
    # A wrapping key has no public half to ask for.
    if uri not in {key.uri for key in backend_for(environments.current()).list_keys()}:
        raise KeyNotFound
    if _named(uri):
        raise KeyInUse()
    _destroy(uri, actor, now)


def _destroy(uri: str, actor: Actor, now: datetime) -> None:
    # The audit entry comes first: a crash may leave an orphan, but no key goes without an entry.
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
    """Return every model and field that may name a key."""
    columns = ((model, column.name) for model in apps.get_models() for column in model._meta.concrete_fields)
    return (*(found for found in columns if found[1] in REFERENCES), (TokenKey, "uri"))


def _named(uri: str | None = None) -> set[str]:
    """Return the keys that rows name (only `uri`, if given), as of one moment."""
    columns = [(model._default_manager.all(), name) for model, name in reference_fields()]
    return _values(*((rows if uri is None else rows.filter(**{name: uri}), name) for rows, name in columns))


def _wrapped_without_record(now: datetime) -> set[str]:
    """Return the wrapped keys in use or in the pool whose record is gone."""
    wrapped = KeyStorage.WRAPPED.value
    used = Certificate.objects.active(now).filter(key_storage=wrapped).order_by()
    pooled = PooledKey.objects.filter(storage=wrapped).order_by()
    named = used.values_list("kms_key_arn").union(pooled.values_list("key_uri"), all=True)
    without_record = named.difference(WrappedAgentKey.objects.order_by().values_list("key_uri"))
    found = set(without_record.all())
    # Citus reads the tables one after the other: a key that was deleted in between is missing only once.
    return {uri for (uri,) in found & set(without_record.all())} if found else set()


def _values(*columns: tuple[QuerySet[Any], str]) -> set[str]:
    """Return the values of the columns, read in one statement."""
    first, *others = (rows.order_by().values_list(name, flat=True) for rows, name in columns)
    return set(first.union(*others, all=True).iterator())


def _is_gone(uri: str) -> bool:
    """Ask the token itself: the key may have been made, or its row removed, since the tokens were read."""
    try:
        backend_for(environments.current()).public_key(uri)
    except KeyNotFound:
        return bool(_named(uri))
    return False
