"""Export a tenant's sealed entries with their proofs, in constant memory and as of one moment."""

from collections.abc import Generator, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
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
from auditlog.submitting import gathering
from auditlog.tlog import tiles
from auditlog.tlog.merkle import inclusion_path
from compliance.core import environments
from compliance.core.encodings import b64_encode
from compliance.core.shares import AllTaken, SharedSlots

BATCH: Final = 256
UNDER_WAY: Final = SharedSlots(4)
"""Exports of one process at the same time: each keeps a thread for as long as the client takes."""
_NONE: Final = "SELECT * FROM auditlog_auditentry WHERE FALSE"
KEPT_TILES: Final = 64
KEPT_SUBTREES: Final = 4096


class Export:
    """The octets of an export, in pieces; `count` entries so far. Close it if it is not read to its end."""

    def __init__(
        self, header: dict[str, Any], under: SignedHead, entries: Any, form: Format, tenant_id: UUID
    ) -> None:
        columns = [field.attname for field in AuditEntry._meta.concrete_fields]
        try:
            statement, params = entries.values(*columns).query.sql_with_params()
        except EmptyResultSet:
            statement, params = _NONE, ()
        try:
            self._slot = UNDER_WAY.take(tenant_id)
        except AllTaken as error:
            raise ExportsUnderWay() from error
        self.count = 0
        self._header, self._form, self._size = header, form, under.size
        # Paths of neighbours share most of their subtrees.
        fetch = lru_cache(KEPT_TILES)(lambda level, index: StoredTiles().fetch(level, index))
        self._subtree = lru_cache(KEPT_SUBTREES)(lambda start, end: tiles.subtree(fetch, start, end))
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
        self._slot.release()

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
        path = inclusion_path(sealed.index, self._size, self._subtree)
        return self._form.entry(sealed.index, sealed.disclosure(), list(map(b64_encode, path)))


def open_export(*, tenant_id: UUID, filters: EntryFilters, form: Format, now: datetime) -> Export:
    """Begin an export under the published checkpoint; raises as `export_of`."""
    entries = filters.applied(AuditEntry.objects.for_tenant(tenant_id))
    if filters.before is not None:
        entries = entries.filter(created_at__lt=filters.before.at)
    return export_of(entries, tenant_id=tenant_id, filters=filters.given(), form=form, now=now)


def export_of(
    entries: QuerySet[AuditEntry], *, tenant_id: UUID, filters: Mapping[str, Any], form: Format, now: datetime
) -> Export:
    """Begin an export of these entries, all of the tenant; `filters` says how they were chosen.

    Raises: NothingSealed, PublicationStopped, ExportsUnderWay.
    """
    gathering.check_uncontradicted()
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
    return Export(header, under, entries.order_by(), form, tenant_id)
