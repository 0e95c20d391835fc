"""GET /v1/audit-log?order=asc: the log in the order of its tree, each entry once."""

import threading
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.db import connections

from auditlog import services
from auditlog.exporting import feed
from auditlog.exporting.feed import feed_page
from auditlog.filters import EntryFilters
from auditlog.models import AuditEntry
from auditlog.sealing.sealer import seal_all
from auditlog.tests.factories import ACTOR
from auditlog.tests.logs import make_log
from auditlog.vocabulary import AuditAction
from compliance.api.pagination import Cursor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant

PATH = "/v1/audit-log?order=asc&event_type=agent.updated"


@pytest.fixture
def reader(api: ApiClient) -> tuple[ApiClient, object]:
    tenant = make_tenant()
    return api.as_key(make_key(tenant)), tenant.id


def updated(entries: list[AuditEntry]) -> list[str]:
    return [str(entry.id) for entry in entries if entry.event_type == AuditAction.AGENT_UPDATED]


def test_feed_is_in_sealed_order_and_goes_on_where_it_ended(reader: tuple[ApiClient, object]) -> None:
    client, tenant_id = reader
    # The later time is sealed first.
    late = make_log(4, tenant_id=tenant_id)
    early = make_log(6, tenant_id=tenant_id, at=now() - timedelta(hours=1))

    first = client.get(f"{PATH}&limit=3").json()
    rest = client.get(f"{PATH}&after={quote(first['next_cursor'])}").json()
    end = client.get(f"{PATH}&after={quote(rest['next_cursor'])}").json()
    more = make_log(2, tenant_id=tenant_id)
    after = client.get(f"{PATH}&after={quote(end['next_cursor'])}").json()

    assert [row["id"] for row in first["data"] + rest["data"]] == updated(late) + updated(early)
    assert (first["has_next_page"], rest["has_next_page"]) == (True, False)
    assert (end["data"], end["has_next_page"]) == ([], False)
    assert [row["id"] for row in after["data"]] == updated(more)


def test_entry_not_sealed_waits(reader: tuple[ApiClient, object]) -> None:
    client, tenant_id = reader
    services.record(tenant_id=tenant_id, action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=now())  # type: ignore[arg-type]

    assert client.get(PATH).json()["data"] == []


def test_entry_that_commits_late_is_not_skipped(committed: None) -> None:
    tenant_id, began, go = new_id(), threading.Event(), threading.Event()

    def record() -> AuditEntry:
        with environments.atomic():
            return services.record(
                tenant_id=tenant_id, action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=now()
            )

    def late() -> None:
        with environments.use(Environment.LIVE):
            with environments.atomic():
                record()
                began.set()
                go.wait(10)
            connections.close_all()

    thread = threading.Thread(target=late)
    thread.start()
    began.wait(10)
    early = record()
    seal_all()
    first = feed_page(tenant_id=tenant_id, filters=EntryFilters(), after=None, limit=10)
    go.set()
    thread.join()
    seal_all()
    second = feed_page(
        tenant_id=tenant_id, filters=EntryFilters(), after=Cursor(now(), first.position), limit=10
    )

    assert [entry.id for entry in first.rows] == [early.id]
    assert len(second.rows) == 1
    assert second.rows[0].created_at < early.created_at
    # From a time before both, both come, though the later one stands first.
    again = feed_page(tenant_id=tenant_id, filters=EntryFilters(), after=None, limit=10)
    assert [*again.rows] == [*first.rows, *second.rows]


def test_page_reads_so_many_places_at_most_and_may_be_empty(
    reader: tuple[ApiClient, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, tenant_id = reader
    monkeypatch.setattr(feed, "WINDOW", 3)
    made = make_log(2, tenant_id=tenant_id)
    make_log(10)
    made += make_log(2, tenant_id=tenant_id)
    found, pages, cursor = [], 0, ""

    while True:
        body = client.get(f"{PATH}{cursor}").json()
        found += [row["id"] for row in body["data"]]
        pages += 1
        cursor = f"&after={quote(body['next_cursor'])}"
        if not body["has_next_page"]:
            break

    assert found == updated(made)
    assert pages >= 4


def test_plain_date_time_begins_with_the_first_entry_later(reader: tuple[ApiClient, object]) -> None:
    client, tenant_id = reader
    make_log(2, tenant_id=tenant_id, at=now() - timedelta(hours=2))
    made = make_log(2, tenant_id=tenant_id)
    moment = quote((now() - timedelta(hours=1)).isoformat())

    assert [row["id"] for row in client.get(f"{PATH}&after={moment}").json()["data"]] == updated(made)
    assert client.get(f"{PATH}&after=2099-01-01").json()["data"] == []


def test_position_of_the_future_is_the_end(reader: tuple[ApiClient, object]) -> None:
    client, tenant_id = reader
    make_log(2, tenant_id=tenant_id)

    body = client.get(f"{PATH}&after=2026-01-01T00:00:00.000000{2**128 - 1:039d}Z").json()

    assert (body["data"], body["has_next_page"]) == ([], False)


def test_others_entries_are_not_in_it(reader: tuple[ApiClient, object]) -> None:
    client, _ = reader
    make_log(2)

    assert client.get(PATH).json()["data"] == []


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("order=up", "Invalid order: must be one of asc, desc"),
        ("order=asc&before=2026-01-01", "before belongs to order=desc; with order=asc give after"),
        ("order=asc&after=soon", "after must be an ISO 8601 date-time"),
        ("order=asc&limit=101", "limit must be a whole number from 1 to 100"),
    ],
)
def test_wrong_combinations_are_400(reader: tuple[ApiClient, object], query: str, error: str) -> None:
    answer = reader[0].get(f"/v1/audit-log?{query}")

    assert (answer.status_code, answer.json()) == (400, {"error": error})
