"""Checkpoints (C2SP tlog-checkpoint): the text of a note that states a log's size and root."""

from dataclasses import dataclass
from typing import Self

from auditlog.tlog.lines import (
    HASH_BYTES,
    MAX_PATH,
    MAX_SIZE,
    Malformed,
    read_decimal,
    read_hash,
    read_text,
    write_hashes,
)
from auditlog.tlog.notes import Note
from compliance.core.encodings import b64_encode


@dataclass(frozen=True)
class Checkpoint:
    """The log `origin` had `size` leaves under `root`, 32 octets. Raises: Malformed if that has no text."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lines = (self.origin, *self.extensions)
        if not all(lines) or any("\n" in line for line in lines):
            raise Malformed("The origin or an extension is empty or not one line")
        if not 0 <= self.size <= MAX_SIZE or len(self.root) != HASH_BYTES:
            raise Malformed("Not the size and root of a tree")

    def text(self) -> str:
        """Return the lines, each with its newline."""
        return "".join(
            f"{line}\n" for line in (self.origin, self.size, b64_encode(self.root), *self.extensions)
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `text` returns; raises `Malformed`."""
        lines = text.split("\n")
        if lines.pop() or len(lines) < 3:
            raise Malformed("A checkpoint has three lines at least, each with its newline")
        origin, size, root, *extensions = lines
        return cls(origin, read_decimal(size), read_hash(root), tuple(extensions))


MAX_REQUEST_BYTES = 256 * 1024
SIZE_CONTENT_TYPE = "text/x.tlog.size"


@dataclass(frozen=True)
class AddCheckpoint:
    """A log's checkpoint, and the proof that its tree begins with the `old_size` leaves the witness knows."""

    old_size: int
    proof: list[bytes]
    note: Note

    def encode(self) -> str:
        return f"old {self.old_size}\n{write_hashes(self.proof)}\n{self.note.encode()}"

    @classmethod
    def parse(cls, body: str | bytes) -> Self:
        """Read a request's body; raises `Malformed`. Nothing is verified."""
        head, blank, note = read_text(body, at_most=MAX_REQUEST_BYTES).partition("\n\n")
        old, *proof = head.split("\n")
        if not blank or not old.startswith("old ") or len(proof) > MAX_PATH:
            raise Malformed(f"Not an old size, at most {MAX_PATH} hashes, an empty line and a checkpoint")
        return cls(
            read_decimal(old.removeprefix("old ")), [read_hash(line) for line in proof], Note.parse(note)
        )
