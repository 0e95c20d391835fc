"""Archives of partitions: nothing is dropped without one, whatever fails in between."""

import gzip
import hashlib
import io
import json
import os
import stat
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import OperationalError

from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id_at
from compliance.stores import sql
from compliance.tests.threads import THREADS, at_once
from events import partitions
from events.archiving import archive_file, archives, changes
from events.archiving.archives import COLUMNS
from events.archiving.spans import Partition, Span, gap
from events.errors import BadArchive
from events.models import BehaviorEvent
from events.partitions import maintain
from events.tests.conftest import World
from events.tests.factories import judge, store_event
from ops import doctor

ACTOR = Actor.system("tests")
ODD = {"amount": 10**400, "note": "ü\n\u2028\\", "nested": [{"a": 1.50}], "none": None}


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.EVENT_ARCHIVE_DIR = str(tmp_path)
    settings.EVENT_RETENTION_DAYS = 183
    return tmp_path


@pytest.fixture
def old(world: World) -> BehaviorEvent:
    """An event past its retention, in a partition of its own."""
    return store_old(world)


def store_old(world: World, **fields: Any) -> BehaviorEvent:
    return store_event(world.agent, 0.9, now() - timedelta(days=300), **fields)


def settle(event: BehaviorEvent) -> Partition:
    """Have the event's partition made; it takes the event from the default one."""
    partition = gap(changes.listed(), at=event.received_at, span=Span.MONTH)
    sql.query("SELECT events_partition_make(%s, %s)", [partition.start, partition.end])
    return partition


def is_stored(event: BehaviorEvent) -> bool:
    return BehaviorEvent.objects.filter(id=event.id).exists()


def entries(action: str) -> list[dict[str, Any]]:
    found = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(action).order_by("created_at", "id")
    return [entry.metadata or {} for entry in found]


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until PostgreSQL ends an autovacuum for us, which it does after a second."""
    monkeypatch.setattr(changes, "LOCK_TIMEOUT", "10s")


def drop(moment: datetime | None = None) -> partitions.Maintenance:
    return maintain(actor=ACTOR, now=moment or now())


def test_archive_holds_every_column_and_the_reviews_between_header_and_footer(
    world: World, folder: Path
) -> None:
    old = store_old(world, details=ODD, session_id="s", reasons=[{"name": "prior", "weight": 1.5}])
    judge(old, note="seen", actor=ACTOR)

    (partition,) = drop().dropped

    (path,) = folder.iterdir()
    header, row, footer = lines_of(path)
    assert header == {
        "version": 1,
        "environment": "live",
        "partition": partition.name,
        "received_from": f"{partition.start:%Y-%m-%dT%H:%M:%SZ}",
        "received_before": f"{partition.end:%Y-%m-%dT%H:%M:%SZ}",
        "columns": list(COLUMNS),
    }
    assert set(row) == {*COLUMNS, "reviews"}
    assert (row["id"], row["details"], row["session_id"]) == (str(old.id), ODD, "s")
    assert (row["risk_score"], row["reasons"]) == (0.9, [{"name": "prior", "weight": 1.5}])
    assert [(review["verdict"], review["note"]) for review in row["reviews"]] == [("confirmed", "seen")]
    before_footer = gzip.decompress(path.read_bytes()).rpartition(b'{"rows"')[0]
    assert footer == {"rows": 1, "sha256": hashlib.sha256(before_footer).hexdigest()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_archive_and_drop_stand_in_the_audit_log_with_the_digest(old: BehaviorEvent, folder: Path) -> None:
    (partition,) = drop().dropped

    (path,) = folder.iterdir()
    told = {
        "partition": partition.name,
        "received_from": partition.start.isoformat(),
        "received_before": partition.end.isoformat(),
        "rows": 1,
        "sha256": lines_of(path)[-1]["sha256"],
        "file": path.name,
    }
    assert (entries("events.archived"), entries("events.dropped")) == ([told], [told])
    assert not is_stored(old)


def test_same_rows_give_the_same_bytes(old: BehaviorEvent, settings: Any, tmp_path: Path) -> None:
    partition = settle(old)
    first = archives.ensure(partition=partition, actor=ACTOR, now=now())
    settings.EVENT_ARCHIVE_DIR = str(tmp_path / "other")
    (tmp_path / "other").mkdir()

    second = archives.ensure(partition=partition, actor=ACTOR, now=now() + timedelta(days=1))

    assert first.path != second.path
    assert first.path.read_bytes() == second.path.read_bytes()
    assert len(entries("events.archived")) == 1


def test_long_partition_is_read_in_order_and_in_parts(world: World, old: BehaviorEvent) -> None:
    BehaviorEvent.objects.bulk_create(
        make_row(old, old.received_at + timedelta(milliseconds=number)) for number in range(1, 450)
    )
    partition = settle(old)

    made = archives.ensure(partition=partition, actor=ACTOR, now=now())

    ids = [row["id"] for row in lines_of(made.path)[1:-1]]
    assert (made.rows, ids) == (450, sorted(ids))
    assert len(set(ids)) == 450


def make_row(event: BehaviorEvent, at: datetime) -> BehaviorEvent:
    row = BehaviorEvent.objects.get(id=event.id)
    row.id, row.received_at = UUID(new_id_at(at)), at
    return row


def test_archive_is_written_and_read_at_constant_memory(old: BehaviorEvent, folder: Path) -> None:
    header, _ = archive_file.verify(archives.ensure(partition=settle(old), actor=ACTOR, now=now()).path)
    line = json.dumps({"details": "x" * 1_000}).encode() + b"\n"
    tracemalloc.start()

    written = archive_file.write(folder, header, (line for _ in range(20_000)))
    found = archive_file.verify(written.path)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == (header, written)
    assert written.rows == 20_000
    assert peak < 2_000_000


@pytest.mark.parametrize("problem", ["unset", "missing", "a file"])
def test_without_a_folder_nothing_is_dropped_and_the_doctor_tells(
    old: BehaviorEvent, settings: Any, tmp_path: Path, problem: str
) -> None:
    (tmp_path / "a file").touch()
    settings.EVENT_ARCHIVE_DIR = "" if problem == "unset" else str(tmp_path / problem)

    done = drop()

    assert is_stored(old)
    assert (done.dropped, done.is_complete) == ([], False)
    assert "no events are dropped" in done.unarchived[0]
    assert "no events are dropped" in doctor.archives_writable(now()).problem
    assert entries("events.archived") == []


class Killed(BaseException):
    """Stands for the end of the process."""


def end(*args: Any, **kwargs: Any) -> NoReturn:
    raise Killed


def last_line_is_lost(lines: Callable[..., Any]) -> Callable[..., Any]:
    def cut(partition: Partition) -> Iterator[bytes]:
        yield next(lines(partition))
        raise Killed

    return cut


STEPS: dict[str, tuple[Any, str]] = {
    "while the file is written": (archives, "_lines"),
    "before the file is on disk": (os, "fsync"),
    "before the file has its name": (Path, "replace"),
    "before the file is read back": (archive_file, "verify"),
    "before the archive is recorded": (auditlog, "record_all"),
    "before the drop": (partitions, "patiently"),
}


@pytest.mark.parametrize("step", STEPS)
def test_crash_at_any_step_loses_no_event_and_the_next_run_finishes(
    old: BehaviorEvent, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    partition = settle(old)
    place, name = STEPS[step]
    with monkeypatch.context() as broken:
        broken.setattr(place, name, last_line_is_lost(archives._lines) if name == "_lines" else end)
        with pytest.raises(Killed):
            drop()

    assert is_stored(old)
    assert drop().dropped == [partition]
    assert not is_stored(old)
    (path,) = folder.iterdir()
    assert [told["sha256"] for told in entries("events.dropped")] == [lines_of(path)[-1]["sha256"]]
    assert len(entries("events.archived")) == 1


def test_crash_between_the_drop_and_its_entry_undoes_the_drop(
    old: BehaviorEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives.ensure(partition=settle(old), actor=ACTOR, now=now())
    monkeypatch.setattr(auditlog, "record_all", end)

    with pytest.raises(Killed):
        drop()

    assert is_stored(old)


def test_file_that_a_killed_process_left_is_removed_after_a_day(old: BehaviorEvent, folder: Path) -> None:
    partition = settle(old)
    young, aged = (folder / f".live-{partition.name}.{name}" for name in ("young", "aged"))
    for path in (young, aged):
        path.touch()
    os.utime(aged, times=(time.time() - 90_000,) * 2)

    drop()

    assert young.exists()
    assert not aged.exists()


def test_second_run_writes_and_records_nothing(old: BehaviorEvent, folder: Path) -> None:
    partition = settle(old)
    first = archives.ensure(partition=partition, actor=ACTOR, now=now())
    inode = first.path.stat().st_ino

    second = archives.ensure(partition=partition, actor=ACTOR, now=now())

    assert second == first
    assert second.path.stat().st_ino == inode
    assert len(entries("events.archived")) == 1


def rewritten(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "flipped": lambda path: path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes())),
    "without its footer": lambda path: rewritten(path, lambda text: text.rpartition(b'{"rows"')[0]),
    "with a line more": lambda path: rewritten(path, lambda text: text + b"{}\n"),
    "with a line changed": lambda path: rewritten(path, lambda text: text.replace(b"0.9", b"0.1")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_archive_is_written_anew_before_the_drop(old: BehaviorEvent, damage: str) -> None:
    partition = settle(old)
    made = archives.ensure(partition=partition, actor=ACTOR, now=now())
    DAMAGES[damage](made.path)

    assert drop().dropped == [partition]
    assert archive_file.verify(made.path)[1].sha256 == made.sha256


def test_row_that_came_after_the_archive_is_archived_too(world: World, old: BehaviorEvent) -> None:
    partition = settle(old)
    first = archives.ensure(partition=partition, actor=ACTOR, now=now())
    BehaviorEvent.objects.bulk_create([make_row(old, old.received_at + timedelta(seconds=1))])

    with pytest.raises(OperationalError, match="no archive of the 2 rows"), environments.atomic():
        sql.query("SELECT events_partition_drop(%s, %s)", [partition.name, first.sha256])
    drop()

    assert [told["rows"] for told in entries("events.archived")] == [1, 2]
    assert [told["rows"] for told in entries("events.dropped")] == [2]
    assert first.path.exists()


@pytest.mark.parametrize("is_dropped_after", [0, 1])
def test_rival_that_drops_the_partition_meanwhile_leaves_no_archive_of_a_part(
    old: BehaviorEvent, folder: Path, monkeypatch: pytest.MonkeyPatch, is_dropped_after: int
) -> None:
    partition, lines = settle(old), archives._lines

    def overtaken(partition: Partition) -> Iterator[bytes]:
        monkeypatch.setattr(archives, "_lines", lines)
        found = lines(partition)
        yield from islice(found, is_dropped_after)
        assert drop().dropped == [partition]
        yield from found

    monkeypatch.setattr(archives, "_lines", overtaken)
    with pytest.raises(BadArchive, match="changed while"):
        archives.ensure(partition=partition, actor=ACTOR, now=now())

    (recorded,) = entries("events.archived")
    assert recorded["rows"] == 1
    assert [path.name for path in folder.iterdir()] == [recorded["file"]]


def test_several_at_once_record_one_archive_and_one_drop(committed: None, world: World, folder: Path) -> None:
    event = store_event(world.agent, 0.9, datetime(2001, 1, 9, tzinfo=UTC))
    partition = settle(event)

    made = at_once(lambda: archives.ensure(partition=partition, actor=ACTOR, now=now()))
    done = at_once(drop)

    # Events that other tests committed may be old enough to be dropped, too.
    kept = [path.name for path in folder.iterdir() if partition.name in path.name]
    assert [one.path.name for one in made] == kept * THREADS
    assert [one for each in done for one in each.dropped if one == partition] == [partition]
    assert not is_stored(event)
    for action in ("events.archived", "events.dropped"):
        assert [told["rows"] for told in entries(action) if told["partition"] == partition.name] == [1]


def test_database_drops_nothing_for_a_digest_that_the_log_does_not_name(old: BehaviorEvent) -> None:
    partition = settle(old)

    with pytest.raises(OperationalError, match="names no archive"), environments.atomic():
        sql.query("SELECT events_partition_drop(%s, %s)", [partition.name, "ab" * 32])

    assert is_stored(old)


def run(command: str, *arguments: str) -> tuple[int, Any]:
    out = io.StringIO()
    try:
        call_command(command, *arguments, json=True, stdout=out, stderr=io.StringIO())
    except SystemExit as ended:
        return int(ended.code or 0), None
    return 0, json.loads(out.getvalue())


def test_command_archives_what_is_outlived_and_drops_nothing(old: BehaviorEvent) -> None:
    partition = settle(old)

    code, told = run("partition_archive")

    assert code == 0
    assert [(row["partition"], row["rows"]) for row in told] == [(partition.name, 1)]
    assert Path(told[0]["file"]).exists()
    assert is_stored(old)


def test_command_archives_a_named_partition_once_it_is_over(world: World) -> None:
    event = store_event(world.agent, 0.1, now() - timedelta(days=70))
    name, present = settle(event).name, next(one for one in changes.listed() if one.end > now()).name

    code, told = run("partition_archive", name)

    assert (code, told[0]["partition"]) == (0, name)
    assert run("partition_archive", present)[0] == 2
    assert run("partition_archive", "events_behaviorevent_nothing")[0] == 3


def test_archives_of_both_environments_have_their_own_names(world: World, folder: Path) -> None:
    with environments.use(Environment.TEST):
        partition = changes.listed()[0]
        made = archives.ensure(partition=partition, actor=ACTOR, now=now())

    assert made.path.name.startswith(f"test-{partition.name}-")
    assert entries("events.archived") == []
