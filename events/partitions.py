"""Partitions of the events table, by ranges of ids, which are times: made ahead, dropped when outlived.

Ingest goes on meanwhile: a partition is built apart and then attached. Dropping one locks the whole table for
an instant, so it gives up quickly and tries again. The default partition takes what no other one covers,
until its rows move to where they belong.

The service owns no table: functions of migration 0007 make and drop partitions for it, and refuse to drop
what was received in the last 30 days.
"""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, OperationalError
from psycopg import errors

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.core import environments
from compliance.core.identifiers import first_id_at, moment_of
from compliance.stores import sql
from events.listing.spans import TABLE, Partition, Span, gap, missing

log = logging.getLogger(__name__)

DEFAULT = f"{TABLE}_default"
RETRY_DELAYS = (0.0, 0.5, 2.0)
MAY_PASS = (errors.LockNotAvailable, errors.DeadlockDetected, errors.CheckViolation)
LOCK_TIMEOUT = "300ms"
_ADVISORY_LOCK = 0x65_76_65_6E_74_73
SOON = timedelta(minutes=2)  # ids this near the present may still be written
_BOUNDS = re.compile(r"FROM \('([0-9a-f-]{36})'\) TO \('([0-9a-f-]{36})'\)")


@dataclass
class Maintenance:
    """What was done, or is to be done in a dry run; `postponed` names what could not be locked in time."""

    made: list[Partition] = field(default_factory=list)
    dropped: list[Partition] = field(default_factory=list)
    postponed: list[str] = field(default_factory=list)
    moved_rows: int = 0
    deleted_rows: int = 0
    default_rows: int = 0

    @property
    def is_complete(self) -> bool:
        return not self.postponed and not self.default_rows


def maintain(*, actor: Actor, now: datetime, dry_run: bool = False) -> Maintenance:
    """Make partitions ahead, give the default's rows a place, drop what is past its retention.

    Safe to repeat and to run twice at once. Each partition is one transaction of its own.
    """
    horizon = now - timedelta(days=settings.EVENT_RETENTION_DAYS)
    existing = listed()
    ahead = missing(existing, now=now, span=Span(settings.EVENT_PARTITION))
    wanted = [*ahead, *_for_default([*existing, *ahead], now, horizon)]
    outlived = [partition for partition in existing if partition.end <= horizon]
    if dry_run:
        return Maintenance(wanted, outlived, default_rows=default_rows())
    done = Maintenance()
    for partition in wanted:
        moved = _patiently(partial(_make, partition, now))
        if moved is None:
            done.postponed.append(partition.name)
        elif moved >= 0:
            done.made.append(partition)
            done.moved_rows += moved
    for partition in outlived:
        is_dropped = _patiently(partial(_drop, partition, actor, now))
        if is_dropped is None:
            done.postponed.append(partition.name)
        elif is_dropped:
            done.dropped.append(partition)
    done.deleted_rows = _forget_default(horizon, actor, now)
    done.default_rows = default_rows()
    return done


def listed() -> list[Partition]:
    """Return the present partitions, oldest first, without the default."""
    rows = sql.query(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i"
        " JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass",
        [TABLE],
    )
    found = [
        Partition(name, moment_of(UUID(match[1])), moment_of(UUID(match[2])))
        for name, bounds in rows
        if (match := _BOUNDS.search(bounds))
    ]
    return sorted(found, key=lambda partition: partition.start)


def default_rows() -> int:
    """Return how many rows wait in the default partition, at most 100,000."""
    count: int = sql.query(f"SELECT count(*) FROM (SELECT 1 FROM {DEFAULT} LIMIT 100000) x")[0][0]
    return count


def _for_default(known: list[Partition], now: datetime, horizon: datetime) -> list[Partition]:
    """Return the partitions between the retention's horizon and now that rows of the default wait for."""
    found: list[Partition] = []
    position = horizon
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
    with environments.atomic():
        _begin()
        if any(one.start < partition.end and partition.start < one.end for one in listed()):
            return -1
        low, high = partition.bounds
        waiting = sql.query(f"SELECT 1 FROM {DEFAULT} WHERE id >= %s AND id < %s LIMIT 1", [low, high])
        if partition.start < now + SOON and partition.end > now - SOON and waiting:
            cut = (now + SOON).replace(second=0, microsecond=0) + timedelta(minutes=1)
            if cut >= partition.end:
                return -1
            partition = Partition.over(cut, partition.end)
        moved: int = sql.query("SELECT events_partition_make(%s, %s)", [partition.start, partition.end])[0][0]
    log.info("partition %s made, %d rows moved to it", partition.name, moved)
    return moved


def _drop(partition: Partition, actor: Actor, now: datetime) -> bool:
    with environments.atomic():
        _begin()
        estimate = sql.query("SELECT events_partition_drop(%s)", [partition.name])[0][0]
        if estimate is None:
            return False
        _record(partition.name, partition.start, partition.end, estimate, actor, now)
    log.info("partition %s dropped", partition.name)
    return True


def _forget_default(horizon: datetime, actor: Actor, now: datetime) -> int:
    with environments.atomic():
        oldest = sql.query(f"SELECT id FROM {DEFAULT} ORDER BY id LIMIT 1", [])
        if not oldest or moment_of(oldest[0][0]) >= horizon:
            return 0
        deleted: int = sql.query("SELECT events_default_forget(%s)", [horizon])[0][0]
        if deleted:
            _record(DEFAULT, moment_of(oldest[0][0]), horizon, deleted, actor, now)
    return deleted


def _record(name: str, start: datetime, end: datetime, rows: int, actor: Actor, now: datetime) -> None:
    received = {"received_from": start.isoformat(), "received_before": end.isoformat()}
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=AuditAction.EVENTS_DROPPED,
        affected_id=name,
        description=f"Events received before {end:%Y-%m-%d} dropped: past their retention",
        metadata={"partition": name, **received, "rows_estimate": rows},
        actor=actor,
        now=now,
    )


def _patiently(step: Callable[[], Any]) -> Any:
    for delay in RETRY_DELAYS:
        time.sleep(delay)
        try:
            return step()
        except (OperationalError, IntegrityError) as error:
            cause = error.__cause__
            if not isinstance(cause, MAY_PASS):
                raise
            log.info("partition maintenance waits: %s", type(cause).__name__)
    return None


def _begin() -> None:
    sql.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    sql.execute("SET LOCAL statement_timeout = 0")
    sql.query("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
