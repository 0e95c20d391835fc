"""Few workers for many: owners take turns, nobody waits for ever, and a failure is one item's own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from compliance.groups import QueueFull
from compliance.turns import LoopTurns

Turns = LoopTurns[str, str]


class Workshop:
    """Workers that take what they are given and end when they are told."""

    def __init__(
        self, count: int = 2, *, share: int = 1, longest_queue: int = 9, patience: float = 5
    ) -> None:
        self.begun: list[str] = []
        self.worked: set[int] = set()
        self._gates: dict[str, asyncio.Event] = {}
        workers = [self._worker(number) for number in range(count)]
        self.turns = Turns(workers, share=share, longest_queue=longest_queue, patience=patience)

    async def ask(self, *items: str) -> "list[asyncio.Future[str]]":
        """Outcomes to come of items whose first letter is their owner; those that can have begun."""
        futures = [self.turns.ask(item[0], item) for item in items]
        await asyncio.sleep(0)
        return futures

    async def end(self, *items: str) -> None:
        for item in items:
            self._gates[item].set()
            for _ in range(4):
                await asyncio.sleep(0)

    def _worker(self, number: int) -> Callable[[str], Awaitable[str]]:
        async def work(item: str) -> str:
            self.begun.append(item)
            self.worked.add(number)
            gate = self._gates[item] = asyncio.Event()
            await gate.wait()
            if "!" in item:
                raise ValueError(item)
            return item.upper()

        return work


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 5))


def test_each_gets_its_own_outcome_and_a_failure_is_its_own() -> None:
    async def scene() -> None:
        shop = Workshop(share=2)
        futures = await shop.ask("a1", "b!", "a2")

        await shop.end("b!", "a1", "a2")

        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [str(outcome) for outcome in found] == ["A1", "b!", "A2"]
        assert isinstance(found[1], ValueError)

    play(scene())


def test_owner_has_his_share_and_others_do_not_wait_for_him() -> None:
    async def scene() -> None:
        shop = Workshop()
        await shop.ask("a1", "a2", "a3")
        assert shop.begun == ["a1"]

        await shop.ask("b1", "b2", "c1")

        assert shop.begun == ["a1", "b1"]
        await shop.end("a1", "b1", "a2")
        assert shop.begun == ["a1", "b1", "a2", "b2", "c1"]
        await shop.end("c1", "b2", "a3")
        assert shop.begun[-1] == "a3"

    play(scene())


def test_who_asks_for_little_is_served_between_those_who_ask_for_much() -> None:
    async def scene() -> None:
        shop = Workshop(1)
        await shop.ask("a1", "a2", "a3", "a4", "b1", "c1")

        await shop.end("a1", "a2", "b1", "c1", "a3")

        assert shop.begun == ["a1", "a2", "b1", "c1", "a3", "a4"]

    play(scene())


def test_one_after_the_other_is_always_the_same_worker() -> None:
    async def scene() -> None:
        shop = Workshop(3)
        for item in ("a1", "b1", "a2"):
            await shop.ask(item)
            await shop.end(item)

        assert len(shop.worked) == 1

    play(scene())


def test_more_than_the_queue_holds_is_turned_away_at_once() -> None:
    async def scene() -> None:
        shop = Workshop(1, longest_queue=2)
        futures = await shop.ask("a1", "a2", "b1")

        with pytest.raises(QueueFull):
            shop.turns.ask("c", "c1")

        await shop.end("a1", "a2", "b1")
        assert await asyncio.gather(*futures) == ["A1", "A2", "B1"]
        await shop.ask("c1")
        assert shop.begun[-1] == "c1"

    play(scene())


def test_who_waited_too_long_is_turned_away_and_never_worked_on() -> None:
    async def scene() -> None:
        shop = Workshop(1, patience=0.05)
        first, late = await shop.ask("a1", "a2")

        with pytest.raises(QueueFull):
            await late

        await shop.end("a1")
        assert await first == "A1"
        await shop.ask("b1")
        assert shop.begun == ["a1", "b1"]

    play(scene())


def test_who_goes_away_leaves_his_neighbours_alone() -> None:
    async def scene() -> None:
        shop = Workshop(1)
        futures = await shop.ask("a1", "a2", "b1")
        futures[0].cancel()
        futures[1].cancel()

        await shop.end("a1", "b1")

        assert await futures[2] == "B1"
        assert shop.begun == ["a1", "b1"]

    play(scene())
