"""A running sender: its own threads and connection, real receivers, real time."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

import pytest
from django.conf import settings
from django.db import connections

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.outbound.http_client import Outcome
from compliance.outbound.tests.receivers import HANG_SECONDS, answer, answers, receiving, silence
from compliance.tests.owner import end_sessions
from compliance.tests.waiting import eventually
from tenancy.tests.factories import make_tenant
from webhooks import publishing
from webhooks.models import Attempt, Delivery, Pace, Webhook
from webhooks.sending import claims
from webhooks.sending.attempts import ClaimedAttempt, send
from webhooks.sending.sender import Sender
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_of_pace
from webhooks.vocabulary import EventName

pytestmark = pytest.mark.usefixtures("empty_queue", "loopback")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr("compliance.stores.wakeups.LISTEN_SECONDS", 0.05)
    settings.WEBHOOK_POLL_SECONDS = 0.2


@contextmanager
def at_work(sender: Sender | None = None) -> Iterator[None]:
    """A sender, of the live environment unless another is given, gone when the block ends."""
    sender = sender or Sender(Environment.LIVE, size=settings.WEBHOOK_SENDER_THREADS)
    thread = threading.Thread(target=sender.run)
    thread.start()
    try:
        yield
    finally:
        sender.stop()
        thread.join(timeout=60)
        assert not thread.is_alive()
        Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=now())


def statuses(webhook: Webhook) -> set[str]:
    return set(Delivery.objects.to_webhook(webhook).values_list("status", flat=True))


def test_notification_wakes_the_sender(settings: Any) -> None:
    settings.WEBHOOK_POLL_SECONDS = 600.0

    def wakes(webhook: Webhook) -> bool:
        """Return whether one more delivery is announced and sent; Redis may lose an announcement."""
        make_delivery(webhook)
        return eventually(lambda: statuses(webhook) == {"succeeded"}, seconds=2)

    with receiving(answer(200)) as receiver, at_work():
        # The sender looks by itself when it starts and when it has subscribed.
        for _ in range(3):
            webhook = make_webhook(make_tenant(), receiver.url)
            assert eventually(partial(wakes, webhook))


def test_without_redis_polling_is_enough(redis_is_down: None) -> None:
    with receiving(answers(500, 200)) as receiver, at_work():
        webhook = make_webhook(make_tenant(), receiver.url)
        make_delivery(webhook)
        assert eventually(lambda: statuses(webhook) == {"succeeded"})

    assert len(receiver.received) == 2


def test_first_retry_comes_a_second_after_the_failure() -> None:
    sender = Sender(Environment.LIVE, size=4)
    with receiving(answers(500, 200)) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        delivery = make_delivery(webhook, at=now() - timedelta(minutes=1))
        assert eventually(lambda: sender.run_until_idle(seconds=0) == 1)
        over = sender.now()
        due = Delivery.objects.get(id=delivery.id).next_attempt_at
        with at_work():
            assert eventually(lambda: statuses(webhook) == {"succeeded"})

    failed, repeated = Attempt.objects.filter(delivery=delivery)
    assert due is not None
    assert failed.started_at <= due - timedelta(seconds=1) <= over
    assert repeated.started_at >= due


def test_endpoints_that_hang_delay_no_other(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.outbound.loop.CLOSING_SECONDS", 0.1)
    settings.WEBHOOK_TIMEOUT_SECONDS = HANG_SECONDS
    settings.WEBHOOK_SENDER_THREADS = 32
    settings.WEBHOOK_SLOW_SLOTS = 2
    with receiving(silence) as hanging, receiving(answer(200)) as receiver, at_work():
        tenant = make_tenant()
        for _ in range(8):
            dead = make_webhook_of_pace(tenant, Pace.QUICK, ["agent.created"])
            Webhook.objects.filter(id=dead.id).update(url=hanging.url)
        for _ in range(5):
            publishing.publish(tenant_id=tenant.id, name=EventName.AGENT_CREATED, data={}, now=now())
        healthy = make_webhook(make_tenant(), receiver.url)
        assert eventually(lambda: hanging.connections >= settings.WEBHOOK_SENDER_THREADS // 2)
        make_delivery(healthy)
        assert eventually(lambda: statuses(healthy) == {"succeeded"})
        ended = Attempt.objects.filter(delivery__webhook__url=hanging.url, duration_ms__isnull=False)
        assert not ended.exists()

    assert len(receiver.received) == 1


def test_lease_is_renewed_while_an_answer_is_awaited(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.outbound.loop.CLOSING_SECONDS", 0.1)
    monkeypatch.setattr("webhooks.sending.sender.Sender.renew_seconds", 0.1)
    settings.WEBHOOK_TIMEOUT_SECONDS = HANG_SECONDS
    with receiving(silence) as receiver, at_work():
        webhook = make_webhook(make_tenant(), receiver.url)
        delivery = make_delivery(webhook)
        assert eventually(lambda: statuses(webhook) == {"in_flight"})
        first = Delivery.objects.get(id=delivery.id).leased_until
        assert first is not None
        assert eventually(lambda: (Delivery.objects.get(id=delivery.id).leased_until or first) > first)


def test_sender_that_loses_its_connection_goes_on() -> None:
    with receiving(answer(200)) as receiver, at_work():
        webhook = make_webhook(make_tenant(), receiver.url)
        make_delivery(webhook)
        assert eventually(lambda: statuses(webhook) == {"succeeded"})
        end_sessions()
        make_delivery(webhook)
        assert eventually(lambda: Delivery.objects.to_webhook(webhook).pending().count() == 0)
        assert eventually(lambda: statuses(webhook) == {"succeeded"})

    assert len(receiver.received) == 2


def test_what_a_stopped_sender_leaves_is_free_at_once(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.outbound.loop.CLOSING_SECONDS", 0.1)
    settings.WEBHOOK_TIMEOUT_SECONDS = HANG_SECONDS
    with receiving(silence) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        with at_work():
            delivery = make_delivery(webhook)
            assert eventually(lambda: statuses(webhook) == {"in_flight"})
        moment = now()

        with environments.use(Environment.LIVE):
            claims.clean_up(now=moment)

    assert Delivery.objects.get(id=delivery.id).status == "pending"
    Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=moment)


def test_database_that_stays_away_is_said_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also by a sender that is stopped meanwhile, which tries again at intervals."""
    monkeypatch.setattr("compliance.outbound.loop.CLOSING_SECONDS", 1.2)
    settings.WEBHOOK_TIMEOUT_SECONDS = HANG_SECONDS
    tries: list[bool] = []

    class Counted(Sender):
        renew_seconds = 0.1

        def renew(self, held: Collection[ClaimedAttempt]) -> None:
            tries.append(self.stopping.is_set())
            super().renew(held)

    with receiving(silence) as receiver, monkeypatch.context() as away:
        webhook = make_webhook(make_tenant(), receiver.url)
        with at_work(Counted(Environment.LIVE, size=4)):
            make_delivery(webhook)
            assert eventually(lambda: statuses(webhook) == {"in_flight"})
            away.setitem(connections.settings["default"], "PORT", 1)
            end_sessions()
            assert eventually(lambda: bool(caplog.messages))

    assert caplog.messages == ["live: the database refused: OperationalError"]
    assert 1 <= sum(tries) <= 3


def test_result_that_the_database_refuses_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def poisoned(attempt: ClaimedAttempt) -> Outcome:
        outcome = send(attempt)
        return replace(outcome, response_body="\x00") if attempt.webhook_id == poison.id else outcome

    monkeypatch.setattr("webhooks.sending.sender.send", poisoned)
    with receiving(answer(200)) as receiver:
        poison, webhook = (make_webhook(make_tenant(), receiver.url) for _ in range(2))
        for one in (poison, webhook):
            make_delivery(one)
        with at_work():
            assert eventually(lambda: statuses(webhook) == {"succeeded"})
    assert statuses(poison) == {"in_flight"}


@pytest.mark.parametrize("ahead", [60, -60])
def test_node_with_another_time_takes_over_nothing_that_another_sends(
    monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    delivery = make_delivery(make_webhook(make_tenant()))
    claimed = claims.claim(limit=1, unproven=1, now=now()) or []
    assert [one.delivery_id for one in claimed] == [delivery.id]

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Self:
            return super().now(tz) + timedelta(seconds=ahead)

    with monkeypatch.context() as moved:
        moved.setattr("compliance.core.clock.datetime", Shifted)
        sender = Sender(Environment.LIVE, size=4)
        sender.run_until_idle(seconds=0)
        sender.renew(claimed)

    held = Delivery.objects.get(id=delivery.id)
    assert (held.status, held.lease) == ("in_flight", claimed[0].lease)
    assert held.leased_until is not None
    assert timedelta() < held.leased_until - now() <= claims.LEASE
    claims.lease(claimed, until=now() - timedelta(seconds=1))
    Delivery.objects.filter(id=delivery.id).update(
        status="cancelled", lease=None, leased_until=None, completed_at=now()
    )
