"""Export a tenant's sealed entries with their proofs, in constant memory and as of one moment."""

from collections.abc import Generator, Mapping
from contextlib import closing
from datetime import datetime
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from auditlog.errors import ExportsUnderWay, NothingSealed
from auditlog.exporting.formats import FORMAT, VERSION, Format
from auditlog.filters import EntryFilters
from auditlog.models import AuditEntry
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

Pieces = Generator[bytes, None, None]
"""The octets of an export. Close it if it is not read to its end: a transaction is open."""


def open_export(*, tenant_id: UUID, filters: EntryFilters, form: Format, now: datetime) -> Pieces:
    """Begin an export under the published checkpoint; raises as `export_of`."""
    entries = filters.applied(AuditEntry.objects.for_tenant(tenant_id))
    if filters.before is not None:
        entries = entries.filter(created_at__lt=filters.before.at)
    return export_of(entries, tenant_id=tenant_id, filters=filters.given(), form=form, now=now)


def export_of(
    entries: QuerySet[AuditEntry], *, tenant_id: UUID, filters: Mapping[str, Any], form: Format, now: datetime
) -> Pieces:
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
    columns = [field.attname for field in AuditEntry._meta.concrete_fields]
    try:
        statement, params = entries.order_by().values(*columns).query.sql_with_params()
    except EmptyResultSet:
        statement, params = _NONE, ()
    batches = sealed_among(statement, params, before=under.size, most=BATCH)
    pieces = _pieces(header, batches, under.size, form, tenant_id)
    next(pieces)  # takes the slot, or raises, before the answer begins
    return pieces


def _pieces(
    header: dict[str, Any],
    batches: Generator[list[SealedEntry], None, None],
    size: int,
    form: Format,
    tenant_id: UUID,
) -> Pieces:
    """Yield nothing once a slot is taken, then header, batches of entries, and footer.

    The entries lie before `size` in the tree. Raises: ExportsUnderWay.
    """
    environment, is_audited = environments.current(), environments.is_auditing()
    # Paths of neighbours share most of their subtrees.
    fetch = lru_cache(KEPT_TILES)(lambda level, index: StoredTiles().fetch(level, index))
    subtree = lru_cache(KEPT_SUBTREES)(partial(tiles.subtree, fetch))
    try:
        slot = UNDER_WAY.take(tenant_id)
    except AllTaken as error:
        raise ExportsUnderWay() from error
    with slot, closing(batches):
        # What follows is read after the request's own environment is left.
        yield b""
        piece, count = form.framing("export", header), 0
        digest = sha256(piece)
        yield piece
        with environments.use(environment), environments.auditing(is_audited):
            for batch in batches:
                entries = [
                    form.entry(
                        sealed.index,
                        sealed.disclosure(),
                        list(map(b64_encode, inclusion_path(sealed.index, size, subtree))),
                    )
                    for sealed in batch
                ]
                piece, count = b"".join(entries), count + len(entries)
                digest.update(piece)
                yield piece
        yield form.framing("end", {"entries": count, "sha256": digest.hexdigest()})
