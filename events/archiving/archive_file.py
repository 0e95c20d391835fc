"""The file of an archive: gzip-compressed JSON Lines, read and written at constant memory.

The first line is the header, the last the footer, each other one an event. The footer's digest is of all
lines before it, uncompressed; the same lines give the same bytes.
"""

import gzip
import hashlib
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO, Literal, TypeVar

import msgspec

from events.errors import BadArchive

SUFFIX = ".jsonl.gz"
LEVEL = 6
MAX_LINE = 64 * 1024 * 1024  # octets: an event holds at most a few mebibytes
ABANDONED_AFTER = timedelta(days=1)

Found = TypeVar("Found")


class ArchiveHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The events of an archive: those of one partition, whose ids are of [received_from, received_before)."""

    version: Literal[1]
    environment: str
    partition: str
    received_from: datetime
    received_before: datetime
    columns: tuple[str, ...]


class ArchiveFooter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: int
    sha256: str


@dataclass(frozen=True)
class Archive:
    """A complete archive: the number of its events, the SHA-256 of header and events in lowercase hex."""

    path: Path
    rows: int
    sha256: str


class ArchiveReader:
    """Yields an archive's events as undecoded lines. Raises BadArchive.

    `footer` is read, and found to agree with the lines, once the last event has been yielded.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        first = self._line()
        self._digest = hashlib.sha256(first)
        self.header = _decoded(first, ArchiveHeader, "header")
        self.footer = ArchiveFooter(0, "")

    def __iter__(self) -> Iterator[bytes]:
        rows, line = 0, self._line()
        while following := self._line():
            rows += 1
            self._digest.update(line)
            yield line
            line = following
        self.footer = _decoded(line, ArchiveFooter, "footer")
        if self.footer != ArchiveFooter(rows, self._digest.hexdigest()):
            raise BadArchive("The archive's footer does not agree with its lines")

    def _line(self) -> bytes:
        """Return the next line with its end, or nothing after the last one."""
        try:
            line = self._source.readline(MAX_LINE)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadArchive("The archive is cut off or no gzip file") from error
        if line and not line.endswith(b"\n"):
            raise BadArchive("The archive's last line is cut off or too long")
        return line


def _decoded(line: bytes, kind: type[Found], name: str) -> Found:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadArchive(f"The archive has no sound {name}") from error


@contextmanager
def opened(path: Path) -> Iterator[ArchiveReader]:
    """Open an archive. Raises BadArchive, and OSError if the file cannot be read."""
    with gzip.open(path, "rb") as source:
        yield ArchiveReader(source)  # type: ignore[arg-type]


def verify(path: Path) -> tuple[ArchiveHeader, Archive]:
    """Read the whole file; return its header and what it is. Raises as `opened()`."""
    with opened(path) as reader:
        for _ in reader:
            pass
    return reader.header, Archive(path, reader.footer.rows, reader.footer.sha256)


def write(folder: Path, header: ArchiveHeader, lines: Iterable[bytes]) -> Archive:
    """Store an archive durably, readable by its owner alone.

    It has its name only once it is complete. Archives with other contents have other names, so none is
    overwritten. Temporary files that killed processes left a day ago are removed.
    """
    stem = f"{header.environment}-{header.partition}"
    for abandoned in folder.glob(f".{stem}.*"):
        # Another process may complete or remove it meanwhile
        with suppress(FileNotFoundError):
            if abandoned.stat().st_mtime < time.time() - ABANDONED_AFTER.total_seconds():
                abandoned.unlink()
    descriptor, temporary = mkstemp(prefix=f".{stem}.", dir=folder)
    first = msgspec.json.encode(header) + b"\n"
    digest, rows = hashlib.sha256(first), 0
    try:
        with os.fdopen(descriptor, "wb") as raw:
            # Neither a name nor a time in gzip's own header
            with gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=raw, mtime=0) as packed:
                packed.write(first)
                for line in lines:
                    packed.write(line)
                    digest.update(line)
                    rows += 1
                footer = ArchiveFooter(rows, digest.hexdigest())
                packed.write(msgspec.json.encode(footer) + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        path = folder / f"{stem}-{footer.sha256[:16]}{SUFFIX}"
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return Archive(path, footer.rows, footer.sha256)
