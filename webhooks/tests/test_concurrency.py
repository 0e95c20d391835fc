"""Several senders, real commits: one attempt is sent once, and nothing is held while it is sent."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.db import connection, connections

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.outbound.http_client import Outcome
from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.stores import sql
from tenancy.tests.factories import make_tenant
from webhooks.models import Attempt, Delivery, Pace, Webhook
from webhooks.sending import claims, results
from webhooks.sending.attempts import AttemptResult, ClaimedAttempt
from webhooks.sending.sender import Sender
from webhooks.tests.factories import make_delivery, make_webhook, make_webhook_of_pace
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

    found = [attempt for attempts in at_once([partial(claim_own, moment, 3)] * 4) for attempt in attempts]

    own = [attempt for attempt in found if attempt.webhook_id == webhook.id]
    assert sorted(attempt.delivery_id for attempt in own) == sorted(row.id for row in deliveries)
    assert len({attempt.lease for attempt in own}) == 8
    assert Attempt.objects.filter(delivery__webhook=webhook).count() == 8
    end(found)


def test_sender_leaves_the_turn_to_another_that_is_claiming(empty_queue: None) -> None:
    make_delivery(make_webhook(make_tenant()))
    moment = now()
    sender = Sender(Environment.LIVE, size=4)

    with environments.atomic():
        sql.query("SELECT pg_advisory_xact_lock(%s)", [claims._LOCK])
        calls: list[Callable[[], object]] = [
            partial(claims.claim, limit=1, unproven=1, now=moment),
            sender.take,
        ]
        found = at_once(calls)

    assert found == [None, ()]
    assert sender.awake.is_set()


def test_cap_on_slots_holds_against_many_claimers(empty_queue: None, settings: Any) -> None:
    settings.WEBHOOK_SLOTS_PER_ENDPOINT = 2
    webhook = make_webhook_of_pace(make_tenant(), Pace.QUICK)
    for _ in range(6):
        make_delivery(webhook)
    moment = now()

    found = [attempt for attempts in at_once([partial(claim_own, moment, 100)] * 6) for attempt in attempts]

    assert sum(attempt.webhook_id == webhook.id for attempt in found) == 2
    assert Delivery.objects.to_webhook(webhook).filter(status="in_flight").count() == 2
    end(found)


def test_cap_on_slow_endpoints_holds_against_many_claimers(empty_queue: None, settings: Any) -> None:
    settings.WEBHOOK_SLOW_SLOTS = 2
    slow = [make_webhook_of_pace(make_tenant(), Pace.SLOW) for _ in range(6)]
    for webhook in slow:
        make_delivery(webhook)
    moment = now()

    found = [attempt for attempts in at_once([partial(claim_own, moment, 100)] * 6) for attempt in attempts]

    assert sum(attempt.pace == Pace.SLOW for attempt in found) == 2
    end(found)


def claim_own(moment: datetime, total: int) -> list[ClaimedAttempt]:
    """Claim once no other does."""
    while (found := claims.claim(limit=total, unproven=total, now=moment)) is None:
        pass
    return found


def send_what_is_due() -> int:
    return Sender(Environment.LIVE, size=16).run_until_idle(seconds=0.2)


def end(attempts: list[ClaimedAttempt]) -> None:
    """Nothing of theirs stays in flight for other tests to find."""
    moment = now()
    results.record([AttemptResult(attempt, OUTCOME, moment) for attempt in attempts], now=moment)
    Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=moment)


def test_results_of_a_locked_webhook_are_postponed(empty_queue: None) -> None:
    webhook = make_webhook(make_tenant())
    make_delivery(webhook)
    moment = now()
    result = AttemptResult(claim_own(moment, 1)[0], OUTCOME, moment)
    held = threading.Event()
    done = threading.Event()

    def hold() -> None:
        with environments.use(Environment.LIVE), environments.atomic():
            Webhook.objects.for_tenant(webhook.tenant_id).locked().get(id=webhook.id)
            held.set()
            done.wait(10)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)

    assert results.record([result], now=moment) == [result]
    done.set()
    holder.join()
    assert results.record([result], now=moment) == []
    assert Delivery.objects.get(id=result.attempt.delivery_id).status == "succeeded"


def test_nothing_is_held_while_sending(empty_queue: None, loopback: None) -> None:
    seen: list[tuple[str, int]] = []

    def look(conversation: socket.socket, receiver: Receiver) -> None:
        """From the receiver's thread: the claim is visible, its rows free, no transaction open."""
        with environments.use(Environment.LIVE):
            status = Delivery.objects.values_list("status", flat=True).get(id=delivery.id)
            with environments.atomic():
                for row in (delivery, webhook):
                    rows: Any = type(row)._default_manager
                    rows.select_for_update(nowait=True).get(tenant_id=row.tenant_id, id=row.id)
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
            at_once([send_what_is_due] * 4)

    webhook.refresh_from_db()
    assert webhook.consecutive_failures == Attempt.objects.filter(delivery__webhook=webhook).count() > 0
    assert not Delivery.objects.to_webhook(webhook).filter(status="in_flight").exists()
    Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=moment)
