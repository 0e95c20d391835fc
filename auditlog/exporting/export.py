"""Export a tenant's sealed entries with their proofs, in constant memory and as of one moment."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from threading import BoundedSemaphore
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from auditlog.errors import ExportsUnderWay, NothingSealed
from auditlog.exporting.formats import FORMAT, VERSION, Format
from auditlog.filters import EntryFilters
from auditlog.models import AuditEntry, SignedHead
from auditlog.sealing import keys
from auditlog.sealing.stored_rows import SealedEntry, sealed_among
from auditlog.sealing.tree import StoredTiles, published_checkpoint
from auditlog.tlog import tiles
from auditlog.tlog.merkle import inclusion_path
from compliance.core import environments
from compliance.core.encodings import b64_encode

BATCH: Final = 256
MOST_UNDER_WAY: Final = 2
"""Exports of one process at the same time: each keeps a thread for as long as the client takes."""
_UNDER_WAY: Final = BoundedSemaphore(MOST_UNDER_WAY)
_NONE: Final = "SELECT * FROM auditlog_auditentry WHERE FALSE"
KEPT_TILES: Final = 64
KEPT_SUBTREES: Final = 4096


class Paths:
    """Inclusion paths under one checkpoint; neighbours share most of theirs: the last subtrees are kept."""

    def __init__(self, size: int) -> None:
        fetch = lru_cache(KEPT_TILES)(lambda level, index: StoredTiles().fetch(level, index))
        self._size = size
        self._subtree = lru_cache(KEPT_SUBTREES)(lambda start, end: tiles.subtree(fetch, start, end))

    def of(self, index: int) -> list[str]:
        """Return the path of a leaf in base64, from the leaf up."""
        return list(map(b64_encode, inclusion_path(index, self._size, self._subtree)))


class Export:
    """The octets of an export, in pieces; `count` entries so far. Close it if it is not read to its end."""

    def __init__(self, header: dict[str, Any], under: SignedHead, entries: Any, form: Format) -> None:
        statement, params = _selection(entries)
        if not _UNDER_WAY.acquire(blocking=False):
            raise ExportsUnderWay()
        self._is_open = True
        self.count = 0
        self._header, self._form, self._paths = header, form, Paths(under.size)
        self._batches = sealed_among(statement, params, before=under.size, most=BATCH)
        self._environment, self._is_audited = environments.current(), environments.is_auditing()
        self._pieces = self._made()

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        finally:
            self.close()

    def close(self) -> None:
        """End the transaction that the entries are read in; safe to repeat."""
        self._pieces.close()
        self._batches.close()
        if self._is_open:
            self._is_open = False
            _UNDER_WAY.release()

    def _made(self) -> Generator[bytes, None, None]:
        piece = self._form.header(self._header)
        digest = sha256(piece)
        yield piece
        # Read after the request's own environment is left.
        with environments.use(self._environment), environments.auditing(self._is_audited):
            for batch in self._batches:
                piece = b"".join(map(self._entry, batch))
                self.count += len(batch)
                digest.update(piece)
                yield piece
        yield self._form.footer({"entries": self.count, "sha256": digest.hexdigest()})

    def _entry(self, sealed: SealedEntry) -> bytes:
        return self._form.entry(sealed.index, sealed.disclosure(), self._paths.of(sealed.index))


def _selection(entries: QuerySet[AuditEntry]) -> tuple[str, Sequence[Any]]:
    """Return the SQL of a query for all columns of the entries, with its parameters."""
    columns = [field.attname for field in AuditEntry._meta.concrete_fields]
    try:
        statement, params = entries.values(*columns).query.sql_with_params()
    except EmptyResultSet:
        return _NONE, ()
    return statement, params


def open_export(*, tenant_id: UUID, filters: EntryFilters, form: Format, now: datetime) -> Export:
    """Begin an export under the published checkpoint. Raises: NothingSealed, ExportsUnderWay."""
    entries = filters.applied(AuditEntry.objects.for_tenant(tenant_id))
    if filters.before is not None:
        entries = entries.filter(created_at__lt=filters.before.at)
    return export_of(entries, tenant_id=tenant_id, filters=filters.given(), form=form, now=now)


def export_of(
    entries: QuerySet[AuditEntry], *, tenant_id: UUID, filters: Mapping[str, Any], form: Format, now: datetime
) -> Export:
    """Begin an export of these entries, all of the tenant; `filters` says how they were chosen.

    Raises: NothingSealed, ExportsUnderWay.
    """
    under = published_checkpoint(now=now)
    if under is None:
        raise NothingSealed()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "environment": environments.current().value,
        "tenant_id": str(tenant_id),
        "filters": dict(filters),
        "exported_at": now.isoformat(),
        "sealed": under.size,
        "checkpoint": under.note,
        "keys": [key.encode() for key in keys.verifier_keys(now=now)],
    }
    return Export(header, under, entries.order_by(), form)
