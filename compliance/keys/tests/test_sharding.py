"""Names of shards, and making them."""

import pytest

from compliance.keys.base import is_shard, shard_labels


def test_shards_are_numbered() -> None:
    assert shard_labels("live", 2) == ["live-00", "live-01"]
    assert shard_labels("a label of exactly thirty-two ok", 0) == []


@pytest.mark.parametrize(
    ("label", "count"), [("live", 101), ("live", -1), ("thirty octets long, no room at", 1)]
)
def test_names_that_no_token_can_have_are_refused(label: str, count: int) -> None:
    with pytest.raises(ValueError, match="shard"):
        shard_labels(label, count)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("live-00", True),
        ("live-99", True),
        ("live", False),
        ("live-1", False),
        ("live-001", False),
        ("test-00", False),
        ("live-0a", False),
        ("live-00\n", False),
        ("x-live-00", False),
    ],
)
def test_shards_are_known_by_their_names(label: str, expected: bool) -> None:
    assert is_shard(label, of="live") is expected
