"""Checkpoints (C2SP tlog-checkpoint): the text of a note that states a log's size and root."""

from dataclasses import dataclass
from typing import Self

from auditlog.tlog.errors import Malformed
from auditlog.tlog.lines import HASH_BYTES, MAX_SIZE, read_decimal, read_hash
from compliance.core.encodings import b64_encode


@dataclass(frozen=True)
class Checkpoint:
    """The log `origin` had `size` leaves under `root`, 32 octets.

    Raises: Malformed if that can't be written as a checkpoint.
    """

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
