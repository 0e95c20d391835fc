"""Events on disk until the service has them: files of whole lines, each sent as one batch under one key.

`<folder>/<writer>/<number>.ndjson`. A writer's folder is locked as long as its process lives. The process
that acquires the lock of a dead writer sends what is left there. A file is added to until it is sealed, and
is on the disk (fsync) before it is first sent: a repetition under one key has the same content.
"""

import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Self
from uuid import uuid4

from agentid.reporting.encoding import decode

MAX_BATCH_EVENTS = 500
MAX_BATCH_BYTES = 512 * 1024
KEY_LIFETIME = 23 * 3600.0  # seconds; the service remembers an Idempotency-Key for 24 hours
UNSETTLED = "unsettled"
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NAME = re.compile(r"(?P<number>\d{12}(?:\.r)*)(?:\.(?P<at>\d+)-(?P<sender>[0-9a-f]{16}))?\.ndjson")


@dataclass
class Segment:
    """A sealed file; its name keeps `tried_at` (Unix time) and `sender` once it may have been stored."""

    folder: Path
    number: str
    count: int = 0
    size: int = 0
    tried_at: int | None = None
    sender: str = ""

    @property
    def path(self) -> Path:
        tried = "" if self.tried_at is None else f".{self.tried_at}-{self.sender}"
        return self.folder / f"{self.number}{tried}.ndjson"

    @property
    def key(self) -> str:
        """The Idempotency-Key of the batch, of which this content is the only one."""
        return f"agentid-{self.folder.name}-{self.number}"

    def lines(self) -> list[bytes]:
        """The whole lines; what a crash tore is left out."""
        *whole, _torn = self.path.read_bytes().split(b"\n")
        return [line for line in whole if decode(line) is not None]

    def mark_tried(self, sender: str, *, now: float) -> None:
        """Note who sends it and when, unless an earlier try may have got through."""
        if self.tried_at is None:
            self._rename(int(now), sender)
            _sync(self.folder)

    def mark_untried(self) -> None:
        """Note that no try got through."""
        self._rename(None, "")

    def is_sendable(self, sender: str, *, now: float) -> bool:
        """Whether the service would recognise an earlier try: the same API key, within a day."""
        return self.tried_at is None or (
            self.sender == sender and 0 <= now - self.tried_at + 60 <= KEY_LIFETIME
        )

    def _rename(self, tried_at: int | None, sender: str) -> None:
        before = self.path
        self.tried_at, self.sender = tried_at, sender
        before.rename(self.path)


def sender_of(api_key: str) -> str:
    """Names an API key in a file's name; keys of the service have 256 random bits."""
    return hashlib.sha256(api_key.encode()).hexdigest()[:16]


class WriterFolder:
    """The locked folder of one writer, a living or a dead one."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def create(cls, parent: Path) -> Self:
        """A folder of our own; it gets its name only once it is locked."""
        name = f"{time.time_ns():020d}-{uuid4().hex[:12]}"
        fresh = parent / f".{name}"
        fresh.mkdir(mode=0o700)
        lock = os.open(fresh, DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        named = fresh.rename(parent / name)
        _sync(parent)
        return cls(named, lock)

    @classmethod
    def take_over(cls, path: Path) -> Self | None:
        """The folder of a writer that is gone, or None."""
        lock = None
        with suppress(OSError):
            lock = os.open(path, DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another may have emptied and removed it before this lock.
            if os.path.samestat(os.fstat(lock), path.stat()):
                return cls(path, lock)
        if lock is not None:
            os.close(lock)
        return None

    def segments(self) -> list[Segment]:
        """The files in their order."""
        found = []
        for path in self.path.iterdir():
            if match := _NAME.fullmatch(path.name):
                content = path.read_bytes()
                one = Segment(self.path, match["number"], content.count(b"\n"), len(content))
                if match["at"]:
                    one.tried_at, one.sender = int(match["at"]), match["sender"]
                found.append(one)
        return sorted(found, key=lambda segment: segment.number)

    def forget(self) -> None:
        """Let go of a folder that another process has locked too, since it was forked: without unlocking."""
        os.close(self._lock)

    def release(self) -> None:
        """Unlock it; an empty one is removed."""
        with suppress(OSError):  # another process sends what is left in it
            self.path.rmdir()
        os.close(self._lock)


class Spool:
    """What one process has yet to send: its own files, and before those what dead processes left.

    One thread appends, another takes; both may at any time. Raises: OSError if the folder cannot be made, or
    others could write in it.
    """

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        secure(folder)
        self._folder, self._max_bytes = folder, max_bytes
        self._lock = Lock()
        self._own = WriterFolder.create(folder)
        self._adopted: dict[Path, WriterFolder] = {}
        self._waiting: list[Segment] = []
        self._open: int | None = None
        self._growing = Segment(self._own.path, f"{0:012d}")

    def append(self, lines: Sequence[bytes]) -> int:
        """Write lines, in order, as many as there is room for; return how many.

        They survive this process from then on; and the machine once their file is sealed.
        Raises: OSError if not even the first can be written.
        """
        with self._lock:
            room = self._max_bytes - self._growing.size - sum(segment.size for segment in self._waiting)
            for place, line in enumerate(lines):
                size = len(line) + 1
                if size > room:
                    return place
                try:
                    if self._growing.count == MAX_BATCH_EVENTS or self._growing.size + size > MAX_BATCH_BYTES:
                        self._seal()
                    self._write(line + b"\n")
                except OSError:
                    if place == 0:
                        raise
                    return place
                room -= size
            return len(lines)

    def next(self) -> Segment | None:
        """The oldest file, sealed; it stays until it is settled. Raises: OSError."""
        with self._lock:
            if not self._waiting and self._growing.count:
                self._seal()
            return self._waiting[0] if self._waiting else None

    def settle(self, segment: Segment, *, again: Sequence[bytes] = ()) -> int:
        """Remove a file; the lines to send again stand in its place, under a key of their own.

        Returns how many events wait in addition. None do if a process that died in between has put these
        lines there before.
        """
        with self._lock:
            added, content = 0, b"".join(line + b"\n" for line in again)
            rest = Segment(segment.folder, f"{segment.number}.r", len(again), len(content))
            if again and all((one.folder, one.number) != (rest.folder, rest.number) for one in self._waiting):
                _write_whole(rest.path, content)
                self._waiting.insert(self._waiting.index(segment) + 1, rest)
                added = rest.count
            segment.path.unlink(missing_ok=True)  # someone may have removed it
            self._remove(segment)
            return added

    def set_aside(self, segment: Segment) -> Path:
        """Keep a file for a person to decide on; it is not sent. Returns its place."""
        with self._lock:
            folder = self._folder / UNSETTLED
            folder.mkdir(mode=0o700, exist_ok=True)
            moved = segment.path.rename(folder / f"{segment.folder.name}-{segment.path.name}")
            self._remove(segment)
            return moved

    def adopt(self) -> int:
        """Take over what dead processes left, before our own; return how many events."""
        found = 0
        for path in sorted(self._folder.iterdir()):
            if path.name.startswith(".") or path.name == UNSETTLED:
                continue
            if (theirs := WriterFolder.take_over(path)) is None:
                continue
            segments = theirs.segments()
            if not segments:
                theirs.release()
                continue
            found += sum(segment.count for segment in segments)
            with self._lock:
                adopted = sum(1 for segment in self._waiting if segment.folder != self._own.path)
                self._waiting[adopted:adopted] = segments
                self._adopted[path] = theirs
        return found

    def close(self) -> None:
        """Seal and unlock: another process may send the rest."""
        with self._lock:
            self._seal()
            for folder in (self._own, *self._adopted.values()):
                folder.release()

    def forget(self) -> None:
        """Let go of everything in a forked child: it is its parent's."""
        with suppress(OSError):  # the fork may have come while a file was being closed
            if self._open is not None:
                os.close(self._open)
            for folder in (self._own, *self._adopted.values()):
                folder.forget()

    def _remove(self, segment: Segment) -> None:
        self._waiting.remove(segment)
        is_last = all(other.folder != segment.folder for other in self._waiting)
        if is_last and segment.folder in self._adopted:
            self._adopted.pop(segment.folder).release()

    def _write(self, line: bytes) -> None:
        if self._open is None:
            self._open = os.open(self._growing.path, NEW_FILE, 0o600)
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._open, rest) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._open, self._growing.size)
            raise
        self._growing.count += 1
        self._growing.size += len(line)

    def _seal(self) -> None:
        if self._open is None:
            return
        os.fsync(self._open)
        os.close(self._open)
        self._open = None
        sealed = self._growing
        self._growing = Segment(self._own.path, f"{int(sealed.number) + 1:012d}")
        if sealed.count:
            self._waiting.append(sealed)
        else:
            sealed.path.unlink()


def _sync(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_whole(path: Path, content: bytes) -> None:
    """Make a file appear on the disk as a whole."""
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def secure(folder: Path) -> None:
    """Make a folder for its user only. Raises: PermissionError if others may have put events in it."""
    above, trusted = folder.parent, (0, os.geteuid())
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = above.stat()
    # Only this user and root may rename what is in there.
    if found.st_uid not in trusted or above.lstat().st_uid not in trusted:
        raise PermissionError(f"{above}: belongs to another user")
    # In a sticky folder, as /tmp, nobody renames what is another's.
    if found.st_mode & OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{above}: others may write in it: chmod go-w")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise PermissionError(f"{folder}: a link, or no folder")
    opened = os.open(folder, DIRECTORY)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{folder}: belongs to another user")
        if found.st_mode & OTHERS_WRITE:
            raise PermissionError(f"{folder}: others may have put events in it: look, then chmod 700")
        os.fchmod(opened, 0o700)
    finally:
        os.close(opened)
