"""Merkle proofs against the definition of RFC 6962 §2.1, computed naively for every small tree."""

import base64

import pytest

from auditlog.tests.log_keys import root_of as mth
from auditlog.tlog.lines import ProofInvalid
from auditlog.tlog.merkle import (
    EMPTY_ROOT,
    consistency_path,
    inclusion_path,
    leaf_hash,
    root_from_inclusion,
    tree_root,
    verify_consistency,
)

LARGEST = 64
LEAVES = [leaf_hash(bytes([number])) for number in range(LARGEST)]
# The leaves of the RFC's reference implementations and of transparency-dev/merkle, and its tree's roots.
KNOWN_DATA = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
KNOWN_ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    5: "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of §2.1.1 as it is written there."""
    if len(leaves) == 1:
        return []
    split = largest_power_below(len(leaves))
    if index < split:
        return [*path(index, leaves[:split]), mth(leaves[split:])]
    return [*path(index - split, leaves[split:]), mth(leaves[:split])]


def subproof(old: int, leaves: list[bytes], *, is_known: bool) -> list[bytes]:
    """SUBPROOF of §2.1.2 as it is written there."""
    if old == len(leaves):
        return [] if is_known else [mth(leaves)]
    split = largest_power_below(len(leaves))
    if old <= split:
        return [*subproof(old, leaves[:split], is_known=is_known), mth(leaves[split:])]
    return [*subproof(old - split, leaves[split:], is_known=False), mth(leaves[:split])]


def largest_power_below(count: int) -> int:
    return 1 << (count - 1).bit_length() - 1


def subtree(start: int, end: int) -> bytes:
    width = end - start
    assert width.bit_count() == 1
    assert start % width == 0
    return mth(LEAVES[start:end])


@pytest.mark.parametrize("size", KNOWN_ROOTS)
def test_known_trees_have_their_known_roots(size: int) -> None:
    assert mth([*map(leaf_hash, KNOWN_DATA[:size])]).hex() == KNOWN_ROOTS[size]


def test_known_consistency_proof_verifies() -> None:
    proof = [
        base64.b64decode("Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4="),
        base64.b64decode("vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms="),
    ]

    verify_consistency(2, bytes.fromhex(KNOWN_ROOTS[2]), 5, bytes.fromhex(KNOWN_ROOTS[5]), proof)


def test_root_of_every_size_is_that_of_the_definition() -> None:
    for size in range(LARGEST + 1):
        assert tree_root(size, subtree) == mth(LEAVES[:size])


def test_every_inclusion_proof_is_that_of_the_definition() -> None:
    for size in range(1, LARGEST + 1):
        root = mth(LEAVES[:size])
        for index in range(size):
            proof = inclusion_path(index, size, subtree)
            assert proof == path(index, LEAVES[:size])
            assert root_from_inclusion(index, size, LEAVES[index], proof) == root


def test_every_consistency_proof_is_that_of_the_definition() -> None:
    for new in range(1, LARGEST + 1):
        for old in range(1, new + 1):
            proof = consistency_path(old, new, subtree)
            assert proof == subproof(old, LEAVES[:new], is_known=True)
            verify_consistency(old, mth(LEAVES[:old]), new, mth(LEAVES[:new]), proof)


def test_every_tree_follows_the_empty_one() -> None:
    assert consistency_path(0, 7, subtree) == []
    verify_consistency(0, EMPTY_ROOT, 7, mth(LEAVES[:7]), [])
    verify_consistency(0, EMPTY_ROOT, 0, EMPTY_ROOT, [])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 13])
def test_no_other_leaf_place_or_length_passes_for_an_inclusion(size: int) -> None:
    root = mth(LEAVES[:size])
    for index in range(size):
        proof = inclusion_path(index, size, subtree)
        wrong = [
            (index, size, LEAVES[size], proof),
            (index, size, LEAVES[index], [*proof, LEAVES[0]]),
            (index, size, LEAVES[index], proof[:-1] if proof else [LEAVES[0]]),
            (size, size, LEAVES[index], proof),
            (-1, size, LEAVES[index], proof),
            (index, size, LEAVES[index], [each[:-1] for each in proof] or [b""]),
            *((other, size, LEAVES[index], proof) for other in range(size) if other != index),
            *((index, size, LEAVES[index], flipped(proof, at)) for at in range(len(proof))),
        ]
        for arguments in wrong:
            try:
                assert root_from_inclusion(*arguments) != root
            except ProofInvalid:
                continue


@pytest.mark.parametrize(("old", "new"), [(1, 2), (1, 1), (2, 5), (3, 7), (4, 8), (6, 8), (7, 13), (8, 13)])
def test_no_other_tree_or_proof_passes_for_consistent(old: int, new: int) -> None:
    proof = consistency_path(old, new, subtree)
    old_root, new_root, other = mth(LEAVES[:old]), mth(LEAVES[:new]), LEAVES[-1]
    wrong = [
        (old, other, new, new_root, proof),
        (old, old_root, new, other, proof),
        (old, old_root, new, new_root, [*proof, other]),
        (old, old_root, new, new_root, proof[:-1] if proof else [other]),
        (new + 1, old_root, new, new_root, proof),
        (-1, old_root, new, new_root, proof),
        (0, EMPTY_ROOT, new, new_root, [other]),
        (0, other, new, new_root, []),
        (0, EMPTY_ROOT, 0, other, []),
        *((old, old_root, new, new_root, flipped(proof, at)) for at in range(len(proof))),
    ]

    for arguments in wrong:
        with pytest.raises(ProofInvalid):
            verify_consistency(*arguments)


def flipped(proof: list[bytes], at: int) -> list[bytes]:
    """The proof with one bit changed."""
    return [bytes([each[0] ^ 16]) + each[1:] if place == at else each for place, each in enumerate(proof)]
