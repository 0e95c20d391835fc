"""The Merkle tree of RFC 6962 §2.1: hashes, inclusion and consistency proofs; nothing is stored here.

Proofs ask for hashes by `subtree(start, end)`, the hash of leaves `start` to `end - 1`. It is only ever asked
for complete subtrees: `end - start` is a power of two, and `start` a multiple of it.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

from auditlog.tlog.lines import HASH_BYTES, ProofInvalid

EMPTY_ROOT = sha256(b"").digest()

Subtree = Callable[[int, int], bytes]
Span = tuple[int, int]  # of leaves: the first, and the one after the last


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def tree_root(size: int, subtree: Subtree) -> bytes:
    """Return the root of the first `size` leaves (§2.1)."""
    return _hash_of((0, size), subtree)


def inclusion_path(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """Return a leaf's inclusion proof (§2.1.1), from the leaf up. Raises: ProofInvalid."""
    return [_hash_of(span, subtree) for span in _siblings(index, size)]


def consistency_path(old: int, new: int, subtree: Subtree) -> list[bytes]:
    """Return the proof that the tree of `new` leaves begins with that of `old` leaves (§2.1.2).

    Empty if the sizes are equal or `old` is 0. Raises: ProofInvalid if `old` is larger than `new`.
    """
    return [_hash_of(span, subtree) for span in _steps(old, new)]


def root_from_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """Return the root to which an inclusion proof leads from the hash of a leaf.

    Raises: ProofInvalid if the tree has no such leaf, or the proof is not as long as it has to be.
    """
    siblings = _siblings(index, size)
    _check_hashes(path, len(siblings))
    node = leaf
    for (start, _), sibling in zip(siblings, path, strict=True):
        node = node_hash(sibling, node) if start < index else node_hash(node, sibling)
    return node


def verify_consistency(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, path: Sequence[bytes]
) -> None:
    """Check that the new tree begins with the leaves of the old one; raises `ProofInvalid`."""
    steps = _steps(old_size, new_size)
    _check_hashes(path, len(steps))
    for size, root in ((old_size, old_root), (new_size, new_root)):
        if size == 0 and root != EMPTY_ROOT:
            raise ProofInvalid("A tree without leaves has another root")
    if old_size == 0:
        return
    first = second = old_root
    for position, ((start, end), node) in enumerate(zip(steps, path, strict=True)):
        if position == 0 and end == old_size:
            first = second = node
        elif start < old_size:
            first, second = node_hash(node, first), node_hash(node, second)
        else:
            second = node_hash(second, node)
    if (first, second) != (old_root, new_root):
        raise ProofInvalid("The consistency proof leads to other roots")


def _siblings(index: int, size: int) -> list[Span]:
    if not 0 <= index < size:
        raise ProofInvalid(f"A tree of {size} leaves has no leaf {index}")
    found: list[Span] = []
    start, end = 0, size
    while end - start > 1:
        middle = _middle(start, end)
        if index < middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start = middle
    return found[::-1]


def _steps(old: int, new: int) -> list[Span]:
    """Return the subtrees of a consistency proof, from the old tree's last one up to the root.

    The first ends where the old tree ends, unless the old tree is itself a subtree of the new one.
    """
    if not 0 <= old <= new:
        raise ProofInvalid(f"A tree of {new} leaves cannot follow one of {old}")
    found: list[Span] = []
    start, end = 0, new
    while 0 < old < end:
        middle = _middle(start, end)
        if old <= middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start = middle
    if start:
        found.append((start, end))
    return found[::-1]


def _middle(start: int, end: int) -> int:
    """Return where a subtree of two leaves or more is split: after the largest smaller power of two."""
    return start + (1 << (end - start - 1).bit_length() - 1)


def _hash_of(span: Span, subtree: Subtree) -> bytes:
    """Return the hash of a subtree that may be incomplete, from the complete ones in it."""
    start, end = span
    if start == end:
        return EMPTY_ROOT
    middle = start + (1 << (end - start).bit_length() - 1)
    left = subtree(start, middle)
    return left if middle == end else node_hash(left, _hash_of((middle, end), subtree))


def _check_hashes(path: Sequence[bytes], count: int) -> None:
    if len(path) != count:
        raise ProofInvalid(f"The proof has {len(path)} hashes, not {count}")
    if any(len(each) != HASH_BYTES for each in path):
        raise ProofInvalid(f"A hash of the proof does not have {HASH_BYTES} octets")
