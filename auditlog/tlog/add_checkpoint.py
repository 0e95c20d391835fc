"""What a log sends to a witness (C2SP tlog-witness, add-checkpoint)."""

from dataclasses import dataclass
from typing import Self

from auditlog.tlog.errors import Malformed
from auditlog.tlog.lines import MAX_PATH, read_decimal, read_hash, read_text, write_hashes
from auditlog.tlog.notes import Note

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
