"""`GET /v1/agents/{id}/usage`, and the figures by day that it reads."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Sum

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog import services as auditlog
from auditlog.vocabulary import AuditAction
from certificates.tests.factories import make_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from events.figures import usage as figures
from events.figures.models import ActionDay
from events.figures.usage import Usage, forget, sum_up, usage
from events.models import BehaviorEvent
from events.tests.factories import make_event, store_event
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_key, make_tenant

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
SCOPE = ["place_order", "mail.send_email", "calendar.create_event", "delete_account"]


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant("Acme")


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant, metadata={"permitted_actions": SCOPE})


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, ["events:read"]))


def put(agent: Agent, tool: str, *, at: datetime = NOW, score: float = 0.1, **details: Any) -> BehaviorEvent:
    return store_event(agent, score, at, details={"tool": tool, **details})


def read(agent: Agent, days: int = 89) -> Usage:
    return usage(agent, NOW - timedelta(days=days), NOW)


def test_names_are_used_unused_and_refused(agent: Agent) -> None:
    put(agent, "place_order", at=NOW - timedelta(days=3))
    put(agent, "mcp__shop__placeOrder", at=NOW)
    put(agent, "calendar", action="create_event")
    off = [{"name": "off_scope", "observed": "wire_funds", "expected": "", "weight": 1.0}]
    store_event(agent, 0.9, NOW, details={"tool": "wire_funds"}, reasons=off)
    at_gateway = {"source": "gateway", "action": "drop_table"}
    store_event(agent, 0.95, NOW, action_type="unauthorized_access_attempt", details=at_gateway)
    with environments.atomic():
        auditlog.record(
            tenant_id=agent.tenant_id, action=AuditAction.DECISION_DENIED, affected_id=agent.id,
            description="", metadata={"agent_id": str(agent.id), "action": "pay"}, actor=ACTOR, now=NOW,
        )  # fmt: skip

    sum_up(now=LATER)

    found = read(agent)
    assert [(one.name, one.count, one.last_at, one.permitted) for one in found.used] == [
        ("place_order", 2, NOW, True),
        ("calendar.create_event", 1, NOW, True),
    ]
    assert found.unused == ["mail.send_email", "delete_account"]
    assert {(one.name, one.refused_by, one.count) for one in found.refused} == {
        ("wire_funds", "scope", 1), ("drop_table", "gateway", 1), ("pay", "evaluation", 1),
    }  # fmt: skip
    assert found.is_complete


def test_the_figures_equal_a_count_of_rows_however_often_they_are_made(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "CHUNK", 3)
    names = ["place_order", "mail.send_email", "read_file"]
    for number in range(20):
        put(agent, names[number % 3], at=NOW - timedelta(days=number % 5))

    for _ in range(3):
        sum_up(now=LATER)
    late = put(agent, "place_order", at=LATER)
    for _ in range(2):
        sum_up(now=LATER + timedelta(minutes=5))

    rows = Counter(row.details["tool"] for row in BehaviorEvent.objects.of_agent(agent.id))
    assert {one.name: one.count for one in read(agent).used} == rows
    assert late.id in {row.id for row in BehaviorEvent.objects.all()}
    newest = BehaviorEvent.objects.of_agent(agent.id).filter(
        received_at__gte=NOW - timedelta(days=1, hours=12)
    )
    assert sum(one.count for one in read(agent, days=1).used) == newest.count()


def test_an_event_still_in_an_open_transaction_is_not_passed_by(agent: Agent) -> None:
    sum_up(now=NOW)

    put(agent, "place_order", at=NOW - timedelta(seconds=30))  # its id is older than the sum
    sum_up(now=LATER)

    assert [one.count for one in read(agent).used] == [1]


def test_events_that_the_figures_do_not_have_yet_count_once(agent: Agent) -> None:
    for at in (NOW - timedelta(hours=3), NOW - timedelta(days=100)):
        put(agent, "place_order", at=at)
    assert [(one.name, one.count) for one in read(agent).used] == [("place_order", 1)]

    sum_up(now=NOW - timedelta(hours=2))
    put(agent, "place_order")
    put(agent, "mail.send_email")

    found = read(agent)
    assert [(one.name, one.count) for one in found.used] == [("place_order", 2), ("mail.send_email", 1)]
    assert (found.unused, found.is_complete) == (["calendar.create_event", "delete_account"], True)


def test_with_too_many_new_events_nothing_is_called_unused(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MOST_NEW", 2)
    for _ in range(3):
        put(agent, "place_order")

    assert (read(agent).is_complete, read(agent).unused) == (False, [])
    sum_up(now=LATER)
    assert (read(agent).is_complete, len(read(agent).unused)) == (True, 3)


def test_a_flood_of_names_is_kept_together(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_NAMES", 5)
    for number in range(8):
        put(agent, f"x{number}.place_order")
    sum_up(now=LATER)
    for number in range(8):
        put(agent, f"y{number}.place_order", at=LATER)
    put(agent, "x0.place_order", at=LATER)
    put(agent, "x" * 2_000, at=LATER)

    sum_up(now=LATER + timedelta(minutes=5))

    assert ActionDay.objects.count() == 6
    assert ActionDay.objects.aggregate(sum=Sum("count"))["sum"] == 18
    assert (read(agent).is_complete, read(agent).unused) == (False, [])


def test_the_scope_is_the_certificates(agent: Agent) -> None:
    make_certificate(agent)
    agent.metadata = {"permitted_actions": ["place_order"]}
    agent.save()
    sum_up(now=LATER)

    assert read(agent).permitted == SCOPE


def test_an_agent_without_a_scope_permits_and_lacks_nothing(tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata=None)
    put(agent, "place_order")
    store_event(agent, 0.1, NOW, action_type="message_signed")
    sum_up(now=LATER)

    found = read(agent)

    assert {(one.name, one.permitted) for one in found.used} == {
        ("place_order", None),
        ("message_signed", None),
    }
    assert (found.permitted, found.unused) == (None, [])


def test_days_past_the_retention_are_forgotten(agent: Agent, settings: Any) -> None:
    put(agent, "place_order", at=NOW - timedelta(days=8))
    put(agent, "place_order", at=NOW)
    sum_up(now=LATER)
    settings.EVENT_RETENTION_DAYS = 7

    forget(now=NOW)

    assert [row.day for row in ActionDay.objects.all()] == [NOW.date()]


def test_the_endpoint_shows_it(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": ["place_order", "refund"]})
    make_certificate(agent)
    make_event(agent, details={"tool": "place_order"}, received_at=now() - timedelta(minutes=3))
    sum_up(now=now())

    shown = client.get(f"/v1/agents/{agent.id}/usage").json()["data"]

    assert [(one["name"], one["count"], one["permitted"]) for one in shown["used"]] == [
        ("place_order", 1, True)
    ]
    assert (shown["unused"], shown["refused"], shown["is_complete"]) == (["refund"], [], True)
    day = now().date()
    assert (shown["period_start"], shown["period_end"]) == (str(day - timedelta(days=90)), str(day))
    past = client.get(f"/v1/agents/{agent.id}/usage?period_start=2020-01-01&period_end=2020-02-01")
    assert past.json()["data"]["used"] == []


def test_days_past_their_retention_are_not_complete(agent: Agent, settings: Any) -> None:
    settings.EVENT_RETENTION_DAYS = 30
    Agent.objects.filter(id=agent.id).update(created_at=NOW - timedelta(days=60))
    agent.refresh_from_db()
    start, end = NOW - timedelta(days=29), NOW - timedelta(days=20)

    assert usage(agent, start, end, NOW).is_complete
    assert not usage(agent, start - timedelta(days=2), end, NOW).is_complete
