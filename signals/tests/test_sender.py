"""A running sender: its own threads and connection, real receivers, real time."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from auditlog.sealing import keys as log_keys
from auditlog.tasks import seal
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.stores import sql, wakeups
from compliance.tests.owner import end_sessions
from compliance.tests.waiting import eventually
from signals import streams
from signals.models import Signal, Stream
from signals.sending.claims import Room
from signals.sending.sender import SignalSender
from signals.tests.factories import (
    ACTOR,
    derive,
    make_certified_agent,
    make_push_stream,
    read_token,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant
from webhooks.models import Pace

pytestmark = pytest.mark.usefixtures("empty_streams", "loopback")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.stores.wakeups.LISTEN_SECONDS", 0.05)


@contextmanager
def at_work(count: int = 1) -> Iterator[None]:
    """So many senders of the live environment, gone when the block ends."""
    with running(*(SignalSender(Environment.LIVE, size=4) for _ in range(count))):
        yield


@contextmanager
def running(*senders: SignalSender) -> Iterator[None]:
    """These senders, each in a thread that is gone when the block ends."""
    threads = [threading.Thread(target=sender.run) for sender in senders]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for sender in senders:
            sender.stop()
        for thread in threads:
            thread.join(timeout=20)
        assert not any(thread.is_alive() for thread in threads)


def brings(announce: Callable[[], object], receiver: Receiver) -> bool:
    """Return whether an announcement wakes a sender that pushes; tried again, since Redis may lose one."""
    before = len(receiver.received)

    def is_woken() -> bool:
        announce()
        return eventually(lambda: len(receiver.received) > before, seconds=5)

    return eventually(is_woken)


def jtis(receiver: Receiver, stream: Stream) -> list[str]:
    """What arrived, in its order."""
    bodies = [request.body.decode() for request in list(receiver.received)]
    return [read_token(body, audience=stream.audience)["jti"] for body in bodies]


def test_sealing_wakes_the_sender(tenant: Tenant, settings: Any) -> None:
    settings.SIGNALS_POLL_SECONDS = 600.0
    log_keys.bootstrap(actor=ACTOR, now=now())

    def seal_an_entry() -> None:
        make_certified_agent(tenant)
        seal.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)

    with receiving(answer(202, b"")) as receiver:
        stream = make_push_stream(tenant, receiver.url)
        with at_work():
            # What the start itself finds has then been sent.
            streams.request_verification(tenant_id=tenant.id, stream_id=stream.id, actor=ACTOR, now=now())
            assert brings(lambda: wakeups.wake(wakeups.SIGNALS), receiver)

            assert brings(seal_an_entry, receiver)


def test_turn_that_the_database_refuses_is_not_left_to_the_next_poll(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SIGNALS_POLL_SECONDS = 600.0
    monkeypatch.setattr(wakeups, "listen", lambda *_: None)  # no announcement

    class Interrupted(SignalSender):
        turns = 0

        def upkeep(self) -> None:
            self.turns += 1
            if self.turns == 1:
                sql.query("SELECT pg_terminate_backend(pg_backend_pid())")
            super().upkeep()

    sender = Interrupted(Environment.LIVE, size=1)
    with running(sender):
        assert eventually(lambda: sender.turns == 2)


def test_two_senders_push_each_signal_once_and_in_order(tenant: Tenant) -> None:
    with receiving(answer(202, b"")) as receiver:
        stream = make_push_stream(tenant, receiver.url)
        for _ in range(4):
            make_certified_agent(tenant)
        derive()
        expected = [str(signal.jti) for signal in Signal.objects.of(stream).waiting()]

        with at_work(count=2):
            assert eventually(lambda: not Signal.objects.of(stream).exists())

        assert jtis(receiver, stream) == expected


def test_sender_goes_on_after_the_database_ends_its_session(tenant: Tenant) -> None:
    with receiving(answer(202, b"")) as receiver:
        stream = make_push_stream(tenant, receiver.url)
        with at_work():
            streams.request_verification(tenant_id=tenant.id, stream_id=stream.id, actor=ACTOR, now=now())
            assert eventually(lambda: len(receiver.received) == 1)

            end_sessions()
            make_certified_agent(tenant)
            derive()

            assert eventually(lambda: len(receiver.received) == 2)


@pytest.mark.parametrize("had_been", [Pace.UNKNOWN, Pace.QUICK])
def test_tenants_whose_receivers_are_slow_hold_nobody_up(tenant: Tenant, had_been: Pace) -> None:
    """Two tenants with more streams than there are threads, whose receivers hold each push."""
    hostile = [make_tenant() for _ in range(2)]
    answers = threading.Event()

    def hold(connection: socket.socket, receiver: Receiver) -> None:
        answers.wait(60)
        accepted(connection, receiver)

    accepted = answer(202, b"")
    with receiving(hold) as slow, receiving(accepted) as quick:
        for one in [each for each in hostile for _ in range(6)]:
            make_push_stream(one, slow.url)
        Stream.objects.update(pace=had_been)
        for one in hostile:
            make_certified_agent(one)
        derive()
        sender = SignalSender(Environment.LIVE, size=8)
        with running(sender):
            assert eventually(lambda: len(slow.received) >= 2)
            make_push_stream(tenant, quick.url)
            make_certified_agent(tenant)
            derive()

            arrived = eventually(lambda: bool(quick.received), seconds=20)
            held = Counter(claim.row.tenant_id for claim in sender.in_flight.values())
            answers.set()

    assert arrived
    share = 1 if had_been is Pace.UNKNOWN else 2
    assert {held[one.id] for one in hostile} == {share}


def test_tenants_take_turns(tenant: Tenant) -> None:
    """Streams of one tenant, however many and however early, leave the others theirs."""
    other = make_tenant()
    for one in [tenant] * 6 + [other]:
        make_push_stream(one)
    Stream.objects.update(pace=Pace.QUICK)
    due = list(Stream.objects.order_by("id"))

    chosen = Room(8, ()).chosen(due)

    assert [due[place].id for place in (0, 6, 1)] == chosen
