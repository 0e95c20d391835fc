"""Proof files (C2SP tlog-proof): what proves offline that a leaf is in a log."""

from dataclasses import dataclass
from typing import Self

from auditlog.tlog import merkle
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.errors import Malformed
from auditlog.tlog.lines import MAX_PATH, read_base64, read_decimal, read_hash, read_text, write_hashes
from auditlog.tlog.notes import Note
from auditlog.tlog.policy import Policy
from compliance.core.encodings import b64_encode

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PROOF_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class ProofFile:
    """The leaf at `index` is in the tree of the checkpoint: `path` is its inclusion proof.

    `extra` is the application's own and not authenticated.
    """

    index: int
    path: list[bytes]
    checkpoint_note: Note
    extra: bytes | None = None

    def encode(self) -> str:
        extra = "" if self.extra is None else f"extra {b64_encode(self.extra)}\n"
        head = f"{HEADER}\n{extra}index {self.index}\n{write_hashes(self.path)}"
        return f"{head}\n{self.checkpoint_note.encode()}"

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a proof file; raises `Malformed`. Nothing is verified."""
        head, blank, note = read_text(text, at_most=MAX_PROOF_BYTES).partition("\n\n")
        header, *lines = head.split("\n")
        if not blank or header != HEADER:
            raise Malformed(f"Not a file that begins with {HEADER}")
        extra = read_base64(lines.pop(0)[6:]) if lines and lines[0].startswith("extra ") else None
        if not lines or not lines[0].startswith("index ") or len(lines) > 1 + MAX_PATH:
            raise Malformed(f"Not an index and at most {MAX_PATH} hashes")
        index, path = read_decimal(lines[0][6:]), [read_hash(line) for line in lines[1:]]
        return cls(index, path, Note.parse(note), extra)

    def verify(self, leaf: bytes, policy: Policy) -> Checkpoint:
        """Check that the leaf with this hash is in a log that the policy trusts; return the checkpoint.

        Raises: TlogError.
        """
        checkpoint = policy.verify(self.checkpoint_note)
        merkle.verify_inclusion(self.index, checkpoint.size, leaf, self.path, checkpoint.root)
        return checkpoint
