"""Groups: what arrives together is worked on together, and nobody waits for company that does not come."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from threading import Event

import pytest

from compliance import environments, groups
from compliance.environments import Environment
from compliance.groups import Groups, QueueFull, Sizes

GATHERS = Sizes(largest=10, longest_queue=20, worth=4, longest_gathering=30.0)
SOON = 15.0


class Desk:
    """Doubles numbers, a group at a time, as long as its door is open."""

    def __init__(self, sizes: Sizes) -> None:
        self.worked: list[list[int]] = []
        self.door = Event()
        self.door.set()
        self.seconds = 0.0
        self.groups = Groups(Environment.TEST, self.work, name="doubling", sizes=sizes)

    def work(self, numbers: Sequence[int]) -> list[int]:
        self.worked.append(list(numbers))
        assert self.door.wait(SOON)
        time.sleep(self.seconds)
        if 13 in numbers:
            raise LookupError("thirteen")
        return [2 * number for number in numbers]

    def close(self) -> None:
        self.door.set()
        self.groups.close()


@pytest.fixture
def make_desk() -> Iterator[Callable[[Sizes], Desk]]:
    made: list[Desk] = []

    def make(sizes: Sizes) -> Desk:
        made.append(Desk(sizes))
        return made[-1]

    yield make
    for desk in made:
        desk.close()


async def begun(desk: Desk, *numbers: int) -> list["asyncio.Task[int]"]:
    """Tasks that have asked, in order."""
    tasks = [asyncio.create_task(desk.groups.ask(number)) for number in numbers]
    await asyncio.sleep(0.05)
    return tasks


async def outcomes(tasks: Sequence["asyncio.Task[int]"]) -> list[int | BaseException]:
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), SOON)


def test_what_comes_while_a_group_is_worked_on_is_the_next(make_desk: Callable[[Sizes], Desk]) -> None:
    desk = make_desk(Sizes(largest=3, longest_queue=20))

    async def play() -> list[int | BaseException]:
        desk.door.clear()
        tasks = [*await begun(desk, 1), *await begun(desk, 2, 3, 4, 5)]
        desk.door.set()
        return await outcomes(tasks)

    assert asyncio.run(play()) == [2, 4, 6, 8, 10]
    assert desk.worked == [[1], [2, 3, 4], [5]]


def test_lone_items_wait_for_nobody(
    make_desk: Callable[[Sizes], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A group of several would now gather for thirty seconds.
    monkeypatch.setattr(groups, "SMOOTHING", 1_000.0)
    desk = make_desk(GATHERS)
    desk.seconds = 0.05

    async def play() -> list[int | BaseException]:
        first = await outcomes(await begun(desk, 1))
        return first + await outcomes(await begun(desk, 2))

    assert asyncio.run(play()) == [2, 4]
    assert desk.worked == [[1], [2]]


def test_group_after_one_of_several_gathers_what_is_worth_it(
    make_desk: Callable[[Sizes], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "SMOOTHING", 1.0)
    desk = make_desk(GATHERS)

    async def play() -> list[int | BaseException]:
        desk.door.clear()
        first, several = await begun(desk, 1), await begun(desk, 2, 3)
        desk.seconds = 0.5
        desk.door.set()
        await outcomes([*first, *several])
        # It may gather for a second now, and has enough before.
        return await outcomes([*await begun(desk, 4), *await begun(desk, 5), *await begun(desk, 6, 7)])

    assert asyncio.run(play()) == [8, 10, 12, 14]
    assert desk.worked == [[1], [2, 3], [4, 5, 6, 7]]


def test_gathering_ends_though_nobody_joins(make_desk: Callable[[Sizes], Desk]) -> None:
    desk = make_desk(GATHERS)

    async def play() -> list[int | BaseException]:
        desk.door.clear()
        first, several = await begun(desk, 1), await begun(desk, 2, 3)
        desk.door.set()
        await outcomes([*first, *several])
        return await outcomes(await begun(desk, 4))

    assert asyncio.run(play()) == [8], "long before the 30 s it may gather at most"
    assert desk.worked == [[1], [2, 3], [4]]


def test_what_a_group_meets_is_its_own(make_desk: Callable[[Sizes], Desk]) -> None:
    desk = make_desk(Sizes(largest=2, longest_queue=20))

    async def play() -> list[int | BaseException]:
        desk.door.clear()
        tasks = [*await begun(desk, 1), *await begun(desk, 12, 13, 14)]
        desk.door.set()
        return await outcomes(tasks)

    found = asyncio.run(play())

    assert [found[0], found[3]] == [2, 28]
    assert [type(one) for one in found[1:3]] == [LookupError, LookupError]


def test_full_queue_and_a_closed_desk_turn_away_at_once(make_desk: Callable[[Sizes], Desk]) -> None:
    desk = make_desk(Sizes(largest=2, longest_queue=2))

    async def play() -> list[int | BaseException]:
        desk.door.clear()
        tasks = [*await begun(desk, 1), *await begun(desk, 2, 3)]
        with pytest.raises(QueueFull):
            await desk.groups.ask(4)
        desk.door.set()
        return await outcomes(tasks)

    with closing(desk):
        assert asyncio.run(play()) == [2, 4, 6]
    with pytest.raises(QueueFull):
        asyncio.run(desk.groups.ask(5))


def test_what_waits_when_it_closes_is_still_worked_on(make_desk: Callable[[Sizes], Desk]) -> None:
    desk = make_desk(GATHERS)

    async def play() -> list[int | BaseException]:
        desk.door.clear()
        tasks = [*await begun(desk, 1), *await begun(desk, 2, 3)]
        await asyncio.to_thread(desk.close)
        return await outcomes(tasks)

    assert asyncio.run(play()) == [2, 4, 6]


def test_thread_that_began_ahead_does_its_first_task_in_its_environment(
    make_desk: Callable[[Sizes], Desk],
) -> None:
    desk = make_desk(GATHERS)
    seen: list[Environment] = []
    desk.groups.begin(lambda: seen.append(environments.current()))

    assert asyncio.run(desk.groups.ask(1)) == 2
    assert seen == [Environment.TEST]
