"""One tenant with rows of every kind, four periods that a report may be about, and counts by plain SQL."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections
from django.test import override_settings

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.tests.factories import seal_and_sign
from auditlog.vocabulary import Actor
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.reports.content.evidence import gather
from compliance.reports.content.facts import Facts, Frame
from compliance.reports.content.sources import Rows
from compliance.reports.tests.factories import make_frame
from compliance.tenancy.models import Tenant
from compliance.tests.citus import ON_CITUS
from compliance.tests.owner import owning
from delegation.tests.factories import make_token, make_token_key
from events import partitions
from events.inbox import reviewing
from events.models import ReviewVerdict
from events.tests.factories import make_event, make_high_event, store_event

PERSON, KEY = Actor.person(UUID(int=4)), Actor.api_key(UUID(int=5))
PERIOD = "tenant_id = %(tenant)s AND {0} >= %(start)s AND {0} < %(end)s"
EVENTS = f"FROM events_behaviorevent e WHERE {PERIOD.format('received_at')}"
HIGH = f"{EVENTS} AND risk_score >= 0.85"
ENTRIES = f"FROM auditlog_auditentry WHERE {PERIOD.format('created_at')}"
ISSUED = f"{ENTRIES} AND event_type = 'delegation.issued'"
CERTIFICATES = (
    "FROM certificates_certificate WHERE tenant_id = %(tenant)s AND issued_at < %(end)s"
    " AND expires_at > %(start)s AND (revoked_at IS NULL OR revoked_at >= %(start)s)"
)
REVIEWED = "EXISTS (SELECT 1 FROM events_eventreview r WHERE r.event_id = e.id AND r.tenant_id = e.tenant_id)"
ACTS = "('agent.suspended', 'agent.reinstated', 'agent.retired', 'certificate.revoked', 'event.reviewed')"
AGENTS = (
    "FROM agents_agent a WHERE tenant_id = %(tenant)s AND created_at < %(end)s"
    " AND NOT (status = 'retired' AND status_changed_at < %(start)s)"
)
ACTIVE = f"{AGENTS} AND status = 'active' AND NOT EXISTS"
COUNTS: dict[str, str] = {
    Rows.EVENTS: EVENTS,
    Rows.TRANSACTIONS: f"{EVENTS} AND action_type LIKE 'transaction_%%'",
    Rows.HIGH_RISK: HIGH,
    Rows.REVIEWED: f"{HIGH} AND {REVIEWED}",
    Rows.INTERVENTIONS: f"{ENTRIES} AND actor_kind = 'person' AND event_type IN {ACTS}",
    Rows.STOPS: f"{ENTRIES} AND event_type = 'agent.high_risk'",
    Rows.SUSPENSIONS: f"{ENTRIES} AND event_type = 'agent.suspended'",
    Rows.REVOCATIONS: f"{CERTIFICATES} AND revoked_at >= %(start)s AND revoked_at < %(end)s",
    Rows.CERTIFICATES: CERTIFICATES,
    Rows.AGENTS: AGENTS,
    Rows.AGENT_CHANGES: f"{ENTRIES} AND event_type = 'agent.updated'",
    Rows.MODE_CHANGES: f"{ENTRIES} AND event_type LIKE '%%.enforcement_changed'",
    Rows.DELEGATIONS: ISSUED,
    Rows.AUDIT_ENTRIES: ENTRIES,
    Rows.SEALED_ENTRIES: f"{ENTRIES} AND id IN (TABLE sealed)",
    # Gaps, by the words that follow their number.
    "without a review": f"{HIGH} AND NOT {REVIEWED}",
    "by API keys, not by people": f"{HIGH} AND id IN (TABLE by_keys)",
    "without an event stored": (
        f"{ACTIVE} (SELECT 1 {EVENTS} AND (e.tenant_id, e.agent_id) = (a.tenant_id, a.id))"
    ),
    "without a model name": f"{AGENTS} AND (coalesce(model, '') = '' OR coalesce(version, '') = '')",
    "without declared permitted": (
        f"{AGENTS} AND jsonb_typeof(metadata->'permitted_actions') IS DISTINCT FROM 'array'"
    ),
    "without an active certificate": f"{ACTIVE} (SELECT 1 FROM certified WHERE agent_id = a.id)",  # noqa: S608
    "named no chain": (
        f"{EVENTS} AND action_type LIKE 'transaction_%%' AND num_nonnulls(chain_id, session_id) = 0"
    ),
    "naming no person": f"{ISSUED} AND metadata->'chain'->0->>'type' <> 'human'",
    "by agents that declare no scope": f"{ISSUED} AND metadata->>'scope_checked' <> 'true'",
    "not yet under": f"{ENTRIES} AND id NOT IN (TABLE sealed)",
    "recorded but not made": f"{ENTRIES} AND event_type = 'agent.would_have_stopped'",
}
COUNT = (
    "WITH sealed AS (SELECT entry_id FROM auditlog_leaf),"
    " certified AS (SELECT agent_id FROM certificates_certificate WHERE status = 'active')"
    ", by_keys AS (SELECT event_id FROM events_eventreview WHERE actor_id LIKE 'api_key:%%' AND number = 1)"
    " SELECT count(*) {}"
)


@dataclass(frozen=True)
class Period:
    """What the service gathers of a period, and what plain SQL counts in it."""

    frame: Frame
    facts: Facts
    counts: dict[str, int]


@contextmanager
def four_periods(archive_dir: str) -> Iterator[dict[str, Period]]:
    """Yield the periods full, empty, partial and dropped of one tenant; leave nothing behind."""
    retention = override_settings(EVENT_ARCHIVE_DIR=archive_dir, EVENT_RETENTION_DAYS=183)
    # A transaction of Citus changes rows as one role, and partitions are made and dropped as the owner.
    role = owning() if ON_CITUS else nullcontext()
    with retention, environments.use(Environment.LIVE), role, environments.atomic():
        moment = now()
        tenant = Tenant.objects.create(name="Acme", created_at=moment - timedelta(days=730))
        _populate(tenant)
        end = now() + timedelta(seconds=1)
        spans = {
            "full": (moment - timedelta(days=20), end),
            "empty": (moment - timedelta(days=60), moment - timedelta(days=40)),
            "partial": (moment - timedelta(days=20), end + timedelta(days=10)),
            "dropped": (moment - timedelta(days=400), end),
        }
        yield {name: _period(tenant, start, until, end) for name, (start, until) in spans.items()}
        connections["default"].set_rollback(True)


def _populate(tenant: Tenant) -> None:
    moment = now()
    trader = make_certified_agent(
        tenant, name="trader", model="m", version="1", metadata={"permitted_actions": ["read"]}
    )
    attacked, idle = make_certified_agent(tenant, name="attacked"), make_certified_agent(tenant, name="idle")
    for agent in (trader, attacked, idle):  # in service long before, also in the empty period
        earlier = moment - timedelta(days=100)
        Agent.objects.filter(id=agent.id).update(created_at=earlier)
        Certificate.objects.filter(agent=agent).update(
            issued_at=earlier, not_before=earlier, expires_at=earlier + timedelta(days=365)
        )
    store_event(trader, 0.1, moment - timedelta(days=300), model_version="v")
    make_event(trader)
    make_event(trader, "transaction_initiated", session_id="s")
    high = [make_high_event(attacked, received_at=now()) for _ in range(3)]  # the third stops the agent
    for actor, verdict, event in ((PERSON, "confirmed", high[0]), (KEY, "dismissed", high[1])):
        reviewing.review(
            tenant_id=tenant.id,
            event_id=event.id,
            verdict=ReviewVerdict(verdict),
            note=None,
            actor=actor,
            now=now(),
        )
    for actor, name in ((PERSON, "by person"), (KEY, "by key")):
        certificates.suspend_agent(
            tenant_id=tenant.id, agent_id=make_agent(tenant, name=name).id, reason="r", actor=actor, now=now()
        )
    _change(tenant, idle, {"version": "2"})
    _change(tenant, idle, {"enforcement": "observe"})
    make_token_key()
    make_token(trader)
    make_token(idle)
    seal_and_sign()
    done = partitions.maintain(actor=Actor.system("tests"), now=now())
    assert done.dropped


def _change(tenant: Tenant, agent: Agent, changes: dict[str, Any]) -> None:
    agents.update(tenant_id=tenant.id, agent_id=agent.id, changes=changes, actor=PERSON, now=now())


def _period(tenant: Tenant, start: datetime, end: datetime, generated_at: datetime) -> Period:
    frame = make_frame(tenant_id=tenant.id, start=start, end=end, generated_at=generated_at)
    given: dict[str, Any] = {"tenant": tenant.id, "start": start, "end": frame.covered_until}
    counts = {}
    with connections["default"].cursor() as cursor:
        for name, rows in COUNTS.items():
            cursor.execute(COUNT.format(rows), given)
            counts[name] = cursor.fetchone()[0]
    return Period(frame, gather(frame), counts)
