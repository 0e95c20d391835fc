"""At least once, whatever dies: a stack of its own, strikes over HTTP, receivers on loopback.

Every end of authority that the API acknowledged must arrive; one that arrives again carries the same `jti`.
"""

import base64
import json
from collections import Counter
from typing import Any

import pytest

from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.tests.stack import Stack, processes_of
from compliance.tests.waiting import eventually, kill
from signals.vocabulary import DeliveryMethod, SignalEvent

pytestmark = [pytest.mark.slow, pytest.mark.drill]

SENDER = "signal_sender"
ARRIVAL_SECONDS = 60
STRIKE = {"actionType": "unauthorized_access_attempt", "details": {"target": "/etc"}}


@pytest.fixture(autouse=True)
def sender_is_up(stack: Stack) -> None:
    """Each drill begins with a sender at work."""
    assert eventually(lambda: bool(processes_of(stack, SENDER)), seconds=40)


def make_stream(stack: Stack, receiver: Receiver | None = None) -> str:
    """A pushed stream, or one that is polled."""
    push = receiver and {"method": DeliveryMethod.PUSH.value, "endpoint_url": receiver.url}
    answered = stack.call("POST", "/v1/ssf/streams", {"delivery": push} if push else {})
    assert answered.status_code == 201, answered.text
    stream: str = answered.json()["stream_id"]
    return stream


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


def stopped(tokens: list[str]) -> Counter[str]:
    """How often each agent's stop was told."""
    found = [claims_of(token) for token in tokens]
    ended = [one for one in found if SignalEvent.SESSION_REVOKED.value in one["events"]]
    return Counter(str(one["sub_id"]["url"]).rpartition(":")[2] for one in ended)


def pushed(receiver: Receiver) -> list[str]:
    return [request.body.decode() for request in list(receiver.received)]


def polled(stack: Stack, stream: str, taken: dict[str, str]) -> dict[str, str]:
    """Poll once, acknowledge what was taken before, and add what came."""
    body = {"returnImmediately": True, "ack": list(taken)}
    answered = stack.call("POST", f"/v1/ssf/streams/{stream}/poll", body)
    if answered.status_code == 200:
        taken |= answered.json()["sets"]
    return taken


def retire(stack: Stack) -> str:
    agent = stack.new_agent()
    assert stack.call("POST", f"/v1/agents/{agent}/retire", {"reason": "drill"}).status_code == 200
    return agent


def assert_same_jti_again(tokens: list[str]) -> None:
    """What came twice is the same event under the same `jti`."""
    by_event = Counter((one["txn"], one["jti"]) for one in map(claims_of, tokens) if "txn" in one)
    transactions = [transaction for transaction, _ in by_event]
    assert len(set(transactions)) == len(transactions)


def test_third_strike_is_told_to_three_gateways_and_a_poller(stack: Stack) -> None:
    with (
        receiving(answer(202, b"")) as one,
        receiving(answer(202, b"")) as two,
        receiving(answer(202, b"")) as three,
    ):
        gateways, taken = (one, two, three), dict[str, str]()
        streams = [make_stream(stack, gateway) for gateway in gateways]
        poller = make_stream(stack)
        agent = stack.new_agent()
        stack.certify(agent)

        for _ in range(3):
            assert stack.call("POST", "/v1/events", {"agentId": agent, **STRIKE}).status_code == 201

        assert eventually(
            lambda: all(stopped(pushed(gateway))[agent] for gateway in gateways), seconds=ARRIVAL_SECONDS
        )
        assert eventually(
            lambda: stopped(list(polled(stack, poller, taken).values()))[agent] == 1, seconds=ARRIVAL_SECONDS
        )
        for stream in (*streams, poller):
            assert stack.call("DELETE", f"/v1/ssf/streams?stream_id={stream}").status_code == 204


def test_sender_killed_in_a_burst_loses_nothing(stack: Stack) -> None:
    with receiving(answer(202, b"")) as receiver:
        stream, poller, taken = make_stream(stack, receiver), make_stream(stack), dict[str, str]()
        agents = []
        for number in range(30):
            if number % 10 == 5:
                kill(*processes_of(stack, SENDER))
            agents.append(retire(stack))

        assert eventually(lambda: set(agents) <= set(stopped(pushed(receiver))), seconds=ARRIVAL_SECONDS)
        assert eventually(
            lambda: set(agents) <= set(stopped(list(polled(stack, poller, taken).values()))),
            seconds=ARRIVAL_SECONDS,
        )
        assert_same_jti_again(pushed(receiver))
        assert set(stopped(list(taken.values())).values()) == {1}
        stack.call("DELETE", f"/v1/ssf/streams?stream_id={stream}")


def test_what_happens_while_redis_is_down_arrives_afterwards(stack: Stack) -> None:
    """Nothing is sealed without the broker of the tasks, and so nothing is told until it is back."""
    with receiving(answer(202, b"")) as receiver:
        stream = make_stream(stack, receiver)
        stack.stop("redis")
        try:
            agents = {retire(stack) for _ in range(3)}
        finally:
            stack.start("redis")

        assert eventually(lambda: agents <= set(stopped(pushed(receiver))), seconds=ARRIVAL_SECONDS)
        stack.call("DELETE", f"/v1/ssf/streams?stream_id={stream}")
