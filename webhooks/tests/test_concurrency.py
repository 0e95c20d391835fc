"""Several senders, real commits: one attempt is sent once, and nothing is held while it is sent."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.db import connection, connections

from compliance import environments
from compliance.clock import now
from compliance.environments import Environment
from compliance.tenancy.tests.factories import make_tenant
from webhooks import claims, engine, results
from webhooks.claims import Room
from webhooks.delivering import Parcel, Report
from webhooks.models import Attempt, Delivery, Pace, Webhook
from webhooks.sender import Outcome
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_of_pace
from webhooks.tests.receivers import Receiver, answer, receiving
from webhooks.tests.steps import deliver

OUTCOME = Outcome(timedelta(milliseconds=20), 200, "ok")
Result = TypeVar("Result")


def at_once(calls: list[Callable[[], Result]]) -> list[Result]:
    """Run each call in a worker of its own, all released together."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        with environments.use(Environment.LIVE):
            try:
                barrier.wait()
                return call()
            finally:
                connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_two_senders_never_hold_one_delivery_together(empty_queue: None) -> None:
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    deliveries = [make_delivery(webhook) for _ in range(8)]
    moment = now()

    found = [parcel for parcels in at_once([partial(claim_own, moment, 3)] * 4) for parcel in parcels]

    own = [parcel for parcel in found if parcel.webhook_id == webhook.id]
    assert sorted(parcel.delivery_id for parcel in own) == sorted(row.id for row in deliveries)
    assert len({parcel.lease for parcel in own}) == 8
    assert Attempt.objects.filter(delivery__webhook=webhook).count() == 8
    end(found)


def test_cap_on_slots_holds_against_many_claimers(empty_queue: None, settings: Any) -> None:
    settings.WEBHOOK_SLOTS_PER_ENDPOINT = 2
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    for _ in range(6):
        make_delivery(webhook)
    moment = now()

    found = [parcel for parcels in at_once([partial(claim_own, moment, 100)] * 6) for parcel in parcels]

    assert sum(parcel.webhook_id == webhook.id for parcel in found) == 2
    assert Delivery.objects.to_webhook(webhook).in_flight(moment).count() == 2
    end(found)


def test_slow_lane_holds_against_many_claimers(empty_queue: None, settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 2
    slow = [make_webhook_of_pace(make_tenant(), Pace.SLOW) for _ in range(6)]
    for webhook in slow:
        make_delivery(webhook)
    moment = now()

    found = [parcel for parcels in at_once([partial(claim_own, moment, 100)] * 6) for parcel in parcels]

    assert sum(parcel.pace == Pace.SLOW for parcel in found) == 2
    end(found)


def claim_own(moment: datetime, total: int) -> list[Parcel]:
    return claims.claim(room=Room.for_any(total), now=moment)


def end(parcels: list[Parcel]) -> None:
    """Nothing of theirs stays in flight for other tests to find."""
    moment = now()
    results.settle([Report(parcel, OUTCOME, moment) for parcel in parcels], now=moment)
    Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=moment)


def test_results_of_a_locked_webhook_are_brought_again(empty_queue: None) -> None:
    webhook = make_webhook(make_tenant())
    make_delivery(webhook)
    moment = now()
    report = Report(claim_own(moment, 1)[0], OUTCOME, moment)
    held = threading.Event()
    done = threading.Event()

    def hold() -> None:
        with environments.use(Environment.LIVE), environments.atomic():
            Webhook.objects.locked().get(id=webhook.id)
            held.set()
            done.wait(10)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)

    assert results.settle([report], now=moment) == [report]
    done.set()
    holder.join()
    assert results.settle([report], now=moment) == []
    assert Delivery.objects.get(id=report.parcel.delivery_id).status == "succeeded"


def test_nothing_is_held_while_sending(empty_queue: None, loopback: None) -> None:
    seen: list[tuple[str, int]] = []

    def look(conversation: socket.socket, receiver: Receiver) -> None:
        """From the receiver's thread: the claim is visible, its rows free, no transaction open."""
        with environments.use(Environment.LIVE):
            status = Delivery.objects.values_list("status", flat=True).get(id=delivery.id)
            with environments.atomic():
                Delivery.objects.select_for_update(nowait=True).get(id=delivery.id)
                webhook.__class__.objects.select_for_update(nowait=True).get(id=webhook.id)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND state LIKE 'idle in transaction%%'"
                )
                seen.append((status, cursor.fetchone()[0]))
        connections.close_all()
        answer(200)(conversation, receiver)

    with receiving(look) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        delivery = make_delivery(webhook)
        deliver(now())

    assert seen == [("in_flight", 0)]
    delivery.refresh_from_db()
    assert delivery.status == "succeeded"


def test_claims_and_results_of_one_endpoint_do_not_deadlock(empty_queue: None, loopback: None) -> None:
    with receiving(answer(500)) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        for _ in range(12):
            make_delivery(webhook)
        moment = now()

        for _ in range(2):
            at_once([engine.stand_in] * 4)

    webhook.refresh_from_db()
    assert webhook.consecutive_failures == Attempt.objects.filter(delivery__webhook=webhook).count() > 0
    assert not Delivery.objects.to_webhook(webhook).in_flight(moment).exists()
    Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=moment)
