"""At least once, whatever dies: a stack of its own, events asked for over the API, receivers on loopback.

Every event that the API acknowledged must arrive; one that arrives again carries the same id.
"""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
import redis

from compliance.outbound.tests.receivers import Receiver, Script, answer, receiving
from compliance.tests.stack import HEAL_SECONDS, Stack, processes_of
from compliance.tests.waiting import eventually, kill

pytestmark = [pytest.mark.slow, pytest.mark.drill]

SENDER = "webhook_sender"
ARRIVAL_SECONDS = 60
LEASE_SECONDS = 10
"""What a killed sender had taken is free after it."""


@pytest.fixture(autouse=True)
def sender_is_up(stack: Stack) -> None:
    """Each drill begins with a sender at work."""
    assert eventually(lambda: bool(processes_of(stack, SENDER)), seconds=40)


def register(stack: Stack, receiver: Receiver) -> str:
    answered = stack.call("POST", "/v1/webhooks", {"url": receiver.url, "events": ["certificate.revoked"]})
    assert answered.status_code == 201, answered.text
    webhook: str = answered.json()["data"]["id"]
    return webhook


def ask(stack: Stack, webhook: str) -> str | None:
    """An event for this webhook alone; its id, None when the API could not take it."""
    answered = stack.call("POST", f"/v1/webhooks/{webhook}/test")
    if answered.status_code != 202:
        return None
    event_id: str = answered.json()["data"]["event_id"]
    return event_id


def burst(stack: Stack, webhook: str, count: int, strike: Callable[[], None] | None = None) -> set[str]:
    """Ask for so many events, and strike in the middle; the ids of those that were acknowledged."""
    found: list[str | None] = []
    for number in range(count):
        if strike and number == count // 2:
            strike()
        found.append(ask(stack, webhook))
    return {event_id for event_id in found if event_id}


def arrived(receiver: Receiver) -> Counter[str]:
    """How often each event came."""
    return Counter(
        match[1].decode()
        for request in list(receiver.received)
        if (match := re.match(rb'{"id":"([0-9a-f-]{36})"', request.body))
    )


def all_arrive(receiver: Receiver, expected: set[str]) -> bool:
    return eventually(lambda: expected <= arrived(receiver).keys(), seconds=ARRIVAL_SECONDS)


def kill_sender(stack: Stack) -> None:
    kill(*processes_of(stack, SENDER))


def once(stack: Stack, *, after_answer: bool) -> Script:
    """Kills the sender at the first request, before or after it is answered."""
    lock, struck = threading.Lock(), threading.Event()

    def script(connection: socket.socket, receiver: Receiver) -> None:
        with lock:
            is_first = not struck.is_set()
            struck.set()
        if is_first and not after_answer:
            kill_sender(stack)
        answer(200)(connection, receiver)
        if is_first and after_answer:
            kill_sender(stack)

    return script


@pytest.mark.parametrize("after_answer", [False, True], ids=["before the answer", "after the answer"])
def test_sender_killed_at_a_request(stack: Stack, after_answer: bool) -> None:
    with receiving(once(stack, after_answer=after_answer)) as receiver:
        webhook = register(stack, receiver)

        event_id = ask(stack, webhook)

        assert event_id is not None
        assert all_arrive(receiver, {event_id})
        if not after_answer:
            assert eventually(lambda: arrived(receiver)[event_id] == 2, seconds=30)
        assert eventually(lambda: statuses(stack, webhook) == {"succeeded"}, seconds=30)


def test_sender_killed_when_it_has_claimed_and_not_sent(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        port = listener.getsockname()[1]
        webhook = register(stack, Receiver("127.0.0.1", port))
        event_id = ask(stack, webhook)
        assert eventually(lambda: statuses(stack, webhook) == {"in_flight"}, seconds=HEAL_SECONDS)
        kill_sender(stack)
    with receiving(answer(200)) as receiver:
        stack.call("PATCH", f"/v1/webhooks/{webhook}", {"url": receiver.url})

        assert event_id is not None
        assert all_arrive(receiver, {event_id})


def test_sender_killed_when_all_is_done_sends_nothing_again(stack: Stack) -> None:
    with receiving(answer(200)) as receiver:
        webhook = register(stack, receiver)
        event_id = ask(stack, webhook)
        assert eventually(lambda: statuses(stack, webhook) == {"succeeded"}, seconds=HEAL_SECONDS)

        kill_sender(stack)
        assert eventually(lambda: bool(processes_of(stack, SENDER)), seconds=40)
        time.sleep(LEASE_SECONDS + 2)

        assert arrived(receiver) == {event_id: 1}


def test_sender_killed_in_a_burst(stack: Stack) -> None:
    with receiving(answer(200)) as receiver:
        webhook = register(stack, receiver)

        expected = burst(stack, webhook, 100, lambda: kill_sender(stack))

        assert len(expected) == 100
        assert all_arrive(receiver, expected)


def test_redis_flushed_in_a_burst(stack: Stack) -> None:
    def flush() -> None:
        redis.Redis.from_url(stack.exports["REDIS_URL"]).flushall()

    with receiving(answer(200)) as receiver:
        webhook = register(stack, receiver)

        expected = burst(stack, webhook, 100, flush)

        assert len(expected) == 100
        assert all_arrive(receiver, expected)
        assert eventually(lambda: set(arrived(receiver).values()) == {1}, seconds=HEAL_SECONDS)


def test_redis_down_throughout(stack: Stack) -> None:
    stack.stop("redis")
    try:
        with receiving(answer(200)) as receiver:
            webhook = register(stack, receiver)
            expected = burst(stack, webhook, 30, lambda: kill_sender(stack))

            assert len(expected) == 30
            assert all_arrive(receiver, expected)
    finally:
        stack.start("redis")


def test_postgresql_restarted_in_a_burst(stack: Stack) -> None:
    def restart() -> None:
        stack.stop("postgres")
        stack.start("postgres")

    with receiving(answer(200)) as receiver:
        webhook = register(stack, receiver)

        expected = burst(stack, webhook, 60, restart)

        assert len(expected) >= 30
        assert all_arrive(receiver, expected)


def statuses(stack: Stack, webhook: str) -> set[str]:
    rows = stack.call("GET", f"/v1/webhooks/{webhook}/deliveries").json()["data"]
    return {row["status"] for row in rows}
