"""The tree computed anew from the tiles of its leaves: upper tiles, and the root at each size."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final

from auditlog.tlog.merkle import Frontier
from auditlog.tlog.tiles import FULL, HASH, WIDTH, Coordinates, perfect_root

_BITS: Final = WIDTH.bit_length() - 1


class Recount:
    """Takes the tiles of leaves from left to right; calls `made` with each full tile above them.

    `root` looks into the tile added last: `_before` is the tree in front of it, `_nodes` holds its subtrees.
    """

    def __init__(self, made: Callable[[Coordinates, bytes], None]) -> None:
        self._made = made
        self._before = Frontier()
        self._full = Frontier()
        # For each level above the leaves: the hashes of its last, partial tile, and its number of full tiles.
        self._columns: list[bytes] = []
        self._counts: list[int] = []
        self._nodes: list[list[bytes]] = []
        self._start = 0
        self.size = 0

    def add(self, tile: bytes) -> None:
        """Add a tile of leaves; only the last one may be partial."""
        self._before = Frontier(self._full.size, self._full.hashes)
        self._nodes = list(_levels(tile))
        self._start, self.size = self.size, self.size + len(tile) // HASH
        if len(tile) == FULL:
            (root,) = self._nodes[-1]
            self._full.append(root)
            self._push(0, root)

    def root(self, size: int) -> bytes:
        """Return the root of the first `size` leaves, the last of which is in the tile added last."""
        inside, start = size - self._start, 0
        if inside == WIDTH:
            return self._full.root()
        peaks = list(self._before.hashes)
        for bit in reversed(range(_BITS)):
            if inside >> bit & 1:
                peaks.append(self._nodes[bit][start >> bit])
                start += 1 << bit
        return Frontier(size, peaks).root()

    def partial_tiles(self) -> Iterator[tuple[Coordinates, bytes]]:
        """Yield the tiles above the leaves that are not full."""
        for level, (hashes, count) in enumerate(zip(self._columns, self._counts, strict=True), 1):
            if hashes:
                yield (level, count), hashes

    def _push(self, column: int, node: bytes) -> None:
        """Add a hash to the level above `column`."""
        if column == len(self._columns):
            self._columns.append(b"")
            self._counts.append(0)
        self._columns[column] += node
        if len(self._columns[column]) == FULL:
            tile, self._columns[column] = self._columns[column], b""
            self._made((column + 1, self._counts[column]), tile)
            self._counts[column] += 1
            self._push(column + 1, perfect_root(tile))


def _levels(tile: bytes) -> Iterator[list[bytes]]:
    """Yield the hashes of the complete subtrees of 1, 2, 4 … leaves in a tile."""
    nodes = [tile[start : start + HASH] for start in range(0, len(tile), HASH)]
    while nodes:
        yield nodes
        nodes = [
            sha256(b"\x01" + left + right).digest()
            for left, right in zip(nodes[::2], nodes[1::2], strict=False)
        ]
