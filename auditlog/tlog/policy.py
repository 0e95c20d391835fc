"""Policy files (C2SP tlog-policy): which logs are trusted, and which witnesses must have cosigned."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Self

from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.errors import Malformed, SignatureInvalid
from auditlog.tlog.lines import read_decimal
from auditlog.tlog.notes import COSIGNATURE, ED25519, Note, VerifierKey, verified

MAX_GROUPS = 128  # a chain of groups is followed by recursion
NONE = "none"
_FOREIGN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class TrustedLog:
    """A log of a policy; its origin is the key's name. Several keys of one origin: the log rotates them."""

    key: VerifierKey
    url: str | None = None


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
    """What `parse` reads; `quorum` names a witness, a group or `none`."""

    logs: list[TrustedLog] = field(default_factory=list)
    witnesses: list[TrustedWitness] = field(default_factory=list)
    groups: dict[str, Quorum] = field(default_factory=dict)
    quorum: str = ""

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a policy file; raises `Malformed`, which names the line."""
        # Names are opaque octets: what is not UTF-8 stays what it is.
        lines = (text if isinstance(text, str) else text.decode(errors="surrogateescape")).split("\n")
        policy = cls()
        reader = _Reader(policy)
        for number, line in enumerate(lines, 1):
            try:
                reader.read(line)
            except Malformed as error:
                raise Malformed(f"Line {number} of the policy: {error}") from error
        if not policy.quorum:
            raise Malformed("The policy has no quorum line")
        return policy

    def is_met(self, names: Collection[str]) -> bool:
        """Whether cosignatures of the witnesses with these names of the policy are enough."""
        return self.quorum == NONE or self._counts(self.quorum, names)

    def verify(self, note: Note) -> Checkpoint:
        """Check that a log of the policy signed the checkpoint and enough witnesses cosigned it.

        Raises: TlogError.
        """
        checkpoint = Checkpoint.parse(note.text)
        verified(note, [log.key for log in self.logs if log.key.name == checkpoint.origin])
        if not self.is_met(self.cosigners(note)):
            raise SignatureInvalid("Not enough witnesses have cosigned")
        return checkpoint

    def cosigners(self, note: Note) -> set[str]:
        """Return the names of the witnesses that cosigned a note.

        Raises: SignatureInvalid if a cosignature of one of them does not verify.
        """
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


class _Reader:
    """Fills a policy line by line."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._defined: set[str] = set()
        self._grouped: set[str] = set()

    def read(self, line: str) -> None:
        if _FOREIGN.search(line):
            raise Malformed("A control character")
        words = [word for word in re.split(r"[ \t]", line) if word]
        if not words or words[0].startswith("#"):
            return
        match words:
            case ["log", vkey]:
                self._log(vkey)
            case ["log", vkey, url]:
                self._log(vkey, url)
            case ["witness", name, vkey]:
                self._witness(name, vkey)
            case ["witness", name, vkey, url]:
                self._witness(name, vkey, url)
            case ["group", name, threshold, *members]:
                self._group(name, threshold, members)
            case ["quorum", name]:
                self._quorum(name)
            case _:
                raise Malformed(f"Not a line of a policy: {line[:64]!r}")

    def _log(self, vkey: str, url: str | None = None) -> None:
        key = _new_key(vkey, ED25519, (log.key for log in self.policy.logs))
        self.policy.logs.append(TrustedLog(key, url))

    def _witness(self, name: str, vkey: str, url: str | None = None) -> None:
        key = _new_key(vkey, COSIGNATURE, (witness.key for witness in self.policy.witnesses))
        self._define(name)
        self.policy.witnesses.append(TrustedWitness(name, key, url))

    def _group(self, name: str, threshold: str, members: list[str]) -> None:
        for member in members:
            if member not in self._defined or member in self._grouped:
                raise Malformed(f"Not defined before, or a member of a group already: {member!r}")
            self._grouped.add(member)
        count = {"any": 1, "all": len(members)}.get(threshold)
        count = read_decimal(threshold) if count is None else count
        if not 1 <= count <= len(members) or len(self.policy.groups) >= MAX_GROUPS:
            raise Malformed(f"A threshold from 1 to {len(members)}, and at most {MAX_GROUPS} groups")
        self._define(name)
        self.policy.groups[name] = Quorum(count, tuple(members))

    def _quorum(self, name: str) -> None:
        if self.policy.quorum or (name != NONE and name not in self._defined):
            raise Malformed(f"A second quorum, or not defined before: {name!r}")
        self.policy.quorum = name

    def _define(self, name: str) -> None:
        if name == NONE or name in self._defined:
            raise Malformed(f"Defined already: {name!r}")
        self._defined.add(name)


def _new_key(vkey: str, algorithm: int, others: Iterable[VerifierKey]) -> VerifierKey:
    key = VerifierKey.parse(vkey)
    if key.algorithm != algorithm:
        raise Malformed(f"A key of type 0x{key.algorithm:02x} where 0x{algorithm:02x} belongs")
    if any(key.public == other.public for other in others):
        raise Malformed("The same key twice")
    return key
