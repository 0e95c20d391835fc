"""An incident of several agents: joined by a case, or merged by a person."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError

from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from compliance.tests.threads import all_at_once, in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from incidents import merging
from incidents.errors import IncidentMerged, Unmergeable
from incidents.models import Incident, TimelineEntry, TouchedAgent
from incidents.tests.factories import ACTOR, change, make_closed_incident, make_incident
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

EARLY = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
LATE = EARLY + timedelta(hours=3)


def merge(incident: Incident, into: Incident, **fields: Any) -> Incident:
    return merging.merge(
        tenant_id=incident.tenant_id,
        incident_id=incident.id,
        into=into.id,
        actor=ACTOR,
        now=LATE + timedelta(hours=1),
        **fields,
    )


def fresh(incident: Incident) -> Incident:
    return Incident.objects.get(id=incident.id)


def names_of(incident: Incident) -> set[str]:
    return set(incident.agents.values_list("agent_name", flat=True))


def test_merged_incident_links_to_the_other_which_has_agents_certificates_and_earlier_clocks() -> None:
    tenant, certificate_id = make_tenant(), new_id()
    first = make_incident(tenant, at=EARLY, agent_name="one", certificate_id=certificate_id)
    second = make_incident(tenant, at=LATE, agent_name="two")

    merge(first, second, note="One stolen credential.")

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, first.merged_into_id, first.closed_at) == (
        "merged",
        second.id,
        LATE + timedelta(hours=1),
    )
    assert {clock.state_at(LATE).value for clock in first.clocks()} == {"not_applicable"}
    assert (first.next_due_at, first.next_announcement_at) == (None, None)
    assert second.detected_at == EARLY
    assert second.clocks()[0].started_at == EARLY
    assert names_of(second) == {"one", "two"}
    assert second.certificates.get().certificate_id == certificate_id
    assert names_of(first) == {"one"}
    for incident in (first, second):
        texts = [entry.text for entry in TimelineEntry.objects.of_incidents([incident.id])]
        assert "One stolen credential." in texts
    entries = AuditEntry.objects.for_tenant(tenant.id).filter(event_type="incident.merged")
    assert {entry.affected_id for entry in entries} == {str(first.id), str(second.id)}


def test_what_happens_next_with_either_agent_joins_the_merged_one() -> None:
    tenant, agent_id = make_tenant(), new_id()
    first = make_incident(tenant, at=EARLY, agent_id=agent_id)
    second = make_incident(tenant, at=LATE)
    merge(first, second)

    joined = make_incident(tenant, agent_id=agent_id)

    assert joined.id == second.id
    assert set(Incident.objects.filter(agents__agent_id=agent_id)) == {first, second}


def test_incident_goes_on_while_one_of_the_merged_does() -> None:
    tenant = make_tenant()
    running, contained = make_incident(tenant, is_contained=False, at=EARLY), make_incident(tenant, at=LATE)

    merge(running, contained)

    contained.refresh_from_db()
    assert (contained.state, contained.contained_at) == ("open", None)


def test_earlier_awareness_counts() -> None:
    tenant = make_tenant()
    unstated, stated = make_incident(tenant, at=EARLY), make_incident(tenant, at=EARLY)
    change(stated, at=LATE, aware_at=LATE)

    merge(unstated, stated)

    stated.refresh_from_db()
    assert stated.aware_at == EARLY


@pytest.mark.parametrize(
    ("of_ended", "of_kept", "counts"),
    [
        (EARLY - timedelta(hours=2), None, EARLY - timedelta(hours=2)),
        (None, EARLY - timedelta(hours=2), EARLY - timedelta(hours=2)),
        (LATE, None, EARLY),
        (LATE, LATE, LATE),
        (None, None, EARLY),
    ],
)
@pytest.mark.parametrize("gap", [timedelta(), timedelta(minutes=5)])
def test_no_clock_runs_longer_after_a_merge(
    of_ended: datetime | None, of_kept: datetime | None, counts: datetime, gap: timedelta
) -> None:
    tenant = make_tenant()
    ended, kept = make_incident(tenant, at=EARLY + gap), make_incident(tenant, at=EARLY)
    change(ended, at=LATE, aware_at=of_ended)
    change(kept, at=LATE, aware_at=of_kept)
    earliest = min(clock.due_at for row in (ended, kept) for clock in fresh(row).clocks() if clock.due_at)

    merge(ended, kept)

    started = {clock.started_at for clock in fresh(kept).clocks() if clock.due_at}
    assert started == {counts}
    assert fresh(kept).next_due_at == earliest


def test_worse_severity_counts_and_is_told() -> None:
    tenant = make_tenant()
    ended, kept = make_incident(tenant, at=EARLY), make_incident(tenant, at=EARLY)
    change(ended, at=LATE, severity="critical")
    change(kept, at=LATE, severity="low")

    merge(ended, kept)

    told = TimelineEntry.objects.of_incidents([kept.id]).get(kind="merged")
    audited = AuditEntry.objects.for_tenant(tenant.id).get(
        event_type="incident.merged", affected_id=str(kept.id)
    )
    assert fresh(kept).severity == "critical"
    assert "Severity: low to critical" in told.text
    assert (audited.metadata or {})["changes"] == {"severity": {"before": "low", "after": "critical"}}


def test_statement_about_a_merged_incident_names_the_one_that_goes_on() -> None:
    tenant = make_tenant()
    ended, kept = make_incident(tenant), make_incident(tenant)
    merge(ended, kept)

    with pytest.raises(IncidentMerged, match=kept.reference):
        change(ended, severity="low")


@pytest.mark.parametrize(
    ("of_ended", "of_kept"),
    [
        ({"ai_act_reported_at": EARLY}, {}),
        ({"serious_harm": "death"}, {"serious_harm": "health"}),
        ({"serious_harm": "death"}, {}),
        ({}, {"serious_harm": "not_serious"}),
        ({}, {"dora_class": "not_major"}),
        ({"dora_class": "major", "classified_at": EARLY}, {}),
    ],
)
def test_merging_that_would_lose_a_statement_or_a_deadline_is_refused(
    of_ended: dict[str, Any], of_kept: dict[str, Any]
) -> None:
    tenant = make_tenant()
    ended, kept = make_incident(tenant, at=EARLY), make_incident(tenant, at=EARLY)
    change(ended, at=LATE, **of_ended)
    change(kept, at=LATE, **of_kept)

    with pytest.raises(Unmergeable):
        merge(ended, kept)

    ended.refresh_from_db()
    assert ended.merged_into is None


def test_ended_incidents_and_oneself_are_refused() -> None:
    tenant = make_tenant()
    incident, closed = make_incident(tenant), make_closed_incident(tenant)

    for ended, kept in ((incident, incident), (incident, closed), (closed, incident)):
        with pytest.raises(Unmergeable):
            merge(ended, kept)


def test_same_case_number_is_one_incident_until_it_is_closed() -> None:
    tenant = make_tenant()
    first = make_incident(tenant, agent_name="one", case_number="C-7", is_contained=False)

    second = make_incident(tenant, agent_name="two", case_number="C-7", is_contained=True)
    other_case = make_incident(tenant, agent_name="three", case_number="C-8")
    other_tenant = make_incident(make_tenant(), agent_name="four", case_number="C-7")

    assert second.id == first.id
    assert second.state == "open"
    assert names_of(first) == {"one", "two"}
    assert len({first.id, other_case.id, other_tenant.id}) == 3

    change(first, serious_harm="not_serious", dora_class="not_major", state="closed")
    assert make_incident(tenant, case_number="C-7").id != first.id


def test_agents_of_one_case_at_the_same_moment_open_one_incident(committed: None) -> None:
    with environments.use(Environment.LIVE):
        tenant = make_tenant()

    opened = all_at_once([partial(make_incident, tenant, case_number="C-7") for _ in range(6)])

    assert len({incident.id for incident in opened}) == 1
    with environments.use(Environment.LIVE):
        assert opened[0].agents.count() == 6


def test_what_happens_while_a_merge_goes_on_joins_the_incident_that_stays(committed: None) -> None:
    with environments.use(Environment.LIVE), ThreadPoolExecutor(1) as pool:
        tenant = make_tenant()
        ended, kept = make_incident(tenant), make_incident(tenant)
        joining = partial(make_incident, tenant, agent_id=ended.agent_id, text="Again")
        with environments.atomic():
            merge(ended, kept)
            joined = pool.submit(in_thread, joining)
            assert eventually(somebody_waits_for_a_lock)

        assert joined.result(timeout=60).id == kept.id
        assert TimelineEntry.objects.of_incidents([kept.id]).filter(text="Again").exists()


def test_case_number_may_be_stated_after_the_stop() -> None:
    tenant, agent_id = make_tenant(), new_id()
    stopped = make_incident(tenant, agent_id=agent_id)
    make_incident(tenant, agent_id=agent_id, case_number="C-7")

    assert make_incident(tenant, case_number="C-7").id == stopped.id


def test_database_holds_one_current_incident_of_an_agent() -> None:
    tenant, agent_id = make_tenant(), new_id()
    make_incident(tenant, agent_id=agent_id)
    row = TouchedAgent(
        incident=make_incident(tenant), agent_id=agent_id, agent_name="bot", since=now(), why="again"
    )

    with pytest.raises(IntegrityError), environments.atomic():
        row.save()


def test_api_merges_and_finds_by_each_agent(client: ApiClient, tenant: Tenant) -> None:
    first, second = make_incident(tenant, agent_name="one"), make_incident(tenant, agent_name="two")

    answer = client.patch(
        f"/v1/incidents/{first.id}", {"merged_into": str(second.id), "note": "Same attack."}
    )

    shown = answer.json()["data"]
    kept = client.get(f"/v1/incidents/{second.id}").json()["data"]
    listed = client.get(f"/v1/incidents?agent_id={first.agent_id}").json()["data"]
    assert answer.status_code == 200
    assert (shown["state"], shown["merged_into"]) == ("merged", str(second.id))
    assert {agent["agent_name"] for agent in kept["agents"]} == {"one", "two"}
    assert kept["agent_id"] == str(second.agent_id)
    assert {row["id"] for row in listed} == {str(first.id), str(second.id)}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"merged_into": "x"}, 400),
        ({"merged_into": None}, 400),
        ({"merged_into": str(new_id()), "severity": "low"}, 400),
        ({"state": "merged"}, 400),
        ({"merged_into": str(new_id())}, 404),
    ],
)
def test_wrong_merges_are_refused(
    client: ApiClient, tenant: Tenant, body: dict[str, Any], status: int
) -> None:
    assert client.patch(f"/v1/incidents/{make_incident(tenant).id}", body).status_code == status
