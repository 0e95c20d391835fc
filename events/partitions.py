"""Partitions of the events table, by ranges of ids, which are times: made ahead, archived, dropped outlived.

Ingest goes on meanwhile: a partition is built apart and then attached. Dropping one locks the whole table for
an instant, so it gives up quickly and tries again. The default partition takes what no other one covers,
until its rows move to where they belong.

The service owns no table: functions of the migration make and drop partitions for it, and refuse to drop
what was received in the last 30 days or is not archived.
"""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from django.conf import settings

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.core.identifiers import first_id_at, moment_of
from compliance.stores import sql
from events.archiving import archives
from events.archiving.archive_file import Archive
from events.archiving.changes import begin, listed, overlapping, patiently
from events.archiving.spans import TABLE, Partition, Span, gap, missing
from events.inbox.models import OpenEvent

log = logging.getLogger(__name__)

DEFAULT = f"{TABLE}_default"
SOON = timedelta(minutes=2)  # ids this near the present may still be written
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # no partition begins before


@dataclass
class Maintenance:
    """The acts of a maintenance, or of a dry run.

    `postponed`: what could not be locked in time. `unarchived`: why partitions could not be archived, and so
    were not dropped. `restored`: what is past its retention and stays for a while.
    """

    made: list[Partition] = field(default_factory=list)
    dropped: list[Partition] = field(default_factory=list)
    restored: list[Partition] = field(default_factory=list)
    postponed: list[str] = field(default_factory=list)
    unarchived: list[str] = field(default_factory=list)
    moved_rows: int = 0
    default_rows: int = 0

    @property
    def is_complete(self) -> bool:
        return not (self.postponed or self.unarchived or self.default_rows)


def maintain(
    *, actor: Actor, now: datetime, dry_run: bool = False, drop_restored: bool = False
) -> Maintenance:
    """Make partitions ahead, give the default's rows a place, archive and drop what is past its retention.

    Safe to repeat and to run twice at once. Each partition is one transaction of its own.
    """
    existing = listed()
    ahead = missing(existing, now=now, span=Span(settings.EVENT_PARTITION))
    wanted = [*ahead, *_for_default([*existing, *ahead], now)]
    past = outlived([*existing, *wanted], now)
    kept = set() if drop_restored else archives.lately_restored(now)
    restored = [partition for partition in past if partition.name in kept]
    planned = Maintenance(wanted, [partition for partition in past if partition not in restored], restored)
    done = planned if dry_run else Maintenance(restored=restored)
    if not dry_run:
        for partition in wanted:
            moved = patiently(partial(_make, partition, now))
            if moved is None:
                done.postponed.append(partition.name)
            elif moved >= 0:
                done.made.append(partition)
                done.moved_rows += moved
        for partition in planned.dropped:
            if partition.name not in done.postponed:
                _archive_and_drop(partition, done, actor, now)
    done.default_rows = default_rows()
    return done


def outlived(known: list[Partition], now: datetime) -> list[Partition]:
    """Return the partitions whose events are all past their retention."""
    horizon = now - timedelta(days=settings.EVENT_RETENTION_DAYS)
    return [partition for partition in known if partition.end <= horizon]


def _archive_and_drop(partition: Partition, done: Maintenance, actor: Actor, now: datetime) -> None:
    try:
        archive = archives.ensure(partition=partition, actor=actor, now=now)
    except (ServiceError, OSError) as error:
        done.unarchived.append(f"{partition.name}: {error}")
        return
    is_dropped = patiently(partial(_drop, partition, archive, actor, now))
    if is_dropped is None:
        done.postponed.append(partition.name)
    elif is_dropped:
        done.dropped.append(partition)


def default_rows() -> int:
    """Return how many rows wait in the default partition, at most 100,000."""
    count: int = sql.query(f"SELECT count(*) FROM (SELECT 1 FROM {DEFAULT} LIMIT 100000) x")[0][0]
    return count


def _for_default(known: list[Partition], now: datetime) -> list[Partition]:
    """Return the partitions of the past that rows of the default wait for."""
    found: list[Partition] = []
    position = EARLIEST
    while rows := sql.query(
        f"SELECT id FROM {DEFAULT} WHERE id >= %s AND id < %s ORDER BY id LIMIT 1",
        [first_id_at(position), first_id_at(now)],
    ):
        at = moment_of(rows[0][0])
        holder = next((one for one in [*known, *found] if one.start <= at < one.end), None)
        if holder is None:
            holder = gap([*known, *found], at=at, span=Span(settings.EVENT_PARTITION))
            found.append(holder)
        position = holder.end
    return found


def _make(partition: Partition, now: datetime) -> int:
    """Build and attach one partition; return how many rows it took from the default, -1 if it exists by now.

    Rows of the default can't move while more of their kind arrive: the partition then begins a little ahead
    of the present, and the next run makes the one for what lies before.
    """
    low, high = partition.bounds
    # Before the transaction: on Citus the function's owner has other connections than the service.
    waiting = sql.query(f"SELECT 1 FROM {DEFAULT} WHERE id >= %s AND id < %s LIMIT 1", [low, high])
    with environments.atomic():
        begin()
        if overlapping(partition):
            return -1
        if partition.start < now + SOON and partition.end > now - SOON and waiting:
            cut = (now + SOON).replace(second=0, microsecond=0) + timedelta(minutes=1)
            if cut >= partition.end:
                return -1
            partition = Partition.over(cut, partition.end)
        moved: int = sql.query("SELECT events_partition_make(%s, %s)", [partition.start, partition.end])[0][0]
    log.info("partition %s made, %d rows moved to it", partition.name, moved)
    return moved


def _drop(partition: Partition, archive: Archive, actor: Actor, now: datetime) -> bool:
    low, high = partition.bounds
    # A transaction of their own: on Citus the function's owner and the service cannot change rows in one.
    OpenEvent.objects.filter(event_id__gte=low, event_id__lt=high).delete()
    with environments.atomic():
        begin()
        dropped = sql.query("SELECT events_partition_drop(%s, %s)", [partition.name, archive.sha256])
        if dropped[0][0] is None:
            return False
        done = "dropped: past their retention"
        archives.record(
            AuditAction.EVENTS_DROPPED, done, partition=partition, archive=archive, actor=actor, now=now
        )
    log.info("partition %s dropped", partition.name)
    return True
