"""Facts gathered from rows of every room."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.tests.factories import seal_and_sign
from auditlog.vocabulary import Actor
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id_at
from compliance.reports.content.evidence import gather, trend_span
from compliance.reports.content.facts import Facts, Frame
from compliance.reports.tests.factories import make_frame
from compliance.tenancy.models import Tenant
from compliance.tenancy.tests.factories import make_tenant
from delegation.tests.factories import CHAIN, as_chain, make_token, make_token_key
from events import partitions
from events.archiving import archive_file, restoring
from events.inbox import reviewing
from events.models import BehaviorEvent, ReviewVerdict

PERSON, MACHINE = Actor.person(UUID(int=7)), Actor.api_key(UUID(int=5))


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


def make_row(agent: Agent, band: str, *, at: datetime | None = None, **fields: Any) -> BehaviorEvent:
    """An event's row in a band of choice, received `at`."""
    moment = at or now()
    given = {
        "action_type": "api_call",
        "risk_score": {"low": 0.1, "medium": 0.5, "high": 0.9}[band],
        "occurred_at": moment,
        "reasons": [{"name": "prior"}],
        "model_version": "test",
    }
    return BehaviorEvent.objects.create(
        id=UUID(new_id_at(moment)),
        tenant_id=agent.tenant_id,
        agent=agent,
        risk_band=band,
        received_at=moment,
        **{**given, **fields},
    )


def facts_of(tenant: Tenant, **frame: Any) -> Facts:
    return gather(frame_of(tenant, **frame))


def frame_of(tenant: Tenant, **frame: Any) -> Frame:
    moment = now() + timedelta(seconds=1)
    given = {
        "tenant_id": tenant.id,
        "start": moment - timedelta(days=30),
        "end": moment,
        "generated_at": moment,
    }
    return make_frame(**{**given, **frame})


def test_a_new_tenant_has_a_guarded_log_and_little_else(tenant: Tenant) -> None:
    facts = facts_of(tenant)

    assert (facts.agent_count, facts.event_count, facts.certificate_count) == (0, 0, 0)
    assert facts.oldest_event_at is None
    assert facts.is_log_guarded is True


def test_entries_under_the_newest_checkpoint_are_counted(tenant: Tenant) -> None:
    make_agent(tenant)
    checkpoint = seal_and_sign()
    make_agent(tenant)

    facts = facts_of(tenant)

    total = sum(facts.audit_by_type.values())
    assert (facts.checkpoint_size, facts.witnessed_size) == (checkpoint.size, 0)
    assert 0 < facts.entries_under_checkpoint < total


def test_a_disabled_guard_is_seen(owned: None, tenant: Tenant) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("ALTER TABLE auditlog_auditentry DISABLE TRIGGER auditlog_no_truncate")

    assert facts_of(tenant).is_log_guarded is False


def test_agents_are_counted_by_what_they_declare(tenant: Tenant) -> None:
    make_agent(tenant, model="gpt-5", version="1", metadata={"permitted_actions": ["read"]})
    make_agent(tenant, name="bare")
    make_agent(make_tenant("Other"))

    facts = facts_of(tenant)

    assert (facts.agent_count, facts.agents_without_model_or_version) == (2, 1)
    assert facts.agents_without_scope == 1


def test_events_are_counted_by_band_action_agent_and_day(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    yesterday = now() - timedelta(days=1)
    make_row(agent, "low", at=yesterday)
    make_row(agent, "low")
    make_row(agent, "medium", action_type="transaction_initiated")
    high = make_row(agent, "high", action_type="transaction_anomaly", session_id="s")
    make_row(make_certified_agent(make_tenant("Other")), "high")

    facts = facts_of(tenant)

    assert facts.events_by_band == {"low": 2, "medium": 1, "high": 1}
    assert facts.events_by_action == {"api_call": 2, "transaction_initiated": 1, "transaction_anomaly": 1}
    assert (facts.transaction_count, facts.unlinked_transactions) == (2, 1)
    assert [point["bands"] for point in facts.trend] == [{"low": 1}, {"low": 1, "medium": 1, "high": 1}]
    assert facts.agents[0]["events_by_band"] == facts.events_by_band
    assert facts.agents[0]["last_event_at"] == high.received_at
    assert [(event["id"], event["reasons"]) for event in facts.high_risk] == [(high.id, ["prior"])]


def test_the_period_goes_by_the_services_clock(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    make_row(agent, "low", at=now() - timedelta(days=31))
    make_row(agent, "high", occurred_at=now() - timedelta(days=400))

    facts = facts_of(tenant)

    assert facts.events_by_band == {"high": 1}


def test_certificates_in_force_in_the_period_count(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    moment = now()

    def count(**frame: Any) -> int:
        return facts_of(tenant, **frame).certificate_count

    assert count() == 1
    assert count(start=moment - timedelta(days=60), end=moment - timedelta(days=30)) == 0
    Certificate.objects.filter(agent=agent).update(
        issued_at=moment - timedelta(days=500), expires_at=moment - timedelta(days=60)
    )
    assert count() == 0
    assert facts_of(tenant, start=moment - timedelta(days=90)).overlong_certificates == 1


def test_a_revocation_tells_how_long_it_took(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    certificate = Certificate.objects.get(agent=agent)
    moment = now()
    make_row(agent, "high", at=moment - timedelta(minutes=10))
    make_row(agent, "high", at=moment - timedelta(seconds=12))
    certificates.revoke(
        tenant_id=tenant.id, certificate_id=certificate.id, reason="high risk", actor=PERSON, now=moment
    )

    facts = facts_of(tenant)

    assert (facts.revocation_count, facts.uncertified_active_agents) == (1, 1)
    assert facts.certificates[0]["seconds_from_high_risk_event"] == 12
    assert [(act["what"], act["actor_type"]) for act in facts.oversight] == [("certificate.revoked", "user")]


def test_a_revocation_long_after_has_no_delay(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    certificate = Certificate.objects.get(agent=agent)
    make_row(agent, "high", at=now() - timedelta(minutes=16))
    certificates.revoke(
        tenant_id=tenant.id, certificate_id=certificate.id, reason="rotated", actor=PERSON, now=now()
    )

    assert facts_of(tenant).certificates[0]["seconds_from_high_risk_event"] is None


def test_interventions_of_people_are_told_from_the_services_own(tenant: Tenant) -> None:
    for name, actor in (("one", PERSON), ("two", MACHINE), ("three", Actor.system("sweep"))):
        certificates.suspend_agent(
            tenant_id=tenant.id, agent_id=make_agent(tenant, name=name).id, reason="r", actor=actor, now=now()
        )

    facts = facts_of(tenant)

    assert (facts.human_interventions, facts.audit_by_type["agent.suspended"]) == (1, 3)
    assert len(facts.oversight) == 3


def test_review_by_a_person_is_an_intervention(tenant: Tenant) -> None:
    event = make_row(make_certified_agent(tenant), "high")
    for actor, verdict in ((MACHINE, ReviewVerdict.DISMISSED), (PERSON, ReviewVerdict.CONFIRMED)):
        reviewing.review(
            tenant_id=tenant.id, event_id=event.id, verdict=verdict, note=None, actor=actor, now=now()
        )

    facts = facts_of(tenant)

    assert facts.human_interventions == 1
    assert [row["what"] for row in facts.oversight] == ["event.reviewed"] * 2


@pytest.fixture
def aged(settings: Any, tmp_path: Path) -> Tenant:
    """A tenant of two years, in a service that keeps events for 183 days."""
    settings.EVENT_ARCHIVE_DIR, settings.EVENT_RETENTION_DAYS = str(tmp_path), 183
    return Tenant.objects.create(name="Aged", created_at=now() - timedelta(days=730))


def drop() -> datetime:
    """Have what is past its retention archived and dropped; return the end of the newest such span."""
    done = partitions.maintain(actor=Actor.system("tests"), now=now())
    assert done.is_complete
    return max(partition.end for partition in done.dropped)


@pytest.mark.usefixtures("one_role")
def test_dropped_events_are_told_with_the_digest_of_their_archive(aged: Tenant, tmp_path: Path) -> None:
    agent, start = make_certified_agent(aged), now() - timedelta(days=400)
    make_row(agent, "low", at=now() - timedelta(days=300))
    kept = make_row(agent, "low", at=now() - timedelta(days=20))
    end = drop()

    facts = facts_of(aged, start=start)

    (span,) = facts.archives
    (path,) = tmp_path.iterdir()
    assert (span["received_before"], span["is_stored"]) == (end, False)
    assert span["archive_sha256"] == archive_file.verify(path)[1].sha256
    assert span["archived_at"] <= span["dropped_at"]
    assert (facts.covered_from, facts.oldest_event_at) == (end, kept.received_at)
    assert facts.event_retention_days == 183
    assert "rows" not in span


@pytest.mark.usefixtures("one_role")
def test_restored_events_are_told_as_stored(aged: Tenant, tmp_path: Path) -> None:
    old = make_row(make_certified_agent(aged), "low", at=now() - timedelta(days=300))
    drop()
    (path,) = tmp_path.iterdir()
    restoring.restore(path=path, is_forced=False, actor=PERSON, now=now())

    facts = facts_of(aged, start=now() - timedelta(days=400))

    assert [row["is_stored"] for row in facts.archives] == [True]
    assert (facts.covered_from, facts.oldest_event_at) == (None, old.received_at)


@pytest.mark.usefixtures("one_role")
def test_what_was_dropped_after_the_period_or_before_the_tenant_is_not_told(aged: Tenant) -> None:
    make_row(make_certified_agent(aged), "low", at=now() - timedelta(days=300))
    drop()

    earlier = facts_of(aged, start=now() - timedelta(days=500), end=now() - timedelta(days=400))
    young = facts_of(make_tenant("Young"), start=now() - timedelta(days=400))
    later = facts_of(aged, start=now() - timedelta(days=30))

    assert (earlier.archives, earlier.covered_from) == ((), None)
    assert (young.archives, young.covered_from) == ((), None)
    assert (len(later.archives), later.covered_from) == (1, None)


def test_oldest_event_is_the_first_received_whatever_its_agent_says(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    first = make_row(agent, "low", at=now() - timedelta(days=2))
    make_row(agent, "low", occurred_at=now() - timedelta(days=900))

    assert facts_of(tenant).oldest_event_at == first.received_at


def test_delegations_are_counted_by_root_and_scope(tenant: Tenant) -> None:
    make_token_key()
    make_token(make_agent(tenant, metadata={"permitted_actions": ["read"]}))
    make_token(make_agent(tenant))
    make_token(make_agent(tenant), chain=as_chain(CHAIN[1:]))

    facts = facts_of(tenant)

    assert (facts.delegation_count, facts.delegations_rooted_in_a_human) == (3, 2)
    assert facts.delegations_checked_against_a_scope == 1


def test_chosen_agents_narrow_everything(tenant: Tenant) -> None:
    mine, other = make_certified_agent(tenant, name="mine"), make_certified_agent(tenant, name="other")
    for agent in (mine, other):
        make_row(agent, "low")

    facts = facts_of(tenant, agent_ids=(mine.id,))

    assert (facts.agent_count, facts.certificate_count, facts.event_count) == (1, 1, 1)
    assert facts.audit_by_type["agent.created"] == facts.audit_by_type["certificate.issued"] == 1


@pytest.mark.parametrize(
    ("days", "span"), [(1, "day"), (62, "day"), (63, "week"), (366, "week"), (367, "month")]
)
def test_trends_have_a_readable_number_of_points(days: int, span: str) -> None:
    assert trend_span(timedelta(days=days)) == span


def test_facts_belong_to_one_environment(tenant: Tenant) -> None:
    make_agent(tenant)

    with environments.use(environments.Environment.TEST):
        assert facts_of(tenant).agent_count == 0
