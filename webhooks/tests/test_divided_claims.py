"""The statements for tables that Citus divides choose and change what PostgreSQL's one statement does."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from compliance.core import environments
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.citus import not_on_citus
from webhooks.models import FAILING_AFTER, Attempt, Delivery, Pace, Webhook
from webhooks.sending import claims
from webhooks.sending.http_client import Outcome
from webhooks.tests.factories import make_delivery, make_webhook_of_pace
from webhooks.tests.steps import claim, settle

pytestmark = not_on_citus("it takes only one of the two forms")

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
GOOD = Outcome(timedelta(milliseconds=20), 200, "ok")


@pytest.fixture
def queue(settings: Settings) -> None:
    """Backlogs of endpoints of every pace, of failing ones, retries, and requests under way."""
    settings.WEBHOOK_SLOTS_PER_ENDPOINT, settings.WEBHOOK_SLOW_SLOTS = 4, 3
    paces = [*Pace] * 3
    webhooks = [make_webhook_of_pace(make_tenant(), pace) for pace in paces]
    for step in range(6):
        for place, webhook in enumerate(webhooks):
            make_delivery(webhook, at=START - (step + place) * SECOND)
    Webhook.objects.filter(id=webhooks[1].id).update(consecutive_failures=FAILING_AFTER)
    of_fourth = Delivery.objects.to_webhook(webhooks[4])
    of_fourth.filter(id__in=[row.id for row in of_fourth[:3]]).update(attempt_count=1)
    for attempt in claim(START - 2 * SECOND, total=5)[::2]:
        settle(attempt, GOOD, START - SECOND)


def claimed(limit: int, unproven: int) -> list[tuple[UUID, int, UUID, str, bytes, int]]:
    """What is claimed, and how many attempts that begins; then all is undone."""
    with environments.atomic():
        before = Attempt.objects.count()
        found = claims.claim(limit=limit, unproven=unproven, now=START)
        begun = Attempt.objects.count() - before
        leases = set(Delivery.objects.filter(status="in_flight", lease__isnull=False).values_list("lease"))
        assert {(one.lease,) for one in found} <= leases
        connections["default"].set_rollback(True)
    return [(one.delivery_id, one.number, one.tenant_id, one.url, one.body, begun) for one in found]


@pytest.mark.parametrize("unproven", [0, 1, 4, 100])
@pytest.mark.parametrize("limit", [1, 5, 100])
def test_claims_are_the_same(queue: None, settings: Settings, limit: int, unproven: int) -> None:
    settings.DATABASE_CITUS = False
    wanted = claimed(limit, unproven)

    settings.DATABASE_CITUS = True
    found = claimed(limit, unproven)

    assert wanted
    assert found == wanted


@pytest.mark.parametrize("on_citus", [False, True])
def test_lost_and_unwanted_deliveries_are_cleaned_up(queue: None, settings: Settings, on_citus: bool) -> None:
    settings.DATABASE_CITUS = on_citus
    lost = [one.delivery_id for one in claim(START)]
    Webhook.objects.filter(id=Delivery.objects.get(id=lost[0]).webhook_id).update(active=False)

    claims.clean_up(now=START + claims.LEASE)

    states = set(Delivery.objects.filter(id__in=lost).values_list("status", "lease"))
    assert states == {("pending", None), ("cancelled", None)}
    assert set(Attempt.objects.filter(delivery__in=lost).values_list("error", flat=True)) >= {
        claims.INTERRUPTED
    }


@pytest.mark.parametrize("on_citus", [False, True])
def test_results_are_recorded(queue: None, settings: Settings, on_citus: bool) -> None:
    settings.DATABASE_CITUS = on_citus
    attempts = claim(START)

    first, again = ({settle(one, GOOD, START + SECOND) for one in attempts} for _ in range(2))

    assert (first, again) == ({True}, {False})
