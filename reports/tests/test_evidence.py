"""Facts gathered from rows of every room."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate

from agents.models import Agent
from auditlog.vocabulary import Actor
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import new_id_at
from events import partitions
from events.archiving import archive_file, restoring
from events.models import BehaviorEvent
from incidents.tests.factories import make_incident
from reports.content.evidence import gather, trend_span
from reports.content.facts import Facts, Frame
from reports.tests.factories import make_frame
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

PERSON = Actor.person(UUID(int=7))


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


def test_validity_is_read_from_what_was_signed(tenant: Tenant) -> None:
    own = Certificate.objects.filter(agent=make_certified_agent(tenant))
    ca = load_der_x509_certificate(bytes(own.get().authority.certificate_der))

    own.update(certificate_pem=ca.public_bytes(Encoding.PEM).decode())

    assert facts_of(tenant).overlong_certificates == 1


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

    assert (facts.audited("certificate.revoked"), facts.uncertified_active_agents) == (1, 1)
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


def test_restored_events_are_told_as_stored(aged: Tenant, tmp_path: Path) -> None:
    old = make_row(make_certified_agent(aged), "low", at=now() - timedelta(days=300))
    drop()
    (path,) = tmp_path.iterdir()
    restoring.restore(path=path, is_forced=False, actor=PERSON, now=now())

    facts = facts_of(aged, start=now() - timedelta(days=400))

    assert [row["is_stored"] for row in facts.archives] == [True]
    assert (facts.covered_from, facts.oldest_event_at) == (None, old.received_at)


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


def test_chosen_agents_narrow_everything(tenant: Tenant) -> None:
    mine, other = make_certified_agent(tenant, name="mine"), make_certified_agent(tenant, name="other")
    for agent in (mine, other):
        make_row(agent, "low")
        make_incident(tenant, agent_id=agent.id, is_contained=False)

    facts = facts_of(tenant, agent_ids=(mine.id,))

    assert (facts.agent_count, facts.certificate_count, facts.event_count) == (1, 1, 1)
    assert (facts.incidents, facts.incidents_opened_by) == ({"open": 1}, {"system": 1})
    assert facts.audited("agent.created") == facts.audited("certificate.issued") == 1


@pytest.mark.parametrize(
    ("days", "span"), [(1, "day"), (62, "day"), (63, "week"), (366, "week"), (367, "month")]
)
def test_trends_have_a_readable_number_of_points(days: int, span: str) -> None:
    assert trend_span(timedelta(days=days)) == span
