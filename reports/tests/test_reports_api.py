"""`/v1/reports`: asking, following, reading."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from django.conf import settings
from jsonschema_rs import Draft202012Validator

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from auditlog.tests.factories import facts_of
from auditlog.vocabulary import Actor
from compliance.core import tasks
from compliance.core.clock import now
from compliance.core.errors import Unavailable
from compliance.keys.registry import reset
from compliance.stores import redis
from compliance.tests.client import ApiClient
from reports import services
from reports.content.builder import SCHEMA
from reports.models import Report
from reports.querysets import LEASE, MAX_ATTEMPTS
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

BODY = {"type": "eu_ai_act", "period_start": "2026-07-01", "period_end": "2026-09-30"}


def ask(client: ApiClient, **body: Any) -> Any:
    return client.post("/v1/reports", {**BODY, **body})


def make_ready_report(client: ApiClient, **body: Any) -> str:
    report_id = str(ask(client, **body).json()["data"]["id"])
    assert services.generate_next(now=now())
    return report_id


def make_failed_report(client: ApiClient) -> str:
    report_id = str(ask(client).json()["data"]["id"])
    Report.objects.filter(id=report_id).update(attempts=MAX_ATTEMPTS)
    services.sweep(now=now())
    return report_id


def test_a_report_is_accepted(client: ApiClient, django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        answer = ask(client)

    assert answer.status_code == 202
    data = answer.json()["data"]
    assert set(data) == {
        "id", "type", "status", "period_start", "period_end", "agent_ids", "digest",
        "created_at", "completed_at",
    }  # fmt: skip
    assert (data["type"], data["status"]) == ("eu_ai_act", "pending")
    assert (data["agent_ids"], data["digest"], data["completed_at"]) == (None, None, None)
    assert len(callbacks) == 2  # the report's task, and the sealing of its audit entry


def test_a_date_at_the_end_includes_its_day(client: ApiClient) -> None:
    data = ask(client).json()["data"]

    assert (data["period_start"], data["period_end"]) == ("2026-07-01T00:00:00Z", "2026-10-01T00:00:00Z")


def test_a_date_time_is_taken_as_it_is(client: ApiClient) -> None:
    data = ask(client, period_end="2026-09-30T12:00:00+02:00").json()["data"]

    assert data["period_end"] == "2026-09-30T10:00:00Z"


@pytest.mark.parametrize("name", ["", "/json", "/pdf"])
@pytest.mark.parametrize("status", ["pending", "generating"])
def test_it_is_too_early_while_generating(client: ApiClient, name: str, status: str) -> None:
    report_id = ask(client).json()["data"]["id"]
    Report.objects.filter(id=report_id).update(status=status)

    answer = client.get(f"/v1/reports/{report_id}{name}")

    assert answer.status_code == 425
    assert answer["Retry-After"] == "2"
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("kind", ["eu_ai_act", "mica"])
def test_a_ready_report_is_read_and_checked(client: ApiClient, kind: str) -> None:
    report_id = make_ready_report(client, type=kind)

    state = client.get(f"/v1/reports/{report_id}").json()["data"]
    document = client.get(f"/v1/reports/{report_id}/json").json()["data"]

    assert (state["status"], state["digest"]) == ("ready", document["digest"]["value"])
    assert state["completed_at"] is not None
    assert hashlib.sha256(rfc8785.dumps(document["report"])).hexdigest() == state["digest"]
    assert (document["report"]["type"], document["report"]["environment"]) == (kind, "live")
    Draft202012Validator(SCHEMA).validate(document["report"])


def test_a_failed_report_says_so(client: ApiClient) -> None:
    report_id = make_failed_report(client)

    assert client.get(f"/v1/reports/{report_id}").json()["data"]["status"] == "failed"
    assert client.get(f"/v1/reports/{report_id}/json").status_code == 422
    assert client.get(f"/v1/reports/{report_id}/pdf").status_code == 422


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"period_end": "9999-12-31"}, "period_end"),
        ({"period_end": "2026-06-01"}, "period_end"),
        ({"period_start": "2010-01-01"}, "period_end"),
        ({"period_start": "2999-01-01", "period_end": "2999-02-01"}, "not ended"),
        ({"period_end": "2999-02-01"}, "period_end"),
    ],
)
def test_bad_requests_are_refused(client: ApiClient, body: dict[str, Any], complaint: str) -> None:
    answer = ask(client, **body)

    assert answer.status_code == 400
    assert complaint in answer.json()["error"]


def test_agents_can_be_chosen(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    data = ask(client, agent_ids=[str(agent.id), str(agent.id).upper()]).json()["data"]

    assert data["agent_ids"] == [str(agent.id)]


def test_another_tenants_agent_does_not_exist(client: ApiClient) -> None:
    answer = ask(client, agent_ids=[str(make_agent(make_tenant("Other")).id)])

    assert (answer.status_code, answer.json()) == (404, {"error": "Agent not found"})
    assert not Report.objects.exists()


def test_a_list_shows_ones_own_newest_first(api: ApiClient, client: ApiClient) -> None:
    first = make_ready_report(client)
    second = ask(client, type="mica").json()["data"]["id"]
    ask(api.as_key(make_key(make_tenant("Other"))))

    page = client.get("/v1/reports?limit=1").json()
    rest = client.get(f"/v1/reports?before={page['next_cursor']}").json()

    assert [row["id"] for row in page["data"]] == [second]
    assert ([row["id"] for row in rest["data"]], rest["next_cursor"]) == ([first], None)
    assert [row["id"] for row in client.get("/v1/reports?status=ready").json()["data"]] == [first]
    assert [row["id"] for row in client.get("/v1/reports?type=mica").json()["data"]] == [second]
    assert client.get("/v1/reports?status=done").status_code == 400


def test_asking_and_generating_are_audited(client: ApiClient, tenant: Tenant) -> None:
    report_id = make_ready_report(client)

    entries = AuditEntry.objects.for_tenant(tenant.id).about(report_id)
    assert [(entry.event_type, entry.actor_type) for entry in entries] == [
        ("report.generated", "system"),
        ("report.requested", "user"),
    ]
    generated = entries[0].metadata
    assert generated is not None
    assert generated["sha256"] == Report.objects.get(id=report_id).digest


def test_a_failure_is_audited(client: ApiClient, tenant: Tenant) -> None:
    report_id = make_failed_report(client)

    assert AuditEntry.objects.for_tenant(tenant.id).filter(event_type="report.failed", affected_id=report_id)


def test_generating_twice_changes_nothing(client: ApiClient) -> None:
    report_id = make_ready_report(client)
    before = Report.objects.get(id=report_id)

    assert services.generate_next(now=now() + timedelta(hours=1)) is False
    assert Report.objects.get(id=report_id).completed_at == before.completed_at


def test_an_abandoned_report_is_taken_up_again(client: ApiClient) -> None:
    ask(client)
    moment = now()
    assert Report.objects.claim_next(moment) is not None

    assert Report.objects.claim_next(moment + timedelta(minutes=29)) is None
    assert services.sweep(now=moment + timedelta(minutes=29)) == 0
    assert services.sweep(now=moment + timedelta(minutes=31)) == 1
    assert services.generate_next(now=moment + timedelta(minutes=31)) is True


def test_an_identical_request_answers_the_report_that_is_pending(client: ApiClient, tenant: Tenant) -> None:
    agent = str(make_agent(tenant).id)
    first, again = ask(client), ask(client)
    others = [ask(client, type="mica"), ask(client, period_end="2026-09-29"), ask(client, agent_ids=[agent])]
    make_ready_report(client)
    later = ask(client)

    assert (again.status_code, again.json()) == (202, first.json())
    assert len({one.json()["data"]["id"] for one in (first, *others, later)}) == 5
    requested = AuditEntry.objects.for_tenant(tenant.id).filter(event_type="report.requested")
    assert requested.count() == 5


def test_tenant_has_so_many_reports_pending_and_others_have_theirs(api: ApiClient, client: ApiClient) -> None:
    accepted = [ask(client, period_start=f"2026-07-{day:02}") for day in range(1, 11)]
    refused = ask(client, period_start="2026-07-11")

    assert {one.status_code for one in accepted} == {202}
    assert (refused.status_code, set(refused.json())) == (429, {"error"})
    told = {name: refused[name] for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "Retry-After")}
    assert told == {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "Retry-After": "10"}
    assert int(refused["X-RateLimit-Reset"]) >= now().timestamp()
    assert services.generate_next(now=now())
    assert ask(client, period_start="2026-07-11").status_code == 202
    assert ask(api.as_key(make_key(make_tenant()))).status_code == 202


def queued(*numbers: int) -> list[UUID]:
    """The tenants of so many pending reports each, all requested before the next tenant's."""
    tenants = [make_tenant(name=f"Tenant {number}") for number in range(len(numbers))]
    for tenant, number in zip(tenants, numbers, strict=True):
        for day in range(1, number + 1):
            services.request_report(
                tenant_id=tenant.id,
                type="mica",
                period_start=datetime(2026, 7, day, tzinfo=UTC),
                period_end=datetime(2026, 8, 1, tzinfo=UTC),
                actor=Actor.system("tests"),
                now=now(),
            )
    return [tenant.id for tenant in tenants]


def test_tenants_take_turns() -> None:
    queued(3, 1, 2)
    began = []

    while (report := Report.objects.claim_next(now())) is not None:
        began.append(report.tenant.name[-1])
        Report.objects.filter(id=report.id).update(status="failed", completed_at=now())

    assert "".join(began) == "012020"


def test_few_are_generated_at_once_and_one_of_a_tenant() -> None:
    tenants = queued(2, 2, 2, 2)
    moment = now()

    claimed = [Report.objects.claim_next(moment) for _ in range(4)]

    assert [one and one.tenant_id for one in claimed] == [*tenants[:3], None]
    Report.objects.filter(tenant_id=tenants[0], status="generating").update(status="pending")
    following = Report.objects.claim_next(moment)
    assert following is not None
    assert following.tenant_id == tenants[3]


def test_report_that_fails_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    queued(2)
    with monkeypatch.context() as without_hsm:
        without_hsm.setattr(settings, "PKCS11_MODULE", "")
        reset()
        with pytest.raises(Unavailable):
            services.generate_next(now=now())
    reset()

    assert services.generate_next(now=now())
    assert not services.generate_next(now=now())
    assert services.generate_next(now=now() + LEASE)


def test_however_many_wait_a_sweep_sends_one_message() -> None:
    waiting = [f"{tasks._PREFIX}{queue}" for queue in tasks.QUEUES]
    queued(5, 5)
    redis.broker().delete(*waiting)

    services.sweep(now=now())

    assert tasks.waiting() == 1
    redis.broker().delete(*waiting)


def test_finished_reports_are_deleted_after_their_retention(client: ApiClient, tenant: Tenant) -> None:
    ready, failed = make_ready_report(client), make_failed_report(client)
    ask(client)
    digest = Report.objects.get(id=ready).digest

    assert services.forget(now=now() + settings.REPORT_RETENTION - timedelta(minutes=1)) == 0
    assert services.forget(now=now() + settings.REPORT_RETENTION + timedelta(minutes=1)) == 2

    deleted = AuditEntry.objects.for_tenant(tenant.id).filter(event_type="report.deleted").order_by("id")
    told = {(entry.affected_id, (entry.metadata or {})["sha256"]) for entry in deleted}
    assert told == {(ready, digest), (failed, None)}
    assert client.get(f"/v1/reports/{ready}/pdf").status_code == 404
    assert Report.objects.get().status == "pending"


@pytest.mark.parametrize(("path", "kind"), [("json", "json"), ("pdf", "pdf"), ("bundle", "zip")])
def test_download_is_audited_as_the_keys(client: ApiClient, tenant: Tenant, path: str, kind: str) -> None:
    report_id = make_ready_report(client)

    client.get(f"/v1/reports/{report_id}/{path}")

    entry = AuditEntry.objects.for_tenant(tenant.id).of_type("report.downloaded").get()
    assert (entry.actor_kind, entry.affected_id, facts_of(entry)) == ("api_key", report_id, {"format": kind})
