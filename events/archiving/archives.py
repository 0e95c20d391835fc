"""Archives of partitions: complete on disk, and recorded in the audit log, before a partition is dropped."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.core import environments
from compliance.stores import sql
from events.archiving import archive_file
from events.archiving.archive_file import Archive, ArchiveHeader
from events.archiving.changes import begin, patiently
from events.archiving.spans import TABLE, Partition
from events.errors import ArchivesUnavailable, BadArchive
from events.models import BehaviorEvent, EventReview

COLUMNS = tuple(str(field.column) for field in BehaviorEvent._meta.concrete_fields)
MOST_AT_ONCE = 200  # events in memory at once; one may hold a mebibyte

# PostgreSQL writes the JSON, and reads it when it is restored: numbers stay as they are
_LINES = f"""
SELECT id, row_to_json(line)::text FROM (
    SELECT {", ".join(COLUMNS)}, (
        SELECT json_agg(row_to_json(review) ORDER BY review.number)
        FROM {EventReview._meta.db_table} review
        WHERE review.event_id = event.id AND review.tenant_id = event.tenant_id
    ) AS reviews
    FROM {TABLE} event WHERE id >= %s AND id < %s ORDER BY id LIMIT {MOST_AT_ONCE}
) line ORDER BY id
"""  # noqa: S608  (names of ours)


def ensure(*, partition: Partition, actor: Actor, now: datetime) -> Archive:
    """Return the archive of all events of a partition; write and record it unless that was done before.

    Safe to repeat after a crash at any moment, and to run twice at once. Raises ArchivesUnavailable, and
    BadArchive if the file cannot be read back as it was written or the partition changed meanwhile.
    """
    directory = folder()
    rows = _count(partition)
    known = next((one for one in recorded(partition) if one.rows == rows), None)
    if known is not None:
        with suppress(BadArchive, OSError):
            if archive_file.verify(known.path)[1] == known:
                return known
    header = ArchiveHeader(
        version=1,
        environment=environments.current().value,
        partition=partition.name,
        received_from=partition.start,
        received_before=partition.end,
        columns=COLUMNS,
    )
    archive = archive_file.write(directory, header, _lines(partition))
    if archive_file.verify(archive.path)[1] != archive:
        raise BadArchive()
    if patiently(partial(_record_once, partition, archive, actor, now)) is None:
        raise ArchivesUnavailable("Partitions are being changed: the next run records the archive")
    return archive


def folder() -> Path:
    """Return the folder of the archives. Raises ArchivesUnavailable if nothing can be written there."""
    if not settings.EVENT_ARCHIVE_DIR:
        raise ArchivesUnavailable()
    found = Path(settings.EVENT_ARCHIVE_DIR)
    if not found.is_dir() or not os.access(found, os.W_OK | os.X_OK):
        raise ArchivesUnavailable(f"{found} is no folder that can be written to: no events are dropped")
    return found


def recorded(partition: Partition) -> Iterator[Archive]:
    """Yield the archives of the partition that the audit log names, newest first."""
    bounds = {"received_from": partition.start.isoformat(), "received_before": partition.end.isoformat()}
    entries = _entries(AuditAction.EVENTS_ARCHIVED).about(partition.name).filter(metadata__contains=bounds)
    for metadata in entries.order_by("-created_at", "-id").values_list("metadata", flat=True):
        found = metadata or {}
        yield Archive(Path(settings.EVENT_ARCHIVE_DIR) / found["file"], found["rows"], found["sha256"])


def lately_restored(now: datetime) -> set[str]:
    """Return the names of the partitions that were restored in the last EVENT_RESTORED_DAYS."""
    since = now - timedelta(days=settings.EVENT_RESTORED_DAYS)
    restored = _entries(AuditAction.EVENTS_RESTORED).filter(created_at__gt=since)
    return {str(name) for name in restored.values_list("affected_id", flat=True)}


def _entries(action: AuditAction) -> AuditEntryQuerySet:
    return AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(action)


def record(
    action: AuditAction,
    done: str,
    *,
    partition: Partition,
    archive: Archive,
    actor: Actor,
    now: datetime,
    **more: Any,
) -> None:
    """Record what was `done` with a partition ("archived", "restored")."""
    entry = auditlog.entry(
        tenant_id=SERVICE_TENANT_ID,
        action=action,
        affected_id=partition.name,
        description=f"Events received from {partition.start:%Y-%m-%d} to {partition.end:%Y-%m-%d} {done}",
        metadata={
            "partition": partition.name,
            "received_from": partition.start.isoformat(),
            "received_before": partition.end.isoformat(),
            "rows": archive.rows,
            "sha256": archive.sha256,
            "file": archive.path.name,
            **more,
        },
        actor=actor,
        now=now,
    )
    auditlog.record_all([entry])


def _record_once(partition: Partition, archive: Archive, actor: Actor, now: datetime) -> bool:
    """Record an archive unless that was done. Raises BadArchive if the partition has other rows by now.

    A rival may have dropped it, with an archive of its own, while its rows were read. The file of a part is
    removed unless the log names it; under the lock, so nobody is about to record the same one.
    """
    with environments.atomic():
        begin()
        (is_there,) = sql.query("SELECT to_regclass(%s) IS NOT NULL", [partition.name])[0]
        is_known = archive in recorded(partition)
        if not is_there or _count(partition) != archive.rows:
            if not is_known:
                archive.path.unlink(missing_ok=True)
            raise BadArchive("The partition changed while it was archived")
        if not is_known:
            action = AuditAction.EVENTS_ARCHIVED
            record(action, "archived", partition=partition, archive=archive, actor=actor, now=now)
    return True


def _count(partition: Partition) -> int:
    with environments.atomic():
        sql.execute("SET LOCAL statement_timeout = 0")
        low, high = partition.bounds
        return BehaviorEvent.objects.filter(id__gte=low, id__lt=high).count()


def _lines(partition: Partition) -> Iterator[bytes]:
    """Yield the partition's events in order, in short statements: a long transaction would hold up others."""
    position, end = partition.bounds
    while rows := sql.prepared(_LINES, [position, end]):
        for _, line in rows:
            yield line.encode() + b"\n"
        position = UUID(int=rows[-1][0].int + 1)
