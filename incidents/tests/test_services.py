"""Incidents are opened, joined, changed and closed, and every step is on record."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connections

from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from incidents import services
from incidents.errors import DutiesOpen, IncidentClosed, InconsistentStatement
from incidents.models import Incident, TimelineEntry
from incidents.tests.factories import (
    ACTOR,
    change,
    make_closed_incident,
    make_incident,
    make_occurrence,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

START = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)


def kinds(incident: Incident) -> list[str]:
    return [entry.kind for entry in TimelineEntry.objects.of_incidents([incident.id])]


def audited(tenant: Tenant) -> Counter[str]:
    return Counter(AuditEntry.objects.for_tenant(tenant.id).values_list("event_type", flat=True))


def test_second_occurrence_of_the_agent_joins_and_contains() -> None:
    tenant, agent_id = make_tenant(), new_id()
    first = make_incident(tenant, agent_id=agent_id, is_contained=False)

    second = make_incident(tenant, agent_id=agent_id)

    assert second.id == first.id
    assert second.state == "contained"
    assert second.contained_at is not None
    assert sorted(kinds(first)) == ["changed", "joined", "opened"]
    assert audited(tenant)["incident.joined"] == 1


def test_earlier_detection_that_joins_moves_the_clocks() -> None:
    tenant, agent_id = make_tenant(), new_id()
    later = now()
    earlier = later - timedelta(hours=5)
    opened = make_incident(tenant, agent_id=agent_id, at=later)

    make_incident(tenant, agent_id=agent_id, at=earlier)
    make_incident(tenant, agent_id=agent_id, at=later + timedelta(hours=1))

    incident = Incident.objects.get(id=opened.id)
    assert incident.detected_at == earlier
    assert {clock.started_at for clock in incident.clocks() if clock.started_at} == {earlier}
    assert opened.next_due_at is not None
    assert incident.next_due_at == opened.next_due_at - timedelta(hours=5)


def test_closed_incident_is_not_joined() -> None:
    tenant, agent_id = make_tenant(), new_id()
    closed = make_closed_incident(tenant, agent_id=agent_id)

    assert make_incident(tenant, agent_id=agent_id).id != closed.id


def test_change_is_in_timeline_and_audit_log_with_what_stood_before() -> None:
    tenant = make_tenant()
    incident = make_incident(tenant)

    change(incident, severity="critical", owner="Ana")

    entry = TimelineEntry.objects.of_incidents([incident.id]).get(kind="changed")
    assert entry.data == {
        "severity": {"before": "high", "after": "critical"},
        "owner": {"before": "", "after": "Ana"},
    }
    assert audited(tenant)["incident.updated"] == 1


def test_same_values_again_change_nothing() -> None:
    incident = make_incident(make_tenant())

    change(incident, severity="high")

    assert kinds(incident) == ["opened"]


def test_note_and_attachment_are_kept_also_of_a_closed_incident() -> None:
    tenant = make_tenant()
    incident = make_closed_incident(tenant)

    services.update(
        tenant_id=tenant.id,
        incident_id=incident.id,
        changes={},
        note="Told the authority by phone.",
        attachment={"name": "mail.eml", "size": 512, "sha256": "ab" * 32},
        actor=ACTOR,
        now=now(),
    )

    (found,) = TimelineEntry.objects.of_incidents([incident.id]).attachments()
    assert found.data == {"name": "mail.eml", "size": 512, "sha256": "ab" * 32}
    assert audited(tenant) >= Counter(["incident.noted", "incident.attached"])


def test_incident_closes_once_no_duty_is_open() -> None:
    incident = make_incident(make_tenant())

    with pytest.raises(DutiesOpen):
        change(incident, state="closed")
    change(incident, serious_harm="not_serious", dora_class="not_major")
    closed = change(incident, state="closed")

    assert closed.closed_at is not None
    assert (closed.next_due_at, closed.next_announcement_at) == (None, None)
    with pytest.raises(IncidentClosed):
        change(incident, state="open")


def test_sent_reports_close_the_duties_too() -> None:
    incident = make_incident(make_tenant(), at=START)
    day = timedelta(days=1)
    change(incident, serious_harm="health", ai_act_reported_at=START + day)
    change(incident, dora_class="major", classified_at=START, dora_initial_at=START + day / 24)

    done = change(
        incident, dora_intermediate_at=START + 2 * day, dora_final_at=START + 9 * day, state="closed"
    )

    assert {clock.state_at(now()).value for clock in done.clocks()} == {"met"}


@pytest.mark.parametrize(
    "changes",
    [
        {"aware_at": datetime(2999, 1, 1, tzinfo=UTC)},
        {"aware_at": datetime(1990, 1, 1, tzinfo=UTC)},
        {"dora_initial_at": START},
        {"classified_at": START},
        {"dora_class": "major", "dora_final_at": START},
        {"dora_class": "major", "dora_initial_at": START, "dora_intermediate_at": START - timedelta(days=1)},
        {"serious_harm": "not_serious", "ai_act_reported_at": START},
    ],
)
def test_contradiction_is_refused_and_nothing_is_stored(changes: dict[str, Any]) -> None:
    incident = make_incident(make_tenant(), at=START)

    with pytest.raises(InconsistentStatement):
        change(incident, **changes)

    assert kinds(incident) == ["opened"]


def test_incident_that_is_no_longer_major_loses_the_times_of_doras_reports() -> None:
    incident = make_incident(make_tenant(), at=START)
    change(incident, dora_class="major", dora_initial_at=START)

    changed = change(incident, dora_class="not_major")

    assert (changed.classified_at, changed.dora_initial_at) == (None, None)


def test_database_refuses_to_change_a_timeline() -> None:
    incident = make_incident(make_tenant())

    with pytest.raises(RuntimeError):
        TimelineEntry.objects.get(incident=incident).delete()
    with pytest.raises(DatabaseError), environments.atomic():
        TimelineEntry.objects.filter(incident=incident).update(text="nothing happened")


def test_many_occurrences_at_once_open_one_incident(committed: None) -> None:
    with environments.use(Environment.LIVE):
        tenant, agent_id = make_tenant(), new_id()

    def occur(_: int) -> bool:
        try:
            with environments.use(Environment.LIVE), environments.atomic():
                found = make_occurrence(agent_id=agent_id)
                services.open_or_join(tenant_id=tenant.id, occurrence=found, actor=ACTOR, now=now())
        except IntegrityError:
            return False  # without the agent's lock the database decides
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as pool:
        stored = sum(pool.map(occur, range(16)))

    with environments.use(Environment.LIVE):
        incident = Incident.objects.get(agent_id=agent_id)
        assert TimelineEntry.objects.of_incidents([incident.id]).count() == stored >= 1
