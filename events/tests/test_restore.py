"""Archives restored: queries see the events again, for a while; what is not genuine is refused."""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from auditlog import services as auditlog
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from events import partitions
from events.archiving import changes, restoring
from events.errors import BadArchive, RangeTaken, UnknownArchive
from events.models import BehaviorEvent
from events.tests import test_archives
from events.tests.conftest import World, shared_world
from events.tests.factories import store_event
from events.tests.test_archives import ACTOR, ODD, Killed, drop, end, entries, is_stored, run, store_old

folder, old, patient = test_archives.folder, test_archives.old, test_archives.patient
world = shared_world


@pytest.fixture
def archive(old: BehaviorEvent, folder: Path) -> Path:
    """The archive of the old event's partition, which has been dropped."""
    assert drop().is_complete
    assert not is_stored(old)
    (path,) = folder.iterdir()
    return path


def restore(path: Path, *, is_forced: bool = False) -> None:
    restoring.restore(path=path, is_forced=is_forced, actor=ACTOR, now=now())


def columns_of(event: BehaviorEvent) -> list[Any]:
    return sql.query(
        "SELECT *, details::text, reasons::text FROM events_behaviorevent WHERE id = %s", [event.id]
    )


def test_restored_event_is_the_one_that_was_dropped(world: World, folder: Path) -> None:
    old = store_old(world, details=ODD, session_id="s", reasons=[{"name": "prior", "weight": 0.1 + 0.2}])
    before = columns_of(old)
    (partition,) = drop().dropped
    (path,) = folder.iterdir()

    code, told = run("partition_restore", str(path))

    assert (code, told["rows"]) == (0, 1)
    assert columns_of(old) == before
    assert partition in changes.listed()
    (entry,) = entries("events.restored")
    assert entry == {**entries("events.dropped")[0], "digest_in_log": True}


def test_restored_partition_is_kept_for_its_time_and_then_dropped(
    old: BehaviorEvent, archive: Path, settings: Any
) -> None:
    settings.EVENT_RESTORED_DAYS = 10
    restore(archive)

    kept, gone = drop(), drop(now() + timedelta(days=11))

    assert [one.start <= old.received_at < one.end for one in kept.restored] == [True]
    assert (kept.dropped, kept.is_complete) == ([], True)
    assert gone.dropped[0] == kept.restored[0]
    assert not is_stored(old)
    assert len(entries("events.archived")) == 1 + len(gone.dropped) - 1


def test_restored_partition_can_be_dropped_at_once(old: BehaviorEvent, archive: Path) -> None:
    restore(archive)

    code, told = run("partition_maintain", "--drop-restored")

    assert (code, len(told["dropped"])) == (0, 1)
    assert not is_stored(old)
    assert len(entries("events.archived")) == 1


def test_restored_partition_is_as_any_other(old: BehaviorEvent, archive: Path, settings: Any) -> None:
    restore(archive)

    name = partitions.outlived(changes.listed(), now())[0].name
    privileges = sql.query(
        "SELECT has_table_privilege(%s, %s, 'INSERT, SELECT, UPDATE, DELETE')",
        [settings.DATABASES["default"]["USER"], name],
    )
    shapes = sql.query(
        "SELECT DISTINCT (SELECT count(*) FROM pg_index x WHERE x.indrelid = i.inhrelid),"
        " (SELECT count(*) FROM pg_constraint k WHERE k.conrelid = i.inhrelid AND contype = 'c')"
        " FROM pg_inherits i WHERE i.inhparent = 'events_behaviorevent'::regclass"
    )
    assert privileges == [(False,)]
    assert shapes == [(8, 3)]


def test_archive_is_restored_once(archive: Path) -> None:
    assert run("partition_restore", str(archive))[0] == 0

    assert run("partition_restore", str(archive))[0] == 4
    assert len(entries("events.restored")) == 1


def test_archive_is_not_restored_over_rows_of_the_default(
    world: World, old: BehaviorEvent, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "RETRY_DELAYS", (0.0,))
    late = store_event(world.agent, 0.1, old.received_at + timedelta(seconds=1))

    with pytest.raises(RangeTaken, match="default partition"):
        restore(archive)

    assert is_stored(late)
    assert not is_stored(old)


def forged(path: Path, change: Callable[[list[bytes]], Any]) -> Path:
    """Change an archive's header and lines, and give it the footer that they ask for."""
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[:-1]
    change(lines)
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    footer = json.dumps({"rows": len(lines) - 1, "sha256": digest}).encode() + b"\n"
    made = path.with_name(f"forged-{path.name}")
    made.write_bytes(gzip.compress(b"".join([*lines, footer])))
    return made


def edited(line: int, old: bytes, new: bytes) -> Callable[[list[bytes]], None]:
    def change(lines: list[bytes]) -> None:
        assert old in lines[line]
        lines[line] = lines[line].replace(old, new)

    return change


def test_tampered_archive_with_its_own_digest_is_refused_unless_forced(
    old: BehaviorEvent, archive: Path
) -> None:
    path = forged(archive, edited(1, b'"api_call"', b'"data_access"'))

    with pytest.raises(UnknownArchive):
        restore(path)
    assert not is_stored(old)
    assert run("partition_restore", str(path))[0] == 4

    restore(path, is_forced=True)

    assert BehaviorEvent.objects.get(id=old.id).action_type == "data_access"
    assert [entry["digest_in_log"] for entry in entries("events.restored")] == [False]


def test_forced_forgery_does_not_take_the_place_of_the_genuine_archive(
    old: BehaviorEvent, archive: Path
) -> None:
    genuine = archive.read_bytes()
    path = forged(
        archive, lambda lines: lines.append(lines[1].replace(str(old.id).encode()[-4:], b"ffff", 1))
    )
    restore(path, is_forced=True)

    run("partition_maintain", "--drop-restored")

    assert not is_stored(old)
    assert archive.read_bytes() == genuine
    assert [entry["rows"] for entry in entries("events.archived")] == [1, 2]


@pytest.mark.parametrize("damage", [name for name in test_archives.DAMAGES if name != "gone"])
def test_damaged_archive_is_refused_even_if_forced(old: BehaviorEvent, archive: Path, damage: str) -> None:
    test_archives.DAMAGES[damage](archive)

    with pytest.raises(BadArchive):
        restore(archive, is_forced=True)

    assert not is_stored(old)
    assert entries("events.restored") == []


@pytest.mark.parametrize(
    "change",
    [
        edited(0, b'"live"', b'"test"'),
        edited(0, b'"version":1', b'"version":2'),
        edited(0, b'"model_version"', b'"mood"'),
        edited(0, b'"columns":[', b'"columns":["id\\"; --",'),
        edited(0, b"events_behaviorevent_", b"events_"),
        edited(0, b'"environment"', b'"x":1,"environment"'),
        edited(1, b'"api_call"', b'"dancing"'),
        edited(1, b'"api_call"', b"null"),
        edited(1, b'"api_call"', b'"\\u0000"'),
        edited(1, b'{"id":"0', b'{"id":"f'),
        edited(
            1,
            b"{",
            b"[",
        ),
        edited(1, b"api", b"\xff"),
        lambda lines: lines.append(lines[1]),
        lambda lines: lines.append(b"7\n"),
    ],
)
def test_forged_archive_that_is_none_of_this_service_is_refused_even_if_forced(
    old: BehaviorEvent, archive: Path, change: Callable[[list[bytes]], Any]
) -> None:
    path = forged(archive, change)

    with pytest.raises(BadArchive):
        restore(path, is_forced=True)

    assert not is_stored(old)
    assert all(one.end > now() - timedelta(days=183) for one in changes.listed())


@pytest.mark.parametrize(
    ("bound", "year"), [("from", b"10"), ("from", b"00"), ("before", b"30"), ("before", b"10")]
)
def test_archive_of_a_range_that_no_partition_has_is_refused(archive: Path, bound: str, year: bytes) -> None:
    before = f'"received_{bound}":"'.encode()
    path = forged(archive, edited(0, before + b"20", before + year))

    with pytest.raises((BadArchive, RangeTaken)):
        restore(path, is_forced=True)


def test_archive_of_live_is_not_restored_in_test(archive: Path) -> None:
    with environments.use(Environment.TEST), pytest.raises(BadArchive, match="live environment"):
        restore(archive, is_forced=True)


def test_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    assert run("partition_restore", str(tmp_path / "none.jsonl.gz"))[0] == 3


def one_batch_and_the_end(lines: Iterator[bytes], most: int) -> list[bytes]:
    if not (batch := list(lines)):
        raise Killed
    return batch


STEPS: dict[str, tuple[Any, str, Any]] = {
    "before the table is filled": (sql, "execute", end),
    "while the table is filled": (restoring, "islice", one_batch_and_the_end),
    "before the table is a partition": (restoring, "begin", end),
    "before it is recorded": (auditlog, "record_all", end),
}


@pytest.mark.parametrize("step", STEPS)
def test_crash_at_any_step_leaves_nothing_and_the_next_run_restores(
    old: BehaviorEvent, archive: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(*STEPS[step])
        with pytest.raises(Killed):
            restore(archive)
    assert not is_stored(old)
    assert entries("events.restored") == []

    restore(archive)

    assert is_stored(old)
