"""Policy files (C2SP tlog-policy): which logs are trusted, and which witnesses must have cosigned."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Self

from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.lines import Malformed, read_decimal
from auditlog.tlog.notes import COSIGNATURE, ED25519, Note, VerifierKey, verified

MAX_GROUPS = 128  # a chain of groups is followed by recursion
NONE = "none"
_FOREIGN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class TrustedWitness:
    """A witness of a policy; `name` has a meaning in the policy only, `url` is the submission prefix."""

    name: str
    key: VerifierKey
    url: str | None = None


@dataclass(frozen=True)
class Quorum:
    """`threshold` of the members count as one that has cosigned."""

    threshold: int
    members: tuple[str, ...]


@dataclass
class Policy:
    """A parsed policy; `quorum` names a witness, a group or `none`. Keys of one name are one log's."""

    logs: list[VerifierKey] = field(default_factory=list)
    witnesses: list[TrustedWitness] = field(default_factory=list)
    groups: dict[str, Quorum] = field(default_factory=dict)
    quorum: str = ""

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a policy file; raises `Malformed`, which names the line."""
        # Names are opaque octets: what is not UTF-8 stays what it is.
        lines = (text if isinstance(text, str) else text.decode(errors="surrogateescape")).split("\n")
        policy = cls()
        for number, line in enumerate(lines, 1):
            try:
                policy._read(line)
            except Malformed as error:
                raise Malformed(f"Line {number} of the policy: {error}") from error
        if not policy.quorum:
            raise Malformed("The policy has no quorum line")
        return policy

    def is_met(self, names: Collection[str]) -> bool:
        return self.quorum == NONE or self._counts(self.quorum, names)

    def cosigners(self, note: Note) -> set[str]:
        """Return the names of the witnesses that cosigned. Raises: SignatureInvalid."""
        found: set[str] = set()
        for witness in self.witnesses:
            if any(map(witness.key.is_named_in, note.signatures)):
                verified(note, [witness.key])
                found.add(witness.name)
        return found

    def _counts(self, name: str, names: Collection[str]) -> bool:
        group = self.groups.get(name)
        if group is None:
            return name in names
        return sum(self._counts(member, names) for member in group.members) >= group.threshold

    def _read(self, line: str) -> None:
        if _FOREIGN.search(line):
            raise Malformed("A control character")
        words = [word for word in re.split(r"[ \t]", line) if word]
        if not words or words[0].startswith("#"):
            return
        match words:
            case ["log", vkey] | ["log", vkey, _]:
                self.logs.append(_new_key(vkey, ED25519, self.logs))
            case ["witness", name, vkey] | ["witness", name, vkey, _]:
                key = _new_key(vkey, COSIGNATURE, (witness.key for witness in self.witnesses))
                self._check_new(name)
                self.witnesses.append(TrustedWitness(name, key, *words[3:]))
            case ["group", name, threshold, *members]:
                self._check_new(name)
                self.groups[name] = self._group(threshold, members)
            case ["quorum", name]:
                if self.quorum or (name != NONE and name not in self._defined()):
                    raise Malformed(f"A second quorum, or not defined before: {name!r}")
                self.quorum = name
            case _:
                raise Malformed(f"Not a line of a policy: {line[:64]!r}")

    def _group(self, threshold: str, members: list[str]) -> Quorum:
        free = self._defined() - {member for group in self.groups.values() for member in group.members}
        if not free.issuperset(members) or len(set(members)) < len(members):
            raise Malformed("A member that is not defined before, or is a member of a group already")
        count = {"any": 1, "all": len(members)}.get(threshold)
        count = read_decimal(threshold) if count is None else count
        if not 1 <= count <= len(members) or len(self.groups) >= MAX_GROUPS:
            raise Malformed(f"A threshold from 1 to {len(members)}, and at most {MAX_GROUPS} groups")
        return Quorum(count, tuple(members))

    def _defined(self) -> set[str]:
        return {witness.name for witness in self.witnesses} | self.groups.keys()

    def _check_new(self, name: str) -> None:
        if name == NONE or name in self._defined():
            raise Malformed(f"Defined already: {name!r}")


def _new_key(vkey: str, algorithm: int, others: Iterable[VerifierKey]) -> VerifierKey:
    key = VerifierKey.parse(vkey)
    if key.algorithm != algorithm:
        raise Malformed(f"A key of type 0x{key.algorithm:02x} where 0x{algorithm:02x} belongs")
    if any(key.public == other.public for other in others):
        raise Malformed("The same key twice")
    return key


@dataclass(frozen=True)
class Trust:
    """Keys of the log, which its checkpoints must be signed by; `policy` demands cosignatures."""

    keys: tuple[VerifierKey, ...]
    policy: Policy | None = None

    @classmethod
    def of(cls, keys: Collection[VerifierKey], policy: Policy | None) -> "Trust":
        return cls((*keys, *(policy.logs if policy else ())), policy)

    def checkpoint(self, note: Note) -> Checkpoint:
        """Return the checkpoint that a note states. Raises: TlogError unless a trusted key signed it."""
        checkpoint = Checkpoint.parse(note.text)
        named = [key for key in self.keys if key.name == checkpoint.origin]
        if not named:
            raise Malformed(f"No trusted key is named {checkpoint.origin}")
        verified(note, named)
        return checkpoint

    def is_witnessed(self, note: Note) -> bool:
        """Return whether the policy's quorum cosigned. Raises: TlogError if a cosignature does not verify."""
        return self.policy is None or self.policy.is_met(self.policy.cosigners(note))
