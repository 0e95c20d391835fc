"""Tiles: their paths and widths, and that a tree grown in any steps is the tree of all its leaves."""

from functools import partial

import pytest
from hypothesis import given, strategies as st

from auditlog.tests.log_keys import root_of
from auditlog.tlog.lines import TlogError
from auditlog.tlog.merkle import EMPTY_ROOT, leaf_hash, tree_root
from auditlog.tlog.tiles import Coordinates, extended, parse_path, partial_tiles, subtree, tile_path, width_at

LEAVES = [leaf_hash(number.to_bytes(4, "big")) for number in range(70_000)]


def grown(*steps: int) -> dict[Coordinates, bytes]:
    """Return the tiles of a tree to which the first leaves were added in these portions."""
    tiles: dict[Coordinates, bytes] = {}
    size = 0
    for step in steps:
        edge = {at: tiles[at] for at in partial_tiles(size)}
        tiles |= extended(size, edge, LEAVES[size : size + step])
        size += step
    return tiles


@given(st.lists(st.integers(0, 700), max_size=6))
def test_steps_do_not_matter(steps: list[int]) -> None:
    tiles, size = grown(*steps), sum(steps)

    assert tiles == grown(size)
    assert root_from(tiles, size) == root_of(LEAVES[:size])


def root_from(tiles: dict[Coordinates, bytes], size: int) -> bytes:
    return tree_root(size, partial(subtree, lambda level, index: tiles.get((level, index), b"")))


def test_every_earlier_root_can_be_read_off() -> None:
    tiles = grown(70_000)

    for size in range(1, 3000, 7):
        assert root_from(tiles, size) == root_of(LEAVES[:size])
    assert root_from({}, 0) == EMPTY_ROOT


def test_widths_are_those_of_the_specification() -> None:
    tiles = grown(70_000)

    assert sorted(partial_tiles(70_000)) == [(0, 273), (1, 1), (2, 0)]
    assert [width_at(70_000, *at) for at in [(0, 272), (0, 273), (0, 274), (1, 0), (1, 1), (2, 0)]] == [
        *(256, 112, 0),
        *(256, 17, 1),
    ]
    assert {at: len(hashes) // 32 for at, hashes in tiles.items()} == {
        at: width_at(70_000, *at) for at in tiles
    }
    assert partial_tiles(256) == [(1, 0)]


@pytest.mark.parametrize(
    ("path", "index", "width"),
    [("000", 0, 256), ("x001/x234/067", 1234067, 256), ("273.p/112", 273, 112), ("x001/000.p/1", 1000, 1)],
)
def test_path_is_that_of_the_specification(path: str, index: int, width: int) -> None:
    assert tile_path(index, width) == path
    assert parse_path(path) == (index, width)


@pytest.mark.parametrize(
    "path",
    [
        *("", "0", "0000", "x000/000", "1/000", "x001/x234/67", "x001", "../000", "000\n"),
        *("000.p/0", "000.p/256", "000.p/999", "000.p/01", "000.p/1/", "\u0660\u0660\u0660"),
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(TlogError):
        parse_path(path)
