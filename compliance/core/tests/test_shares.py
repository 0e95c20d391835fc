import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from compliance.core.shares import AllTaken, SharedSlots, Slot

Take = Callable[[SharedSlots, str, float], Slot]


def _in_thread(slots: SharedSlots, holder: str, seconds: float) -> Slot:
    return slots.take(holder, seconds=seconds)


def _in_loop(slots: SharedSlots, holder: str, seconds: float) -> Slot:
    return asyncio.run(slots.wait(holder, seconds=seconds))


@pytest.fixture(params=[_in_thread, _in_loop])
def take(request: pytest.FixtureRequest) -> Take:
    found: Take = request.param
    return found


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.mark.parametrize(("size", "share"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4)])
def test_holder_alone_has_half_of_the_slots_but_at_least_one(take: Take, size: int, share: int) -> None:
    slots = SharedSlots(size)

    for _ in range(share):
        take(slots, "greedy", 0)

    with pytest.raises(AllTaken):
        take(slots, "greedy", 0.01)
    assert slots._taken["greedy"] == share


def test_another_holder_finds_a_slot_at_once(take: Take) -> None:
    slots = SharedSlots(2)
    take(slots, "greedy", 0)

    assert take(slots, "other", 0).holder == "other"


def test_slots_are_never_more_than_their_number(take: Take) -> None:
    slots = SharedSlots(2)
    take(slots, "a", 0)
    take(slots, "b", 0)

    with pytest.raises(AllTaken):
        take(slots, "c", 0.01)


def test_released_slot_is_free_again_once(take: Take) -> None:
    slots = SharedSlots(2)
    with take(slots, "a", 0) as slot:
        take(slots, "b", 0)
        slot.release()
    slot.release()

    take(slots, "a", 0)
    with pytest.raises(AllTaken):
        take(slots, "c", 0)


def test_those_who_gave_up_leave_nothing_behind(take: Take) -> None:
    slots = SharedSlots(1)
    slot = take(slots, "a", 0)
    for _ in range(3):
        with pytest.raises(AllTaken):
            take(slots, "b", 0.01)

    slot.release()

    assert slots._taken["b"] == 0
    take(slots, "c", 0)


def test_holders_are_served_turn_by_turn(threads: ThreadPoolExecutor) -> None:
    slots, served = SharedSlots(1), list[str]()

    def work(holder: str) -> None:
        with slots.take(holder, seconds=30):
            served.append(holder)

    first = slots.take("first", seconds=0)
    waiting = []
    for number, holder in enumerate(["greedy", "greedy", "greedy", "other", "third"], 1):
        waiting.append(threads.submit(work, holder))
        while sum(map(len, slots._waiting.values())) < number:
            pass

    first.release()

    for one in waiting:
        one.result(30)
    assert served == ["greedy", "other", "third", "greedy", "greedy"]


def test_queue_of_a_holder_is_bounded(threads: ThreadPoolExecutor) -> None:
    slots = SharedSlots(1, longest_queue=2)

    with ExitStack() as stack:
        stack.enter_context(slots.take("a"))
        waiting = [threads.submit(slots.take, "greedy", seconds=30) for _ in range(2)]
        while len(slots._waiting.get("greedy", ())) < 2:
            pass
        with pytest.raises(AllTaken):
            slots.take("greedy", seconds=30)
        other = threads.submit(slots.take, "other", seconds=30)
        while "other" not in slots._waiting:
            pass

    for one in (waiting[0], other, waiting[1]):
        one.result(30).release()


async def _cancelled_while_waiting(slots: SharedSlots) -> None:
    slot = await slots.wait("a", seconds=0)
    waiting = asyncio.create_task(slots.wait("b", seconds=30))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    slot.release()


def test_cancelled_coroutine_holds_nothing() -> None:
    slots = SharedSlots(1)

    asyncio.run(_cancelled_while_waiting(slots))

    assert slots.take("c").holder == "c"
