"""Signed notes for tests: keys that sign, and checkpoints of trees whose leaves are numbers."""

from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from auditlog.tlog import merkle, notes
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.notes import COSIGNATURE, ED25519, Note, Signature, VerifierKey

ORIGIN = "log.example/live"


@dataclass
class SigningKey:
    """A private key of a log (type 0x01) or a witness (0x04), and the public one."""

    name: str = ORIGIN
    algorithm: int = ED25519
    private: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> VerifierKey:
        octets = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return VerifierKey.ed25519(self.name, octets, self.algorithm)

    def sign(self, text: str, *, at: int = 1_700_000_000) -> Signature:
        if self.algorithm == COSIGNATURE:
            return self.public.signature(notes.cosign(self.private.sign, text, at))
        return self.public.signature(self.private.sign(text.encode()))


def make_witness_key(name: str = "witness.example/w1") -> SigningKey:
    return SigningKey(name, COSIGNATURE)


def signed(text: str, *keys: SigningKey) -> Note:
    return Note(text, tuple(key.sign(text) for key in keys))


@dataclass(frozen=True)
class NumberTree:
    """A log of which the leaves from `fork` on differ between branches; the same below."""

    branch: int = 0
    fork: int = 0

    def leaf(self, index: int) -> bytes:
        return merkle.leaf_hash(b"%d/%d" % (self.branch if index >= self.fork else 0, index))

    def root(self, size: int) -> bytes:
        return _root(self, 0, size)

    def consistency(self, old: int, new: int) -> list[bytes]:
        return merkle.consistency_path(old, new, lambda start, end: _root(self, start, end))

    def inclusion(self, index: int, size: int) -> list[bytes]:
        return merkle.inclusion_path(index, size, lambda start, end: _root(self, start, end))

    def checkpoint(self, size: int, origin: str = ORIGIN) -> Checkpoint:
        return Checkpoint(origin, size, self.root(size))


@cache
def _root(tree: NumberTree, start: int, end: int) -> bytes:
    return root_of(list(map(tree.leaf, range(start, end))))


def root_of(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 §2.1 as it is written there, from the leaves' hashes."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return merkle.node_hash(root_of(leaves[:split]), root_of(leaves[split:]))
