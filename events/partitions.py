"""The partitions of the events table, by ranges of ids, which are times: made ahead, dropped outlived.

Ingest goes on meanwhile. A partition is built apart and then attached, which leaves writers alone; dropping
one locks the whole table for an instant, so it gives up quickly and tries again. The default partition is the
last net: it takes what no other partition covers, and its rows move to where they belong.

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
from compliance import environments, sql
from compliance.identifiers import first_id_at, moment_of
from events.spans import TABLE, Partition, Span, gap, missing

log = logging.getLogger(__name__)

DEFAULT = f"{TABLE}_default"
RETRY_DELAYS = (0.0, 0.5, 2.0)
LOCK_TIMEOUT = "300ms"
_ADVISORY_LOCK = 0x65_76_65_6E_74_73
SOON = timedelta(minutes=2)
"""Ids this near the present may still be written."""
_BOUNDS = re.compile(r"FROM \('([0-9a-f-]{36})'\) TO \('([0-9a-f-]{36})'\)")


@dataclass(frozen=True)
class Maintenance:
    """What was done, or is to be done in a dry run; `postponed` names what could not be locked in time."""

    made: list[Partition] = field(default_factory=list)
    dropped: list[Partition] = field(default_factory=list)
    moved_rows: int = 0
    deleted_rows: int = 0
    postponed: list[str] = field(default_factory=list)
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
    wanted = [*missing(existing, now=now, span=_span()), *_for_default(existing, now, horizon)]
    outlived = [partition for partition in existing if partition.end <= horizon]
    if dry_run:
        return Maintenance(wanted, outlived, default_rows=default_rows())
    made: list[Partition] = []
    dropped: list[Partition] = []
    postponed: list[str] = []
    moved = 0
    for partition in wanted:
        count = _patiently(partial(_make, partition, now))
        if count is None:
            postponed.append(partition.name)
        elif count >= 0:
            made.append(partition)
            moved += count
    for partition in outlived:
        done = _patiently(partial(_drop, partition, actor, now))
        if done is None:
            postponed.append(partition.name)
        elif done:
            dropped.append(partition)
    deleted = _forget_default(horizon, actor, now)
    return Maintenance(made, dropped, moved, deleted, postponed, default_rows())


def listed() -> list[Partition]:
    """The partitions there are, oldest first, without the default."""
    rows = sql.query(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i"
        " JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass",
        [TABLE],
    )
    found = [(name, _BOUNDS.search(bounds)) for name, bounds in rows]
    return sorted(
        (
            Partition(name, moment_of(UUID(match[1])), moment_of(UUID(match[2])))
            for name, match in found
            if match
        ),
        key=lambda partition: partition.start,
    )


def default_rows(*, at_most: int = 100_000) -> int:
    """How many rows wait in the default partition, counted up to `at_most`."""
    count: int = sql.query(f"SELECT count(*) FROM (SELECT 1 FROM {DEFAULT} LIMIT %s) x", [at_most])[0][0]
    return count


def _span() -> Span:
    return Span(settings.EVENT_PARTITION)


def _for_default(existing: list[Partition], now: datetime, horizon: datetime) -> list[Partition]:
    """The partitions, from the retention's horizon to the present, that rows of the default wait for."""
    known = [*existing, *missing(existing, now=now, span=_span())]
    found: list[Partition] = []
    position = horizon
    while rows := sql.query(
        f"SELECT id FROM {DEFAULT} WHERE id >= %s AND id < %s ORDER BY id LIMIT 1",
        [first_id_at(position), first_id_at(now)],
    ):
        at = moment_of(rows[0][0])
        holder = next((one for one in known if one.start <= at < one.end), None)
        if holder is None:
            holder = gap(known, at=at, span=_span())
            known.append(holder)
            found.append(holder)
        position = holder.end
    return found


def _make(partition: Partition, now: datetime) -> int:
    """Build and attach one partition; how many rows it took from the default, -1 if somebody was faster.

    Rows of the default can't move while more of their kind arrive: the partition then begins a little ahead
    of the present, and the next run makes the one for what lies before.
    """
    with environments.atomic():
        _begin()
        if any(one.start < partition.end and partition.start < one.end for one in listed()):
            return -1
        if partition.start < now + SOON and partition.end > now - SOON and _waiting(partition):
            cut = (now + SOON).replace(second=0, microsecond=0) + timedelta(minutes=1)
            if cut >= partition.end:
                return -1
            partition = Partition.over(cut, partition.end)
        moved: int = sql.query("SELECT events_partition_make(%s, %s)", [partition.start, partition.end])[0][0]
    log.info("partition %s made, %d rows moved to it", partition.name, moved)
    return moved


def _waiting(partition: Partition) -> bool:
    """Whether the default holds rows of `partition`."""
    low, high = partition.bounds
    return bool(sql.query(f"SELECT 1 FROM {DEFAULT} WHERE id >= %s AND id < %s LIMIT 1", [low, high]))


def _drop(partition: Partition, actor: Actor, now: datetime) -> bool:
    """Drop one partition with its rows, and tell the audit log."""
    with environments.atomic():
        _begin()
        estimate = sql.query("SELECT events_partition_drop(%s)", [partition.name])[0][0]
        if estimate is None:
            return False
        _record(partition.name, partition.start, partition.end, estimate, actor, now)
    log.info("partition %s dropped", partition.name)
    return True


def _forget_default(horizon: datetime, actor: Actor, now: datetime) -> int:
    """Delete the default's rows that are past their retention; how many."""
    with environments.atomic():
        oldest = sql.query(f"SELECT id FROM {DEFAULT} ORDER BY id LIMIT 1", [])
        if not oldest or moment_of(oldest[0][0]) >= horizon:
            return 0
        deleted: int = sql.query("SELECT events_default_forget(%s)", [horizon])[0][0]
        if deleted:
            _record(DEFAULT, moment_of(oldest[0][0]), horizon, deleted, actor, now)
    return deleted


def _record(
    name: str, start: datetime, end: datetime, rows_estimate: int, actor: Actor, now: datetime
) -> None:
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=AuditAction.EVENTS_DROPPED,
        affected_id=name,
        description=f"Events received before {end:%Y-%m-%d} dropped: past their retention",
        metadata={
            "partition": name,
            "received_from": start.isoformat(),
            "received_before": end.isoformat(),
            "rows_estimate": rows_estimate,
        },
        actor=actor,
        now=now,
    )


def _patiently(step: Callable[[], Any]) -> Any:
    """What `step` returns; None when what it must lock stayed taken."""
    for delay in RETRY_DELAYS:
        time.sleep(delay)
        try:
            return step()
        except (OperationalError, IntegrityError) as error:
            if not isinstance(
                error.__cause__, errors.LockNotAvailable | errors.DeadlockDetected | errors.CheckViolation
            ):
                raise
            log.info("partition maintenance waits: %s", type(error.__cause__).__name__)
    return None


def _begin() -> None:
    """One maintainer at a time, and nobody waits long behind it."""
    sql.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    sql.execute("SET LOCAL statement_timeout = 0")
    sql.query("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
