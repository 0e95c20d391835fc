"""A running sender: its own threads and connection, real receivers, real time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from auditlog.sealing import keys as log_keys
from auditlog.tasks import seal
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.signals import streams, wakeup
from compliance.signals.models import Signal, Stream
from compliance.signals.sending.sender import SignalSender
from compliance.signals.tests.factories import (
    ACTOR,
    derive,
    make_certified_agent,
    make_push_stream,
    read_token,
)
from compliance.stores import sql
from compliance.tenancy.models import Tenant
from compliance.tests.owner import end_sessions
from compliance.tests.waiting import eventually
from webhooks.tests.receivers import Receiver, answer, receiving

pytestmark = pytest.mark.usefixtures("empty_streams", "loopback")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.stores.announcements.LISTEN_SECONDS", 0.05)


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
    """Whether an announcement wakes a sender that pushes; tried again, since Redis may lose one."""
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
            assert brings(wakeup.notify_on_commit, receiver)

            assert brings(seal_an_entry, receiver)


def test_turn_that_the_database_refuses_is_not_left_to_the_next_poll(settings: Any) -> None:
    settings.SIGNALS_POLL_SECONDS = 600.0

    class Interrupted(SignalSender):
        turns = 0

        def listen(self) -> None:
            """No announcement."""

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


def test_sender_shows_that_it_runs() -> None:
    with environments.use(Environment.TEST):
        wakeup.mark_sender_alive()

        assert wakeup.is_sender_alive()
