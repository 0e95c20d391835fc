"""Items are worked on in groups that grow with the load, and share nothing but the work."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from compliance.serving.batching import Batcher, QueueFull

Work = Callable[[Sequence[int]], Awaitable[Sequence[int | Exception]]]


class Recorder:
    """Doubles each item once it is released, and keeps the groups it was given."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.released = asyncio.Event()

    async def work(self, items: Sequence[int]) -> Sequence[int | Exception]:
        self.groups.append(list(items))
        await self.released.wait()
        if 13 in items:
            raise RuntimeError("a defect")
        return [ValueError(item) if item < 0 else 2 * item for item in items]


def batcher(work: Work, **more: float) -> Batcher[int, int]:
    options = {"largest": 4, "longest_queue": 10, **more}
    return Batcher(work, **options)  # type: ignore[arg-type]


def test_what_arrives_during_the_work_makes_the_next_group() -> None:
    async def scene() -> None:
        recorder = Recorder()
        items = batcher(recorder.work)
        first = [items.ask(number) for number in range(2)]
        await asyncio.sleep(0)
        later = [items.ask(number) for number in range(2, 8)]
        recorder.released.set()

        assert await asyncio.gather(*first, *later) == [2 * number for number in range(8)]
        assert recorder.groups == [[0, 1], [2, 3, 4, 5], [6, 7]]

    asyncio.run(scene())


def test_item_that_finds_the_queue_full_is_refused_at_once() -> None:
    async def scene() -> None:
        recorder = Recorder()
        items = batcher(recorder.work)
        asked = [items.ask(0)]
        await asyncio.sleep(0)
        asked += [items.ask(number) for number in range(10)]

        with pytest.raises(QueueFull):
            items.ask(99)

        recorder.released.set()
        assert len(await asyncio.gather(*asked)) == 11

    asyncio.run(scene())


def test_error_of_one_item_is_its_own_and_a_defect_is_its_groups() -> None:
    async def scene() -> None:
        recorder = Recorder()
        recorder.released.set()
        items = batcher(recorder.work)

        found = await asyncio.gather(items.ask(1), items.ask(-1), return_exceptions=True)
        failed = await asyncio.gather(items.ask(1), items.ask(13), return_exceptions=True)
        after = await items.ask(3)

        assert (found[0], type(found[1])) == (2, ValueError)
        assert [type(one) for one in failed] == [RuntimeError] * 2
        assert after == 6

    asyncio.run(scene())


def test_abandoned_item_leaves_its_neighbours_alone() -> None:
    async def scene() -> None:
        recorder = Recorder()
        recorder.released.set()
        items = batcher(recorder.work)
        gone, kept = items.ask(1), items.ask(2)
        gone.cancel()

        assert await kept == 4

    asyncio.run(scene())


def test_group_after_one_of_several_gathers_until_it_is_as_large() -> None:
    async def scene() -> None:
        recorder = Recorder()
        recorder.released.set()
        items = batcher(recorder.work, longest_gathering=30.0)
        items._seconds = 30.0
        await asyncio.gather(*(items.ask(number) for number in range(3)))

        asked = [items.ask(1)]
        for number in (2, 3):
            await asyncio.sleep(0.01)
            assert not asked[0].done()
            asked.append(items.ask(number))

        assert await asyncio.gather(*asked) == [2, 4, 6]
        assert recorder.groups == [[0, 1, 2], [1, 2, 3]]

    asyncio.run(scene())


def test_lone_item_never_waits_for_others() -> None:
    async def scene() -> None:
        recorder = Recorder()
        recorder.released.set()
        items = batcher(recorder.work, longest_gathering=3_600.0)
        items._seconds = 3_600.0

        assert [await items.ask(number) for number in range(3)] == [0, 2, 4]

    asyncio.run(scene())
