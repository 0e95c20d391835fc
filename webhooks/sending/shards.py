"""Shards of the queue: each webhook is in one, and senders claim from different shards at the same time.

A claim that holds a shard's lock alone keeps the caps of the shard's endpoints exact.
"""

import secrets
from collections.abc import Sequence
from typing import Final

COUNT: Final = 64
"""A power of two: a webhook's shard is the last bits of its id's hash."""
FEWEST: Final = 4


class ShardTurns:
    """Which shards a sender claims from next: all while it is alone, fewer while others hold some.

    The shards of a round come after one another, so that none is left out.
    """

    def __init__(self) -> None:
        self._width = COUNT
        self._first = secrets.randbelow(COUNT)
        self._left = COUNT
        self._was_contended = False

    def next(self) -> list[int]:
        """Return the shards to try now."""
        if self._left <= 0:
            self._left = COUNT
        width = min(self._width, self._left)
        return [(self._first + step) % COUNT for step in range(width)]

    def note(self, *, tried: Sequence[int], held: Sequence[int], had_slow: bool) -> None:
        """Go on behind the shards that were tried; with fewer at a time if another sender held some.

        `had_slow`: whether slow endpoints could be claimed from.
        """
        self._first = (self._first + len(tried)) % COUNT
        self._left -= len(tried)
        lacked_some = len(held) < len(tried)
        self._was_contended = lacked_some or not had_slow
        self._width = max(FEWEST, self._width // 2) if lacked_some else min(COUNT, self._width * 2)

    @property
    def is_round_over(self) -> bool:
        """Whether every shard has been tried since the round began, and the last ones were free."""
        return self._left <= 0 and not self._was_contended
