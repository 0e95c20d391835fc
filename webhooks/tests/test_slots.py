"""How many requests each endpoint gets at a time, how many the slow ones share, and in which order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compliance.outbound.http_client import Outcome
from tenancy.tests.factories import make_tenant
from webhooks.models import FAILING_AFTER, SLOW_AFTER, Delivery, Pace, Webhook
from webhooks.sending import claims
from webhooks.sending.attempts import ClaimedAttempt
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_of_pace
from webhooks.tests.steps import claim, settle
from webhooks.vocabulary import EventName

SECOND = timedelta(seconds=1)
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
GOOD = Outcome(timedelta(milliseconds=20), 200, "ok")
BAD = Outcome(timedelta(milliseconds=20), 500, "no")


def ids(attempts: list[ClaimedAttempt]) -> list[object]:
    return [attempt.delivery_id for attempt in attempts]


def test_quick_endpoint_gets_so_many_requests_at_a_time(settings: Any) -> None:
    settings.WEBHOOK_SLOTS_PER_ENDPOINT = 2
    tenant = make_tenant()
    busy, other = make_webhook_of_pace(tenant, Pace.QUICK), make_webhook_of_pace(tenant, Pace.QUICK)
    deliveries = [make_delivery(busy, at=START) for _ in range(3)]

    attempts = claim(START)

    of_busy = [attempt for attempt in attempts if attempt.webhook_id == busy.id]
    assert ids(of_busy) == [row.id for row in deliveries[:2]]
    assert sum(attempt.webhook_id == other.id for attempt in attempts) == 2
    assert claim(START) == []

    settle(of_busy[0], GOOD, START)
    assert ids(claim(START)) == [deliveries[2].id]


def test_abandoned_deliveries_hold_no_slot() -> None:
    webhook = make_webhook(make_tenant())
    deliveries = [make_delivery(webhook, at=START) for _ in range(2)]
    claim(START)

    assert len(claim(START + claims.LEASE - SECOND)) == 0
    assert ids(claim(START + claims.LEASE)) == [deliveries[1].id]


@pytest.mark.parametrize("pace", [Pace.UNKNOWN, Pace.SLOW])
def test_endpoint_not_known_to_be_quick_gets_one_request_at_a_time(pace: Pace) -> None:
    webhook = make_webhook_of_pace(make_tenant(), pace)
    first, second, third = (make_delivery(webhook, at=START) for _ in range(3))

    (attempt,) = claim(START)

    assert attempt.delivery_id == first.id
    assert claim(START) == []

    settle(attempt, GOOD, START)
    webhook.refresh_from_db()
    assert webhook.pace == Pace.QUICK
    assert ids(claim(START)) == [second.id, third.id]


def test_failing_endpoint_gets_a_quarter_of_the_slots_and_all_its_attempts(settings: Any) -> None:
    settings.WEBHOOK_SLOTS_PER_ENDPOINT = 8
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    Webhook.objects.filter(id=webhook.id).update(consecutive_failures=FAILING_AFTER)
    for _ in range(5):
        make_delivery(webhook, at=START)

    attempts = claim(START)

    assert len(attempts) == 2
    settle(attempts[0], GOOD, START)
    assert len(claim(START)) == 3


def test_slow_endpoints_share_slots_and_leave_the_rest_alone(settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 2
    slow = [make_webhook_of_pace(make_tenant(), Pace.SLOW) for _ in range(3)]
    deliveries = [make_delivery(webhook, at=START) for webhook in slow]
    healthy = make_delivery(make_webhook(make_tenant()), at=START)

    attempts = claim(START)

    assert ids(attempts) == [deliveries[0].id, deliveries[1].id, healthy.id]
    assert claim(START) == []

    settle(attempts[0], GOOD, START)
    assert ids(claim(START)) == [deliveries[2].id]


@pytest.mark.parametrize(("seconds", "pace"), [(1.99, Pace.QUICK), (2, Pace.SLOW), (30, Pace.SLOW)])
def test_pace_is_the_last_attempts(seconds: float, pace: Pace) -> None:
    webhook = make_webhook(make_tenant())
    make_delivery(webhook, at=START)
    (attempt,) = claim(START)

    settle(attempt, Outcome(seconds * SECOND, 200, "ok"), START)

    webhook.refresh_from_db()
    assert webhook.pace == pace


def test_endpoint_that_keeps_a_request_waiting_gets_no_other() -> None:
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    make_delivery(webhook, at=START)
    (attempt,) = claim(START)
    for _ in range(2):
        make_delivery(webhook, at=START)

    assert len(claim(START + claims.YOUNG, total=1)) == 1
    assert claim(START + SECOND) == []
    settle(attempt, GOOD, START + SECOND)


def test_endpoint_that_keeps_a_request_waiting_counts_as_slow_before_it_ends(settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 1
    hanging = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    make_delivery(hanging, at=START)
    (attempt,) = claim(START)
    slow = make_delivery(make_webhook_of_pace(make_tenant(), Pace.SLOW), at=START + SLOW_AFTER)

    assert claim(START + SLOW_AFTER) == []

    settle(attempt, GOOD, START + SLOW_AFTER)
    assert ids(claim(START + SLOW_AFTER)) == [slow.id]


def test_failures_in_a_row_are_counted_until_a_success() -> None:
    webhook = make_webhook(make_tenant())
    counts = []
    for outcome in (BAD, BAD, BAD, GOOD):
        make_delivery(webhook, at=START)
        (attempt,) = claim(START)
        settle(attempt, outcome, START)
        webhook.refresh_from_db()
        counts.append((webhook.consecutive_failures, webhook.is_failing))

    assert counts == [(1, False), (2, False), (3, True), (0, False)]


# --- Turns ----------------------------------------------------------------------------------------


def test_backlog_of_one_endpoint_does_not_hide_another() -> None:
    tenant = make_tenant()
    dead = make_webhook_of_pace(tenant, Pace.QUICK, ["agent.created"])
    healthy = make_webhook_of_pace(tenant, Pace.QUICK, ["risk.alert"])
    from_dead = [make_delivery(dead, event=EventName.AGENT_CREATED, at=START + n * SECOND) for n in range(5)]
    from_healthy = make_delivery(healthy, event=EventName.RISK_ALERT, at=START + 60 * SECOND)

    assert ids(claim(START + 60 * SECOND, total=2)) == [from_dead[0].id, from_healthy.id]
    assert ids(claim(START + 60 * SECOND, total=2)) == [from_dead[1].id, from_dead[2].id]


def test_only_what_is_due_is_claimed_and_no_more_than_the_limit() -> None:
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    first, second = (make_delivery(webhook, at=START + n * SECOND) for n in range(2))

    assert claim(START - SECOND) == []
    (attempt,) = claim(START)
    assert attempt.delivery_id == first.id
    settle(attempt, GOOD, START)
    assert claim(START + SECOND, total=0) == []
    assert ids(claim(START + SECOND)) == [second.id]


def test_unproven_endpoints_and_retries_share_a_limit() -> None:
    proven = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    retries = [make_delivery(proven, at=START) for _ in range(3)]
    Delivery.objects.filter(webhook=proven).update(attempt_count=1)
    first = make_delivery(proven, at=START + SECOND)
    new = [make_delivery(make_webhook(make_tenant()), at=START) for _ in range(3)]

    taken = ids(claims.claim(limit=10, unproven=2, now=START + SECOND) or [])

    assert set(taken) == {retries[0].id, first.id, new[0].id}


def test_slow_endpoints_without_free_slots_do_not_count_as_unproven(settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 1
    slow = [make_delivery(make_webhook_of_pace(make_tenant(), Pace.SLOW), at=START) for _ in range(4)]
    Delivery.objects.filter(id__in=[row.id for row in slow]).update(attempt_count=1)
    new, again = (make_delivery(make_webhook(make_tenant()), at=START + SECOND) for _ in range(2))
    Delivery.objects.filter(id=again.id).update(attempt_count=1)

    taken = ids(claims.claim(limit=10, unproven=3, now=START + SECOND) or [])

    assert taken == [slow[0].id, new.id, again.id]
