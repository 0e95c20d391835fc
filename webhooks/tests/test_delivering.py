"""From the queue to a real receiver: attempts, retries, leases, slots."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compliance.core.clock import now
from compliance.outbound.http_client import Outcome
from compliance.outbound.tests import receivers
from compliance.outbound.tests.receivers import Receiver, answer, answers, receiving
from tenancy.tests.factories import make_tenant
from webhooks import services
from webhooks.models import Attempt, Delivery, Webhook
from webhooks.sending import claims, signature
from webhooks.tests.factories import (
    ACTOR,
    make_delivery,
    make_finished_delivery,
    make_webhook,
    make_webhook_with_secret,
)
from webhooks.tests.steps import claim, claimed, deliver, settle

SECOND = timedelta(seconds=1)
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
GOOD = Outcome(timedelta(milliseconds=20), 200, "ok")
BAD = Outcome(timedelta(milliseconds=20), 500, "no")


@pytest.fixture
def receiver(loopback: None) -> Iterator[Receiver]:
    with receiving(answer(200)) as found:
        yield found


def reloaded(delivery: Delivery) -> Delivery:
    return Delivery.objects.get(id=delivery.id)


# --- One delivery ---------------------------------------------------------------------------------


def test_event_arrives_signed_with_its_exact_bytes(receiver: Receiver) -> None:
    webhook, secret = make_webhook_with_secret(make_tenant(), receiver.url)
    delivery = make_delivery(webhook)

    deliver(now())

    (received,) = receiver.received
    assert received.body == bytes(delivery.message.body)
    assert received.headers["x-service-signature"] == signature.sign(received.body, secret)
    assert received.headers["content-type"] == "application/json"
    assert received.headers["user-agent"] == "service-webhooks/1.0"


def test_standard_webhooks_headers_stand_beside_the_specified_one(receiver: Receiver) -> None:
    webhook, secret = make_webhook_with_secret(make_tenant(), receiver.url)
    delivery = make_delivery(webhook, at=START)

    deliver(START + 5 * SECOND)

    (received,) = receiver.received
    sent_at = int((START + 5 * SECOND).timestamp())
    assert received.headers["webhook-id"] == str(delivery.message_id)
    assert received.headers["webhook-timestamp"] == str(sent_at)
    assert received.headers["webhook-signature"] == signature.sign_standard(
        received.body, secret, message_id=delivery.message_id, timestamp=sent_at
    )


def test_success_is_written_down(receiver: Receiver) -> None:
    delivery = make_delivery(make_webhook(make_tenant(), receiver.url), at=START)

    (outcome,) = deliver(START)

    found = reloaded(delivery)
    assert (found.status, found.attempt_count, found.next_attempt_at) == ("succeeded", 1, None)
    assert (found.lease, found.leased_until) == (None, None)
    assert found.completed_at == START + outcome.duration
    (attempt,) = found.attempts.all()
    assert (attempt.number, attempt.url, attempt.started_at) == (1, receiver.url, START)
    assert (attempt.response_status, attempt.response_body, attempt.error) == (200, "ok", None)
    assert attempt.duration_ms == round(outcome.duration.total_seconds() * 1000)


def test_retries_come_after_1_10_and_100_seconds_with_the_same_bytes(loopback: None) -> None:
    with receiving(answer(500)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url), at=START)
        moment, gaps = START, []
        for _ in range(4):
            (outcome,) = deliver(moment)
            found = reloaded(delivery)
            if found.next_attempt_at:
                gaps.append((found.next_attempt_at - moment - outcome.duration).total_seconds())
                moment = found.next_attempt_at

    assert gaps == [1, 10, 100]
    assert (found.status, found.attempt_count) == ("failed", 4)
    assert found.completed_at is not None
    assert len(receiver.received) == 4
    assert len({request.body for request in receiver.received}) == 1
    assert len({request.headers["x-service-signature"] for request in receiver.received}) == 1
    assert [attempt.response_status for attempt in found.attempts.all()] == [500] * 4


def test_delivery_succeeds_on_a_retry(loopback: None) -> None:
    with receiving(answers(500, 302, 204)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url), at=START)
        for delay in (0, 2, 13):
            deliver(START + delay * SECOND)

    found = reloaded(delivery)
    assert (found.status, found.attempt_count) == ("succeeded", 3)
    assert [attempt.response_status for attempt in found.attempts.all()] == [500, 302, 204]


def test_retry_uses_the_webhook_as_it_is_by_then(loopback: None) -> None:
    tenant = make_tenant()
    with receiving(answer(500)) as old, receiving(answer(200)) as new:
        webhook = make_webhook(tenant, old.url)
        make_delivery(webhook, at=START)
        deliver(START)
        services.update(
            tenant_id=tenant.id, webhook_id=webhook.id, changes={"url": new.url}, actor=ACTOR, now=START
        )
        rotated = services.rotate_secret(tenant_id=tenant.id, webhook_id=webhook.id, actor=ACTOR, now=START)
        deliver(START + 5 * SECOND)

    (received,) = new.received
    assert received.headers["x-service-signature"] == signature.sign(received.body, rotated.secret)


def test_timeout_is_a_failure_that_is_retried(loopback: None, settings: Any) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 0.3
    with receiving(receivers.drip_body) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url), at=START)
        deliver(START)

    (attempt,) = Attempt.objects.filter(delivery=delivery)
    assert reloaded(delivery).status == "pending"
    assert attempt.error == "Timed out: no complete answer within 0.3 s"


def test_private_address_is_not_reached_and_says_so(receiver: Receiver, settings: Any) -> None:
    delivery = make_delivery(make_webhook(make_tenant(), receiver.url), at=START)
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = False

    deliver(START)

    assert receiver.connections == 0
    assert Attempt.objects.get(delivery=delivery).error == "must lead to a public address"


# --- Claims ---------------------------------------------------------------------------------------


def test_claim_writes_the_attempt_and_a_lease_before_anything_is_sent() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)

    lease = claimed(delivery, START).lease

    found = reloaded(delivery)
    assert (found.status, found.attempt_count, found.lease) == ("in_flight", 1, lease)
    assert found.leased_until == START + 10 * SECOND
    (attempt,) = found.attempts.all()
    assert (attempt.number, attempt.started_at, attempt.duration_ms) == (1, START, None)


def test_delivery_in_flight_is_not_claimed() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    claimed(delivery, START)

    assert claim(START + 9 * SECOND) == []


def test_delivery_is_not_claimed_before_it_is_due() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    settle(claimed(delivery, START), BAD, START)

    assert claim(START + 0.999 * SECOND) == []
    assert claim(START + SECOND) != []


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_finished_delivery_is_not_claimed(status: str) -> None:
    make_finished_delivery(make_webhook(make_tenant()), status)

    assert claim(now() + SECOND) == []


@pytest.mark.parametrize("change", [{"active": False}, {"deleted_at": START}])
def test_delivery_to_a_webhook_out_of_use_is_cancelled(change: dict[str, Any]) -> None:
    webhook = make_webhook(make_tenant())
    delivery = make_delivery(webhook, at=START)
    Webhook.objects.filter(id=webhook.id).update(**change)

    assert claim(START) == []

    found = reloaded(delivery)
    assert (found.status, found.completed_at, found.attempt_count) == ("cancelled", START, 0)


def test_secret_is_not_in_the_repr_of_an_attempt() -> None:
    webhook, secret = make_webhook_with_secret(make_tenant())

    attempt = claimed(make_delivery(webhook, at=START), START)

    assert secret not in repr(attempt)


# --- Senders that die -----------------------------------------------------------------------------


def test_expired_lease_is_claimed_again_and_the_attempt_made_up_for() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    lost = claimed(delivery, START)

    attempt = claimed(delivery, START + 10 * SECOND)

    found = reloaded(delivery)
    assert attempt.lease != lost.lease
    assert (found.attempt_count, found.max_attempts) == (2, 5)
    assert [attempt.error for attempt in found.attempts.all()] == [claims.INTERRUPTED, None]


def test_interruption_does_not_shift_the_retries() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    claimed(delivery, START)
    moment, gaps = START + 60 * SECOND, []
    for _ in range(4):
        settle(claimed(delivery, moment), BAD, moment)
        found = reloaded(delivery)
        if found.next_attempt_at:
            gaps.append((found.next_attempt_at - moment).total_seconds())
            moment = found.next_attempt_at

    assert gaps == [1, 10, 100]
    assert found.status == "failed"


def test_delivery_that_always_loses_its_sender_ends() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    moment, claims = START, 0
    while claim(moment):
        claims += 1
        moment += timedelta(minutes=1)

    assert claims == 14
    assert reloaded(delivery).status == "failed"


def test_late_result_of_a_lost_lease_changes_nothing() -> None:
    webhook = make_webhook(make_tenant())
    delivery = make_delivery(webhook, at=START)
    lost = claimed(delivery, START)
    claimed(delivery, START + 10 * SECOND)

    assert settle(lost, BAD, START + 50 * SECOND) is False

    found = reloaded(delivery)
    assert (found.status, found.attempt_count) == ("in_flight", 2)
    assert found.attempts.get(number=1).response_status is None
    webhook.refresh_from_db()
    assert webhook.consecutive_failures == 0


def test_late_result_counts_while_nobody_else_took_the_delivery() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    attempt = claimed(delivery, START)

    assert settle(attempt, GOOD, START + 50 * SECOND) is True

    assert reloaded(delivery).status == "succeeded"


def test_result_is_taken_once() -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    attempt = claimed(delivery, START)
    settle(attempt, GOOD, START)

    assert settle(attempt, BAD, START) is False

    assert reloaded(delivery).status == "succeeded"


@pytest.mark.parametrize(("asked", "waited"), [(0, 1), (30, 30)])
def test_receiver_may_postpone_the_next_try_but_not_hasten_it(asked: int, waited: int) -> None:
    delivery = make_delivery(make_webhook(make_tenant()), at=START)
    busy = Outcome(timedelta(milliseconds=20), 503, "no", retry_after=asked * SECOND)

    assert settle(claimed(delivery, START), busy, START)

    assert reloaded(delivery).next_attempt_at == START + waited * SECOND
