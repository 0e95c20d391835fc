"""The folder of events: nobody else's to write in, and shared by processes of one user."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agentid.reporting.spool import Spool

OTHER_USER = 65_534


def spool(folder: Path) -> Spool:
    return Spool(folder, max_bytes=1_000)


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_new_folder_is_its_users_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        spool(tmp_path / "state" / "spool" / "agent").close()
    finally:
        os.umask(before)

    assert mode(tmp_path / "state" / "spool" / "agent") == 0o700
    assert mode(tmp_path / "state" / "spool") == 0o700


def test_readers_are_shut_out(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o755)

    spool(folder).close()

    assert mode(folder) == 0o700


def linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def dangling(folder: Path) -> None:
    folder.symlink_to(folder.parent / "nowhere")


def a_file(folder: Path) -> None:
    folder.write_text("x")


def writable_by(bits: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o700 | bits)

    return make


def in_a_folder_writable_by_others(folder: Path) -> None:
    folder.parent.chmod(0o777)


@pytest.mark.parametrize(
    "make",
    [linked, dangling, a_file, writable_by(0o020), writable_by(0o002), in_a_folder_writable_by_others],
)
def test_folder_in_which_others_may_write_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "spool" / "agent"
    folder.parent.mkdir(mode=0o700)
    make(folder)

    with pytest.raises(PermissionError, match=r"agent|spool"):
        spool(folder)

    assert not any(path.name.endswith(".ndjson") for path in tmp_path.rglob("*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("whose", ["agent", "spool"])
def test_folder_of_another_user_is_refused(tmp_path: Path, whose: str) -> None:
    folder = tmp_path / "spool" / "agent"
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o700)
    os.chown(folder if whose == "agent" else folder.parent, OTHER_USER, OTHER_USER)

    with pytest.raises(PermissionError, match="another user"):
        spool(folder)


def test_sticky_folder_above_is_as_good_as_tmp(tmp_path: Path) -> None:
    above = tmp_path / "tmp"
    above.mkdir()
    above.chmod(0o1777)

    spool(above / "agent").close()


def test_lines_before_a_failure_are_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk gets full between two files: the caller learns how many lines were kept."""
    one = spool(tmp_path)
    monkeypatch.setattr("agentid.reporting.spool.MAX_BATCH_EVENTS", 1)
    lines, write = [b'{"n":1}', b'{"n":2}'], os.write

    def full(descriptor: int, content: bytes) -> int:
        if b"2" in bytes(content):
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, content)

    with monkeypatch.context() as while_full:
        while_full.setattr("os.write", full)
        assert one.append(lines) == 1
        with pytest.raises(OSError, match="full"):
            one.append(lines[1:])
    assert one.append(lines[1:]) == 1

    found = []
    while (segment := one.next()) is not None:
        found += segment.lines()
        one.settle(segment)
    assert found == lines
    one.close()


def test_writers_folder_is_taken_over_once_its_lock_is_released(tmp_path: Path) -> None:
    first, second = spool(tmp_path), spool(tmp_path)
    first.append([b'{"n":1}'])

    assert second.adopt() == 0
    first.close()
    assert second.adopt() == 1

    left = second.next()
    assert left is not None
    second.settle(left)
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_rest_that_a_killed_process_wrote_is_sent_once(tmp_path: Path) -> None:
    """It was killed after the lines to send again were written, and before their first file was removed."""
    first = spool(tmp_path)
    first.append([b'{"n":1}', b'{"n":2}'])
    sealed = first.next()
    assert sealed is not None
    sealed.mark_tried("a" * 16, now=1.0)
    (sealed.folder / f"{sealed.number}.r.ndjson").write_bytes(b'{"n":2}\n')
    first.close()
    second = spool(tmp_path)
    assert second.adopt() == 3

    again = second.next()
    assert again is not None
    added = second.settle(again, again=[b'{"n":2}'])
    rest = second.next()

    assert rest is not None
    assert (added, rest.lines()) == (0, [b'{"n":2}'])
    second.settle(rest)
    assert second.next() is None
    second.close()
