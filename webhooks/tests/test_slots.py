"""Who may send how much: slots of endpoints, the slow ones' lane, and what the sweep rings for."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from compliance.tenancy.tests.factories import make_tenant
from webhooks import delivering
from webhooks.delivering import Parcel
from webhooks.models import Delivery, Pace, Webhook
from webhooks.sender import Outcome
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_of_pace
from webhooks.tests.receivers import Receiver, answer, receiving
from webhooks.vocabulary import EventName

SECOND = timedelta(seconds=1)
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
GOOD = Outcome(timedelta(milliseconds=20), 200, "ok")
BAD = Outcome(timedelta(milliseconds=20), 500, "no")


def claimed(delivery: Delivery, at: datetime) -> Parcel:
    parcel = delivering.claim(delivery_id=delivery.id, now=at)
    assert parcel is not None
    return parcel


def reloaded(delivery: Delivery) -> Delivery:
    return Delivery.objects.get(id=delivery.id)


@pytest.fixture
def receiver(loopback: None) -> Iterator[Receiver]:
    with receiving(answer(200)) as found:
        yield found


def test_quick_endpoint_gets_so_many_requests_at_a_time(settings: Any) -> None:
    settings.WEBHOOK_SLOTS_PER_ENDPOINT = 2
    tenant = make_tenant()
    busy, other = make_webhook_of_pace(tenant, Pace.QUICK), make_webhook_of_pace(tenant, Pace.QUICK)
    deliveries = [make_delivery(busy, at=START) for _ in range(3)]
    parcels = [claimed(delivery, START) for delivery in deliveries[:2]]

    assert delivering.claim(delivery_id=deliveries[2].id, now=START) is None
    assert reloaded(deliveries[2]).status == "pending"
    assert claimed(Delivery.objects.get(webhook=other, message=deliveries[2].message_id), START)

    delivering.complete(parcel=parcels[0], outcome=GOOD, now=START)
    assert claimed(deliveries[2], START)


def test_abandoned_deliveries_hold_no_slot() -> None:
    webhook = make_webhook(make_tenant())
    claimed(make_delivery(webhook, at=START), START)

    assert claimed(make_delivery(webhook, at=START), START + 45 * SECOND)


@pytest.mark.parametrize("pace", [Pace.UNKNOWN, Pace.SLOW])
def test_endpoint_not_known_to_be_quick_gets_one_request_at_a_time(pace: Pace) -> None:
    webhook = make_webhook_of_pace(make_tenant(), pace)
    first, second = make_delivery(webhook, at=START), make_delivery(webhook, at=START)
    parcel = claimed(first, START)

    assert delivering.claim(delivery_id=second.id, now=START) is None

    delivering.complete(parcel=parcel, outcome=BAD, now=START)
    webhook.refresh_from_db()
    assert webhook.pace == Pace.QUICK
    assert claimed(second, START)
    assert claimed(make_delivery(webhook, at=START), START)


def test_slow_endpoints_share_a_lane_and_leave_the_rest_alone(settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 2
    slow = [make_webhook_of_pace(make_tenant(), Pace.SLOW) for _ in range(3)]
    deliveries = [make_delivery(webhook, at=START) for webhook in slow]
    parcel, _ = (claimed(delivery, START) for delivery in deliveries[:2])

    assert delivering.claim(delivery_id=deliveries[2].id, now=START) is None
    assert claimed(make_delivery(make_webhook(make_tenant()), at=START), START)

    delivering.complete(parcel=parcel, outcome=GOOD, now=START)
    assert claimed(deliveries[2], START)


@pytest.mark.parametrize(("seconds", "pace"), [(1.99, Pace.QUICK), (2, Pace.SLOW), (30, Pace.SLOW)])
def test_pace_is_the_last_attempts(seconds: float, pace: Pace) -> None:
    webhook = make_webhook(make_tenant())
    parcel = claimed(make_delivery(webhook, at=START), START)

    delivering.complete(parcel=parcel, outcome=Outcome(seconds * SECOND, 200, "ok"), now=START)

    webhook.refresh_from_db()
    assert webhook.pace == pace


def test_failures_in_a_row_are_counted_until_a_success() -> None:
    webhook = make_webhook(make_tenant())
    counts = []
    for outcome in (BAD, BAD, BAD, GOOD):
        parcel = claimed(make_delivery(webhook, at=START), START)
        delivering.complete(parcel=parcel, outcome=outcome, now=START)
        webhook.refresh_from_db()
        counts.append((webhook.consecutive_failures, webhook.is_failing))

    assert counts == [(1, False), (2, False), (3, True), (0, False)]


def test_turn_names_the_endpoints_next(receiver: Receiver) -> None:
    tenant = make_tenant()
    webhook = make_webhook(tenant, receiver.url)
    first, second = make_delivery(webhook, at=START), make_delivery(webhook, at=START)
    make_delivery(
        make_webhook(tenant, receiver.url, ["risk.alert"]), event=EventName.RISK_ALERT, at=START - SECOND
    )

    turns = [delivering.deliver(delivery_id=delivery.id, now=START) for delivery in (first, second)]

    assert [turn and turn.next_id for turn in turns] == [second.id, None]


# --- The sweep's choice ---------------------------------------------------------------------------


def due(at: datetime, *, slow_slots: int = 5, limit: int = 100) -> list[UUID]:
    return Delivery.objects.due_by_endpoint(now=at, due_by=at, slots=2, slow_slots=slow_slots, limit=limit)


def test_backlog_of_one_endpoint_does_not_hide_another() -> None:
    tenant = make_tenant()
    dead = make_webhook_of_pace(tenant, Pace.QUICK, ["agent.created"])
    healthy = make_webhook_of_pace(tenant, Pace.QUICK, ["risk.alert"])
    from_dead = [make_delivery(dead, event=EventName.AGENT_CREATED, at=START + n * SECOND) for n in range(5)]
    from_healthy = make_delivery(healthy, event=EventName.RISK_ALERT, at=START + 60 * SECOND)

    found = due(START + 60 * SECOND)

    assert found == [from_dead[0].id, from_dead[1].id, from_healthy.id]


def test_sweep_leaves_out_endpoints_without_a_free_slot() -> None:
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    waiting = [make_delivery(webhook, at=START) for _ in range(4)]
    claimed(waiting[0], START)

    assert due(START + SECOND) == [waiting[1].id]

    Webhook.objects.filter(id=webhook.id).update(pace=Pace.UNKNOWN)
    assert due(START + SECOND) == []


def test_sweep_rings_for_slow_endpoints_only_while_their_lane_has_room() -> None:
    slow = [make_webhook_of_pace(make_tenant(), Pace.SLOW) for _ in range(4)]
    waiting = [make_delivery(webhook, at=START + n * SECOND) for n, webhook in enumerate(slow)]
    claimed(waiting[0], START)

    assert due(START + 9 * SECOND, slow_slots=3) == [waiting[1].id, waiting[2].id]
    assert due(START + 9 * SECOND, slow_slots=1) == []


def test_sweep_takes_only_what_is_due_and_no_more_than_its_limit() -> None:
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    first, second = (make_delivery(webhook, at=START + n * SECOND) for n in range(2))

    assert due(START - SECOND) == []
    assert due(START) == [first.id]
    assert due(START + SECOND) == [first.id, second.id]
    assert due(START + SECOND, limit=1) == [first.id]


def test_sweep_counts_what_is_due_and_what_was_abandoned() -> None:
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    claimed(make_delivery(webhook, at=START), START)
    make_delivery(webhook, at=START + 40 * SECOND)

    assert delivering.sweep(now=START + 40 * SECOND) == 0
    assert delivering.sweep(now=START + 44 * SECOND) == 1
    assert delivering.sweep(now=START + 45 * SECOND) == 2
