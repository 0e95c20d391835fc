"""Two workers, real commits: one attempt is sent once, and nothing is held while it is sent."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from django.db import connection, connections

from compliance import environments
from compliance.clock import now
from compliance.environments import Environment
from compliance.tenancy.tests.factories import make_tenant
from webhooks import delivering
from webhooks.models import Attempt, Delivery, Pace
from webhooks.sender import Outcome
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_of_pace
from webhooks.tests.receivers import Receiver, answer, receiving

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


def test_two_claimers_never_take_one_delivery(committed: None) -> None:
    webhook = make_webhook(make_tenant())
    for _ in range(10):
        delivery = make_delivery(webhook)
        moment = now()

        parcels = at_once([partial(delivering.claim, delivery_id=delivery.id, now=moment)] * 4)

        won = [parcel for parcel in parcels if parcel is not None]
        assert len(won) == 1
        assert Attempt.objects.filter(delivery=delivery).count() == 1
        delivering.complete(parcel=won[0], outcome=Outcome(moment - moment, 200, "ok"), now=moment)


def test_cap_on_slots_holds_against_many_claimers(committed: None, settings: Any) -> None:
    settings.WEBHOOK_SLOTS_PER_ENDPOINT = 2
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    deliveries = [make_delivery(webhook) for _ in range(6)]
    moment = now()

    parcels = at_once([partial(delivering.claim, delivery_id=row.id, now=moment) for row in deliveries])

    assert sum(parcel is not None for parcel in parcels) == 2
    assert Delivery.objects.to_webhook(webhook).in_flight(moment).count() == 2


def test_slow_lane_holds_against_many_claimers(committed: None, settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 2
    slow = [make_webhook_of_pace(make_tenant(), Pace.SLOW) for _ in range(6)]
    deliveries = [make_delivery(webhook) for webhook in slow]
    moment = now()

    parcels = at_once([partial(delivering.claim, delivery_id=row.id, now=moment) for row in deliveries])

    assert sum(parcel is not None for parcel in parcels) == 2
    for parcel in filter(None, parcels):
        delivering.complete(parcel=parcel, outcome=Outcome(moment - moment, 200, "ok"), now=moment)


def test_bell_rung_twice_sends_once(committed: None, loopback: None) -> None:
    with receiving(answer(200)) as receiver:
        delivery = make_delivery(make_webhook(make_tenant(), receiver.url))
        moment = now()

        outcomes = at_once([partial(delivering.deliver, delivery_id=delivery.id, now=moment)] * 4)

    assert sum(outcome is not None for outcome in outcomes) == 1
    assert len(receiver.received) == 1


def test_nothing_is_held_while_sending(committed: None, loopback: None) -> None:
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
        delivering.deliver(delivery_id=delivery.id, now=now())

    assert seen == [("in_flight", 0)]
    delivery.refresh_from_db()
    assert delivery.status == "succeeded"


def test_claims_and_completions_of_one_endpoint_do_not_deadlock(committed: None, loopback: None) -> None:
    with receiving(answer(500)) as receiver:
        webhook = make_webhook(make_tenant(), receiver.url)
        deliveries = [make_delivery(webhook) for _ in range(12)]
        moment = now()

        at_once([partial(delivering.deliver, delivery_id=row.id, now=moment) for row in deliveries])

    webhook.refresh_from_db()
    assert webhook.consecutive_failures == Attempt.objects.filter(delivery__webhook=webhook).count()
    assert not Delivery.objects.to_webhook(webhook).in_flight(moment).exists()
