"""The watch announces each clock once ahead and once at its end, however often it runs."""

from datetime import UTC, datetime, timedelta

import pytest

from auditlog.models import AuditEntry
from incidents.duties.watch import RETRY_AFTER, watch
from incidents.models import Incident, TimelineEntry
from incidents.tests.factories import change, make_incident
from tenancy.tests.factories import make_tenant
from webhooks.models import Message
from webhooks.tests.factories import make_webhook
from webhooks.vocabulary import EventName

START = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def incident() -> Incident:
    """One of which only the clock of the AI Act runs."""
    tenant = make_tenant()
    make_webhook(tenant, events=[EventName.INCIDENT_DEADLINE])
    return change(make_incident(tenant, at=START), at=START, dora_class="not_major")


def announced(incident: Incident) -> list[str]:
    found = TimelineEntry.objects.of_incidents([incident.id]).filter(kind__startswith="deadline")
    return [entry.kind for entry in found]


def test_clock_is_announced_ahead_and_at_its_end_once_each(incident: Incident) -> None:
    for at in (
        START,
        START + 12 * DAY,
        START + 12 * DAY,
        START + 13 * DAY,
        START + 15 * DAY,
        START + 40 * DAY,
    ):
        watch(now=at)
        watch(now=at)

    assert announced(incident) == ["deadline_near", "deadline_missed"]
    assert Message.objects.filter(tenant_id=incident.tenant_id, event="incident.deadline").count() == 2
    kinds = AuditEntry.objects.for_tenant(incident.tenant_id).values_list("event_type", flat=True)
    assert sorted(kind for kind in kinds if kind.startswith("incident.deadline")) == [
        "incident.deadline_missed",
        "incident.deadline_near",
    ]


def test_lost_warning_is_not_made_up_after_the_end(incident: Incident) -> None:
    assert watch(now=START + 16 * DAY) == 1

    assert announced(incident) == ["deadline_missed"]


def test_report_that_was_sent_is_not_announced(incident: Incident) -> None:
    change(incident, at=START + 2 * DAY, serious_harm="health", ai_act_reported_at=START + DAY)

    assert watch(now=START + 40 * DAY) == 0


def test_shorter_term_is_announced_anew(incident: Incident) -> None:
    watch(now=START + 12 * DAY)
    change(incident, at=START + 12 * DAY, aware_at=START + 11 * DAY, serious_harm="death")

    watch(now=START + 18 * DAY)
    watch(now=START + 21 * DAY)

    assert announced(incident) == ["deadline_near", "deadline_near", "deadline_missed"]


def test_incident_that_fails_holds_up_no_other_and_is_tried_again(
    incident: Incident, caplog: pytest.LogCaptureFixture
) -> None:
    sound = change(make_incident(make_tenant("Rival"), at=START), at=START, dora_class="not_major")
    broken = Incident.objects.filter(id=incident.id)
    # No term can be counted from there.
    broken.update(aware_at=datetime.max.replace(tzinfo=UTC))

    made = watch(now=START + 12 * DAY)

    assert (made, announced(sound), announced(incident)) == (1, ["deadline_near"], [])
    assert f"row {incident.id} of a sweep failed" in caplog.text
    assert "OverflowError" in caplog.text
    broken.update(aware_at=None)
    assert watch(now=START + 12 * DAY) == 0
    assert watch(now=START + 12 * DAY + RETRY_AFTER) == 1


def test_clocks_of_both_laws_run_side_by_side() -> None:
    incident = make_incident(make_tenant(), at=START)

    watch(now=START + 22 * HOUR)
    watch(now=START + 24 * HOUR)

    assert announced(incident) == ["deadline_near", "deadline_missed"]
    assert Incident.objects.get(id=incident.id).next_announcement_at == START + 12 * DAY
