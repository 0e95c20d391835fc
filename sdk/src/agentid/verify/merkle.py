"""Merkle trees of RFC 6962 §2.1: the roots that proofs lead to."""

from collections.abc import Sequence
from hashlib import sha256

from agentid.reasons import NotValid, Reason


def leaf_hash(leaf: bytes) -> bytes:
    return sha256(b"\0" + leaf).digest()


def root_of(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """The root that a proof leads to from a leaf's hash (§2.1.1). Raises: NotValid (malformed)."""
    if not 0 <= index < size or len(path) != len(_sides(index, size)):
        raise NotValid(Reason.MALFORMED, "a proof of another length, or no such leaf")
    for is_right, node in zip(_sides(index, size), path, strict=True):
        leaf = _node(node, leaf) if is_right else _node(leaf, node)
    return leaf


def roots_of(old: int, new: int, path: Sequence[bytes], known: bytes) -> tuple[bytes, bytes]:
    """The roots of both trees that a consistency proof leads to (§2.1.2). Raises: NotValid (malformed)."""
    if not 0 < old <= new:
        raise NotValid(Reason.MALFORMED, "the new tree is smaller, or the old one empty")
    return _roots(old, new, list(path), known)


def _sides(index: int, size: int) -> list[bool]:
    """For each step from the leaf up, whether the path so far is the right child."""
    sides: list[bool] = []
    while size > 1:
        half = 1 << (size - 1).bit_length() - 1
        is_right = index >= half
        sides.append(is_right)
        index, size = (index - half, size - half) if is_right else (index, half)
    return sides[::-1]


def _roots(old: int, new: int, path: list[bytes], known: bytes | None) -> tuple[bytes, bytes]:
    """`known` is the old root for as long as the old tree is a whole subtree of the new one."""
    if old == new:
        if len(path) != (known is None):
            raise NotValid(Reason.MALFORMED, "a proof of another length")
        same = path[0] if known is None else known
        return same, same
    if not path:
        raise NotValid(Reason.MALFORMED, "a proof that is too short")
    last, half = path.pop(), 1 << (new - 1).bit_length() - 1
    if old <= half:
        first, second = _roots(old, half, path, known)
        return first, _node(second, last)
    first, second = _roots(old - half, new - half, path, None)
    return _node(last, first), _node(last, second)


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
