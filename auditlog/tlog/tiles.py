"""The Merkle tree as tiles of 256 hashes (C2SP tlog-tiles): paths, growth, subtrees read off them.

A tile of level L and index N holds the hashes of the subtrees of 256^L leaves from leaf N * 256^(L+1) on; a
partial one holds fewer. Tiles are strings of octets, 32 for each hash.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from auditlog.tlog.lines import HASH_BYTES, TlogError
from auditlog.tlog.merkle import node_hash

WIDTH: Final = 256
HASH: Final = HASH_BYTES
FULL: Final = WIDTH * HASH
_PATH: Final = re.compile(r"(?P<index>(?:x\d{3}/)*\d{3})(?:\.p/(?P<width>[1-9]\d{0,2}))?", re.ASCII)

Coordinates = tuple[int, int]
"""Level and index of a tile."""
Fetch = Callable[[int, int], bytes]
"""Return the tile of a level and an index, as far as it is filled."""


def tile_path(index: int, width: int = WIDTH) -> str:
    """Return `<N>[.p/<W>]` of a tile's or bundle's URL: 1234067 is `x001/x234/067`."""
    groups = [f"{index % 1000:03d}"]
    while index := index // 1000:
        groups.insert(0, f"x{index % 1000:03d}")
    return "/".join(groups) + (f".p/{width}" if width < WIDTH else "")


def parse_path(path: str) -> tuple[int, int]:
    """Return index and width of `<N>[.p/<W>]`. Raises: TlogError."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise TlogError(f"not the path of a tile: {path}")
    index = int(match["index"].replace("x", "").replace("/", ""))
    width = int(match["width"] or WIDTH)
    if tile_path(index, width) != path:
        raise TlogError(f"not the path of a tile: {path}")
    return index, width


def width_at(size: int, level: int, index: int) -> int:
    """Return how many hashes the tile holds in a tree of `size` leaves; 0 if it does not exist."""
    hashes: int = size // WIDTH**level
    return max(0, min(WIDTH, hashes - index * WIDTH))


def partial_tiles(size: int) -> list[Coordinates]:
    """Return where a tree of `size` leaves has partial tiles, the lowest level first."""
    edge, level = [], 0
    while (hashes := size // WIDTH**level) > 0:
        if hashes % WIDTH:
            edge.append((level, hashes // WIDTH))
        level += 1
    return edge


def tiles_of_path(index: int, size: int) -> set[Coordinates]:
    """Return where the hashes of leaf `index`'s inclusion proof in a tree of `size` leaves are."""
    levels = range((max(size - 1, 1).bit_length() + 7) // 8)
    return {(level, index // WIDTH ** (level + 1)) for level in levels} | set(partial_tiles(size))


def extended(
    size: int, edge: Mapping[Coordinates, bytes], leaves: Iterable[bytes]
) -> dict[Coordinates, bytes]:
    """Return the tiles that change when leaf hashes are added; `edge` holds the tree's `partial_tiles`."""
    changed: dict[Coordinates, bytes] = {}
    level, added = 0, b"".join(leaves)
    while added:
        index = size // WIDTH ** (level + 1)
        hashes = edge.get((level, index), b"") + added
        tiles = [hashes[start : start + FULL] for start in range(0, len(hashes), FULL)]
        changed |= {(level, index + n): tile for n, tile in enumerate(tiles)}
        added = b"".join(perfect_root(tile) for tile in tiles if len(tile) == FULL)
        level += 1
    return changed


def perfect_root(hashes: bytes) -> bytes:
    """Return the root over 1, 2, 4 … 256 hashes."""
    nodes = [hashes[start : start + HASH] for start in range(0, len(hashes), HASH)]
    while len(nodes) > 1:
        nodes = [node_hash(nodes[n], nodes[n + 1]) for n in range(0, len(nodes), 2)]
    return nodes[0]


def subtree(fetch: Fetch, start: int, end: int) -> bytes:
    """Return the hash of the complete subtree of leaves `start` to `end - 1`, read off one tile."""
    count = end - start
    level = (count.bit_length() - 1) // 8
    unit = WIDTH**level
    first = start // unit % WIDTH
    tile = fetch(level, start // (unit * WIDTH))
    hashes = tile[first * HASH : (first + count // unit) * HASH]
    if len(hashes) != count // unit * HASH:
        raise TlogError(f"the tree has no leaves from {start} to {end}")
    return perfect_root(hashes)
