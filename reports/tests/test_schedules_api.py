"""`/v1/report-schedules`: create, list, show, change, end."""

from datetime import UTC, datetime
from typing import Any

from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from compliance.tests.client import ApiClient
from reports.models import ReportSchedule
from reports.scheduling import SETTLING, create_schedule, run_schedules
from tenancy.models import Tenant

PATH = "/v1/report-schedules"
BODY = {"type": "mica", "cadence": "month"}
JANUARY, FEBRUARY, APRIL = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 4))


def make_schedule(tenant: Tenant, at: datetime = JANUARY, **fields: Any) -> ReportSchedule:
    given = {**BODY, **fields}
    return create_schedule(tenant_id=tenant.id, actor=Actor.system("tests"), now=at, **given)


def of(schedule: ReportSchedule) -> str:
    return f"{PATH}/{schedule.id}"


def test_schedule_is_made_and_shown(client: ApiClient, tenant: Tenant) -> None:
    answer = client.post(PATH, BODY)

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert set(made) == {"id", "type", "cadence", "next_start", "created_at", "ended_at"}
    assert client.get(f"{PATH}/{made['id']}").json()["data"] == made
    entry = AuditEntry.objects.for_tenant(tenant.id).of_type("report.scheduled").get()
    assert (entry.actor_kind, entry.affected_id) == ("api_key", made["id"])


def test_one_that_lasts_is_answered_again(client: ApiClient) -> None:
    first, second = client.post(PATH, BODY), client.post(PATH, BODY)

    assert first.json() == second.json()
    assert ReportSchedule.objects.count() == 1


def test_list_pages_newest_first(client: ApiClient, tenant: Tenant) -> None:
    old, new = make_schedule(tenant), make_schedule(tenant, FEBRUARY, type="eu_ai_act")

    first = client.get(f"{PATH}?limit=1").json()
    second = client.get(f"{PATH}?limit=1&before={first['next_cursor']}").json()

    assert [row["id"] for row in first["data"] + second["data"]] == [str(new.id), str(old.id)]
    assert (first["has_next_page"], second["has_next_page"]) == (True, False)


def test_longer_cadence_goes_on_with_the_period_of_the_next_start(client: ApiClient, tenant: Tenant) -> None:
    schedule = make_schedule(tenant, FEBRUARY)

    answer = client.patch(of(schedule), {"cadence": "quarter"})

    assert answer.status_code == 200
    assert answer.json()["data"]["next_start"] == "2026-01-01T00:00:00Z"
    assert AuditEntry.objects.for_tenant(tenant.id).of_type("report.schedule_changed").count() == 1


def test_cadence_whose_period_is_reported_in_part_is_refused(client: ApiClient, tenant: Tenant) -> None:
    schedule = make_schedule(tenant)
    run_schedules(now=FEBRUARY + SETTLING)

    answer = client.patch(of(schedule), {"cadence": "quarter"})

    assert answer.status_code == 422
    assert "end the schedule" in answer.json()["error"]


def test_cadence_of_another_schedule_is_refused(client: ApiClient, tenant: Tenant) -> None:
    schedule = make_schedule(tenant)
    make_schedule(tenant, cadence="quarter")

    assert client.patch(of(schedule), {"cadence": "quarter"}).status_code == 409


def test_ended_schedule_is_shown_and_requests_nothing(client: ApiClient, tenant: Tenant) -> None:
    schedule = make_schedule(tenant)

    answer = client.delete(of(schedule))

    assert (answer.status_code, answer.content) == (204, b"")
    assert client.get(of(schedule)).json()["data"]["ended_at"] is not None
    assert run_schedules(now=APRIL) == 0
    assert client.delete(of(schedule)).status_code == 422
    assert client.patch(of(schedule), {"cadence": "quarter"}).status_code == 422
    assert make_schedule(tenant).id != schedule.id
