"""Restoring an archive: its events become a partition again, which queries and the console read."""

from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

from django.db import DataError, IntegrityError

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import NotFound
from compliance.stores import sql
from events.archiving import archive_file, archives
from events.archiving.archive_file import Archive, ArchiveHeader
from events.archiving.archives import COLUMNS, MOST_AT_ONCE
from events.archiving.changes import begin, overlapping, patiently
from events.archiving.spans import TABLE, Partition
from events.errors import BadArchive, RangeTaken, UnknownArchive

_ADVISORY_LOCK = 0x72_65_73_74_6F_72_65  # "restore"


def restore(*, path: Path, is_forced: bool, actor: Actor, now: datetime) -> Archive:
    """Make an archive's events a partition again, all of them or none.

    `is_forced`: even if the audit log does not name the archive. Raises NotFound, BadArchive, UnknownArchive,
    and RangeTaken where events of that time are stored.
    """
    try:
        header, archive = archive_file.verify(path)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}") from error
    partition = _partition(header)
    known = {(one.rows, one.sha256) for one in archives.recorded(partition)}
    is_known = (archive.rows, archive.sha256) in known
    if not (is_known or is_forced):
        raise UnknownArchive()
    with environments.atomic():
        if not sql.query("SELECT pg_try_advisory_xact_lock(%s)", [_ADVISORY_LOCK])[0][0]:
            raise RangeTaken("Another archive is being restored")
        _require_free(partition)
        _load(archive, partition)
        if patiently(partial(_attach, partition)) is None:
            raise RangeTaken("The events table is locked, or the default partition holds events of that time")
        archives.record(
            AuditAction.EVENTS_RESTORED,
            "restored",
            partition=partition,
            archive=archive,
            actor=actor,
            now=now,
            digest_in_log=is_known,
        )
    return archive


def _partition(header: ArchiveHeader) -> Partition:
    """Return the partition to be made. Raises BadArchive."""
    if header.environment != environments.current().value:
        raise BadArchive(f"The archive is of the {header.environment} environment")
    unknown = set(header.columns) - set(COLUMNS)
    if unknown or not header.columns:
        raise BadArchive(f"The archive has columns that this version does not know: {sorted(unknown)}")
    try:
        start, end = (one.astimezone(UTC) for one in (header.received_from, header.received_before))
    except OverflowError as error:
        raise BadArchive("The archive is of no possible time") from error
    partition = Partition.over(start, end)
    if partition.name != header.partition:
        raise BadArchive("The archive's partition does not have the name of its range")
    return partition


def _require_free(partition: Partition) -> None:
    if taken := overlapping(partition):
        raise RangeTaken(f"{taken.name} covers that time; an archive is restored only where no partition is")


def _load(archive: Archive, partition: Partition) -> None:
    """Fill a table that is not yet a partition: it locks nothing of the others."""
    sql.execute("SET LOCAL statement_timeout = 0")
    with archive_file.opened(archive.path) as reader:
        columns = ", ".join(reader.header.columns)
        insert = (
            f"INSERT INTO {partition.name} ({columns}) SELECT {columns}"
            f" FROM json_populate_recordset(NULL::{TABLE}, %s::json)"
        )
        lines = iter(reader)
        try:
            sql.query("SELECT events_partition_begin(%s, %s)", [partition.start, partition.end])
            while batch := list(islice(lines, MOST_AT_ONCE)):
                sql.execute(insert, [(b"[" + b",".join(batch) + b"]").decode()])
        except (DataError, IntegrityError, UnicodeDecodeError) as error:
            raise BadArchive(f"The archive holds what is no event of a partition: {error}") from error
        if (reader.footer.rows, reader.footer.sha256) != (archive.rows, archive.sha256):
            raise BadArchive("The archive was changed while it was read")


def _attach(partition: Partition) -> bool:
    with environments.atomic():
        begin()
        _require_free(partition)
        sql.query("SELECT events_partition_attach(%s, %s)", [partition.start, partition.end])
    return True
