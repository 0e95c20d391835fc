"""Whom a verification trusts: the log's keys, and the witnesses that must have cosigned."""

from collections.abc import Collection
from dataclasses import dataclass

from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.errors import Malformed
from auditlog.tlog.notes import Note, VerifierKey, verified
from auditlog.tlog.policy import Policy


@dataclass(frozen=True)
class Trust:
    """Keys of the log, which its checkpoints must be signed by; `policy` demands cosignatures."""

    keys: tuple[VerifierKey, ...]
    policy: Policy | None = None

    @classmethod
    def of(cls, keys: Collection[VerifierKey], policy: Policy | None) -> "Trust":
        """Trust these keys and those of the policy's logs."""
        more = [log.key for log in policy.logs] if policy else []
        return cls((*keys, *more), policy)

    def checkpoint(self, note: Note) -> Checkpoint:
        """Return the checkpoint that a note states. Raises: TlogError unless a trusted key signed it."""
        checkpoint = Checkpoint.parse(note.text)
        named = [key for key in self.keys if key.name == checkpoint.origin]
        if not named:
            raise Malformed(f"No trusted key is named {checkpoint.origin}")
        verified(note, named)
        return checkpoint

    def is_witnessed(self, note: Note) -> bool:
        """Whether the policy's quorum cosigned. Raises: TlogError if a cosignature does not verify."""
        return self.policy is None or self.policy.is_met(self.policy.cosigners(note))
