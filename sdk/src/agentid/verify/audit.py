"""The audit log (docs/audit-log.md): entries by their proofs, checkpoints by their signatures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from agentid.errors import NotValid, Reason
from agentid.jose import b64_decode, read_object
from agentid.verify.messages import canonical

HEAD: Final = ("actor_kind", "actor_type", "created_at", "event_type", "id", "tenant_id")
PARTS: Final = ("head", "actor_id", "affected_id", "description", "metadata")
HASH_OCTETS: Final = 32
SALT_OCTETS: Final = 16
PROOF_VERSION: Final = "c2sp.org/tlog-proof@v1"
WITNESS: Final = 4  # the type of a witness's key (C2SP tlog-cosignature)


@dataclass(frozen=True)
class LogTrust:
    """The verifier keys (`name+id+key`) of the log and of witnesses, and how many witnesses are needed."""

    log_keys: tuple[str, ...]
    witness_keys: tuple[str, ...] = ()
    quorum: int = 0


@dataclass(frozen=True)
class VerifiedCheckpoint:
    """A signed head of the log."""

    origin: str
    size: int
    root: bytes
    witnesses: int


@dataclass(frozen=True)
class VerifiedEntry:
    """An entry as it was sealed."""

    index: int
    checkpoint: VerifiedCheckpoint
    entry: Mapping[str, Any] = field(repr=False)


def verify_audit_proof(proof: str, *, trust: LogTrust) -> VerifiedEntry:
    """Check a tlog-proof file, as `GET /v1/audit-log/{id}/proof` gives it. Raises: NotValid."""
    head, _, note = proof.partition("\n\n")
    version, extra, index, *path = (*head.split("\n"), "", "")
    path = [line for line in path if line]
    if version != PROOF_VERSION or not extra.startswith("extra ") or not index.startswith("index "):
        raise NotValid(Reason.MALFORMED, "not a tlog-proof")
    entry = read_object(b64_decode(extra.removeprefix("extra ")))
    checkpoint = verify_checkpoint(note, trust=trust)
    place = _number(index.removeprefix("index "))
    hashes = [_hash(line) for line in path]
    if root_of(place, checkpoint.size, leaf_hash(leaf_of(entry)), hashes) != checkpoint.root:
        raise NotValid(Reason.NOT_AS_SEALED)
    return VerifiedEntry(place, checkpoint, entry)


def verify_consistency(
    old: str, new: str, hashes: Sequence[str], *, trust: LogTrust
) -> tuple[VerifiedCheckpoint, VerifiedCheckpoint]:
    """Check that the log of one checkpoint begins with that of an older one. Raises: NotValid."""
    first, second = verify_checkpoint(old, trust=trust), verify_checkpoint(new, trust=trust)
    if first.origin != second.origin:
        raise NotValid(Reason.NOT_AS_SEALED, "checkpoints of two logs")
    if not 0 < first.size <= second.size:
        raise NotValid(Reason.MALFORMED, "the new tree is smaller, or the old one empty")
    roots = roots_of(first.size, second.size, [*map(_hash, hashes)], first.root)
    if roots != (first.root, second.root):
        raise NotValid(Reason.NOT_AS_SEALED, "the new tree does not begin with the old one")
    return first, second


def verify_checkpoint(note: str, *, trust: LogTrust) -> VerifiedCheckpoint:
    """Check a signed head (C2SP tlog-checkpoint). Raises: NotValid."""
    body, divider, signatures = note.rpartition("\n\n")
    text, lines = f"{body}\n", signatures.split("\n")
    if not divider or lines.pop() or not all(line.startswith("\u2014 ") for line in lines):
        raise NotValid(Reason.MALFORMED, "not a signed note")
    origin, size, root, *_ = (*body.split("\n"), "", "")
    keys = [key for key in map(_key, trust.log_keys) if key[0] == origin]
    if not any(_signed(key, text, lines) for key in keys):
        raise NotValid(Reason.UNKNOWN_KEY, "not signed by a trusted key of this log")
    cosigned = sum(_signed(key, text, lines) for key in {*map(_key, trust.witness_keys)})
    if cosigned < trust.quorum:
        raise NotValid(Reason.TOO_FEW_WITNESSES, f"{cosigned} of {trust.quorum}")
    return VerifiedCheckpoint(origin, _number(size), _hash(root), cosigned)


def leaf_of(entry: Mapping[str, Any]) -> bytes:
    """The leaf that an entry's disclosure opens. Raises: NotValid (malformed)."""
    erased, salts = entry.get("erased", {}), entry.get("salts")
    if not isinstance(erased, dict) or not isinstance(salts, dict) or "head" in erased:
        raise NotValid(Reason.MALFORMED, "not a disclosure")
    if {*entry, "erased"} != {*HEAD, *PARTS[1:], "salts", "erased"} or {*salts} != {*PARTS} - {*erased}:
        raise NotValid(Reason.MALFORMED, "not the fields and salts of an entry")
    leaf = b"\1"
    for part in PARTS:
        value = {name: entry[name] for name in HEAD} if part == "head" else entry[part]
        if part not in erased:
            salt = _hexadecimal(salts[part], SALT_OCTETS)
            leaf += sha256(salt + part.encode() + b"\0" + canonical(value)).digest()
        elif value is None:
            leaf += _hexadecimal(erased[part], HASH_OCTETS)
        else:
            raise NotValid(Reason.MALFORMED, f"{part} is erased and yet shown")
    return leaf


def _signed(key: tuple[str, str, bytes], text: str, lines: list[str]) -> bool:
    """Whether the key signed; a signature under its name and id that does not verify is refused."""
    name, key_id, octets = key
    for line in lines:
        signer, _, value = line[2:].partition(" ")
        made = b64_decode(value)
        if (signer, made[:4].hex()) != (name, key_id):
            continue
        # A witness signs a time, too.
        time = f"cosignature/v1\ntime {int.from_bytes(made[4:12])}\n" if octets[0] == WITNESS else ""
        try:
            signature = made[12:] if time else made[4:]
            Ed25519PublicKey.from_public_bytes(octets[1:]).verify(signature, (time + text).encode())
        except (InvalidSignature, ValueError):
            raise NotValid(Reason.INVALID_SIGNATURE, name) from None
        return True
    return False


def _key(verifier_key: str) -> tuple[str, str, bytes]:
    """Name, id and octets of `name+id+key`. Raises: NotValid (malformed)."""
    name, _, rest = verifier_key.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    octets = b64_decode(encoded)
    if sha256(f"{name}\n".encode() + octets).hexdigest()[:8] != key_id or not octets:
        raise NotValid(Reason.MALFORMED, "not a verifier key")
    return name, key_id, octets


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18 or (text[0] == "0" and text != "0"):
        raise NotValid(Reason.MALFORMED, "not a number")
    return int(text)


def _hash(text: str) -> bytes:
    octets = b64_decode(text)
    if len(octets) != HASH_OCTETS:
        raise NotValid(Reason.MALFORMED, "not a hash")
    return octets


def _hexadecimal(text: Any, length: int) -> bytes:
    try:
        octets = bytes.fromhex(text)
    except (TypeError, ValueError):
        raise NotValid(Reason.MALFORMED, "not hexadecimal") from None
    if len(octets) != length:
        raise NotValid(Reason.MALFORMED, "a value of another length")
    return octets


# Merkle trees of RFC 6962 §2.1: the roots that proofs lead to.


def leaf_hash(leaf: bytes) -> bytes:
    return sha256(b"\0" + leaf).digest()


def root_of(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """The root that a proof leads to from a leaf's hash (§2.1.1). Raises: NotValid (malformed)."""
    if not 0 <= index < size or (size == 1) != (not path):
        raise NotValid(Reason.MALFORMED, "a proof of another length, or no such leaf")
    if size == 1:
        return leaf
    *path, last = path
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        return node_hash(root_of(index, half, leaf, path), last)
    return node_hash(last, root_of(index - half, size - half, leaf, path))


def roots_of(old: int, new: int, path: list[bytes], known: bytes | None) -> tuple[bytes, bytes]:
    """The roots of both trees that a consistency proof leads to (§2.1.2). Raises: NotValid (malformed).

    `known` is the old root for as long as the old tree is a whole subtree of the new one.
    """
    if old == new:
        if len(path) != (known is None):
            raise NotValid(Reason.MALFORMED, "a proof of another length")
        same = path[0] if known is None else known
        return same, same
    if not path:
        raise NotValid(Reason.MALFORMED, "a proof that is too short")
    *path, last = path
    half = 1 << (new - 1).bit_length() - 1
    if old <= half:
        first, second = roots_of(old, half, path, known)
        return first, node_hash(second, last)
    first, second = roots_of(old - half, new - half, path, None)
    return node_hash(last, first), node_hash(last, second)


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
