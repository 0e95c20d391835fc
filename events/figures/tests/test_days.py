"""The daily figures behind the overview's charts."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id_at
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.tests.owner import execute_as_owner, quoted_service_role
from events import tasks
from events.figures.days import sum_up_days
from events.figures.models import DayFigures
from events.models import EventReview, RiskDay
from events.tests.factories import judge, store_event
from tenancy.tests.factories import make_tenant
from webhooks.models import Delivery, DeliveryStatus, Message, Webhook
from webhooks.vocabulary import EventName

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TODAY = NOW.date()
ACTOR = Actor.system("tests")


@pytest.fixture
def agent() -> Agent:
    return make_agent(make_tenant("Acme"))


def figures(agent: Agent, day: Any = TODAY) -> DayFigures:
    return DayFigures.objects.get(tenant_id=agent.tenant_id, day=day)


def put_risk(agent: Agent, day: Any, events: int, medium: int, high: int) -> None:
    sums = {"score_sum": 0, "max_score": 0, "peak_score": 0, "peak_at": NOW}
    RiskDay.objects.create(agent=agent, day=day, events=events, medium=medium, high=high, **sums)


def put_review(agent: Agent, delay: timedelta, number: int = 1, event_id: UUID | None = None) -> UUID:
    event_id = event_id or UUID(new_id_at(NOW - delay))
    EventReview.objects.create(
        id=UUID(new_id_at(NOW)),
        tenant_id=agent.tenant_id,
        agent=agent,
        event_id=event_id,
        number=number,
        verdict="dismissed",
        actor_type=ACTOR.type,
        actor_id=ACTOR.id,
        reviewed_at=NOW,
    )
    return event_id


def put_delivery(agent: Agent, status: DeliveryStatus) -> None:
    webhook, _ = Webhook.objects.get_or_create(
        tenant_id=agent.tenant_id,
        defaults={"url": "https://a.example", "events": [EventName.AGENT_CREATED], "secret": b"",
                  "secret_hint": "", "created_at": NOW, "updated_at": NOW},
    )  # fmt: skip
    message = Message.objects.create(
        tenant_id=agent.tenant_id, event=EventName.AGENT_CREATED, body=b"{}", created_at=NOW
    )
    Delivery.objects.create(
        tenant_id=agent.tenant_id,
        webhook=webhook,
        message=message,
        status=status,
        created_at=NOW,
        completed_at=NOW,
    )


def put_breach(agent: Agent, delay: timedelta) -> None:
    with environments.atomic():
        auditlog.record(
            tenant_id=agent.tenant_id,
            action=AuditAction.AGENT_HIGH_RISK,
            affected_id=agent.id,
            metadata={"event_id": new_id_at(NOW - delay)},
            actor=ACTOR,
            now=NOW,
        )


def test_events_of_all_agents_are_summed_by_day(agent: Agent) -> None:
    put_risk(agent, TODAY, 10, 2, 1)
    put_risk(make_agent(agent.tenant), TODAY, 5, 1, 0)
    put_risk(agent, TODAY - timedelta(days=20), 7, 0, 0)
    put_risk(make_agent(make_tenant("Rival")), TODAY, 99, 9, 9)

    sum_up_days(now=NOW)

    found = figures(agent)
    assert (found.events, found.medium, found.high) == (15, 3, 1)
    assert figures(agent, TODAY - timedelta(days=20)).events == 7


def test_delays_are_medians_of_first_verdicts(agent: Agent) -> None:
    for minutes in (1, 10, 60):
        event_id = put_review(agent, timedelta(minutes=minutes))
    put_review(agent, timedelta(), number=2, event_id=event_id)

    sum_up_days(now=NOW)

    found = figures(agent)
    assert (found.reviews, round(found.review_delay or 0)) == (3, 600)


def test_delays_of_revocations_are_from_the_breaching_event(agent: Agent) -> None:
    for seconds in (0, 0, 20):
        put_breach(agent, timedelta(seconds=seconds))

    sum_up_days(now=NOW)

    found = figures(agent)
    assert (found.revocations, found.revocation_delay) == (3, 0)
    assert found.longest_revocation_delay == pytest.approx(20, abs=0.01)


def test_deliveries_count_once_they_ended(agent: Agent) -> None:
    for status in (DeliveryStatus.SUCCEEDED, DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED):
        put_delivery(agent, status)
    put_delivery(agent, DeliveryStatus.CANCELLED)

    sum_up_days(now=NOW)

    found = figures(agent)
    assert (found.delivered, found.undelivered) == (2, 1)


def test_unsettled_days_are_summed_anew_and_settled_ones_stay(agent: Agent) -> None:
    put_risk(agent, TODAY, 1, 0, 0)
    put_risk(agent, TODAY - timedelta(days=5), 1, 0, 0)
    sum_up_days(now=NOW)

    RiskDay.objects.update(events=8)
    sum_up_days(now=NOW)

    assert figures(agent).events == 8
    assert figures(agent, TODAY - timedelta(days=5)).events == 1


def test_days_without_a_run_are_made_up_for(agent: Agent) -> None:
    put_risk(agent, TODAY - timedelta(days=10), 1, 0, 0)
    sum_up_days(now=NOW - timedelta(days=10))
    put_risk(agent, TODAY - timedelta(days=6), 3, 0, 0)

    sum_up_days(now=NOW)

    assert figures(agent, TODAY - timedelta(days=6)).events == 3


def test_days_past_retention_go(agent: Agent, settings: Any) -> None:
    put_risk(agent, TODAY, 1, 0, 0)
    sum_up_days(now=NOW)

    sum_up_days(now=NOW + timedelta(days=settings.EVENT_RETENTION_DAYS + 1))

    assert not DayFigures.objects.filter(tenant_id=agent.tenant_id).exists()


def test_part_of_the_task_that_fails_holds_up_no_other(committed: None) -> None:
    agent = make_agent(make_tenant())
    judge(store_event(agent, 0.9, now()))
    privilege, role = "SELECT ON events_riskwatermark", quoted_service_role()

    execute_as_owner(f"REVOKE {privilege} FROM {role}")
    try:
        tasks.sum_up.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)
    finally:
        execute_as_owner(f"GRANT {privilege} TO {role}")

    assert DayFigures.objects.get(tenant=agent.tenant).reviews == 1
