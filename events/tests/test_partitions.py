"""The events table's partitions: made ahead, dropped outlived, the default emptied; ingest never refused."""

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import ProgrammingError, connection, connections

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import first_id_at, moment_of, new_id_at
from events.archiving import changes
from events.archiving.changes import listed
from events.archiving.spans import AHEAD, Span, missing
from events.checks import check_mica, check_settings
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent
from events.partitions import DEFAULT, maintain
from events.tests.conftest import World
from events.tests.factories import make_event, store_event

ACTOR = Actor.system("tests")


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def table_of(event: BehaviorEvent | ScoredEvent) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM events_behaviorevent WHERE id = %s", [event.id])
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("span", "start", "end"),
    [
        (Span.DAY, at(2028, 2, 29), at(2028, 3, 1)),
        (Span.WEEK, at(2028, 2, 28), at(2028, 3, 6)),
        (Span.MONTH, at(2028, 2, 1), at(2028, 3, 1)),
    ],
)
def test_spans_follow_the_calendar(span: Span, start: datetime, end: datetime) -> None:
    moment = at(2028, 2, 29, 13, 5)

    assert (span.start(moment), span.end(moment)) == (start, end)
    assert span.end(at(2027, 12, 31, 23)) in (at(2028, 1, 1), at(2028, 1, 3))


@pytest.mark.parametrize("span", list(Span))
def test_partitions_made_ahead_leave_no_gap(span: Span) -> None:
    made = missing([], now=at(2028, 2, 29, 13), span=span)

    assert len(made) == AHEAD + 1
    assert made[0].start <= at(2028, 2, 29, 13) < made[0].end
    assert all(one.end == next_one.start for one, next_one in pairwise(made))


def test_changed_span_works_around_what_is_there() -> None:
    existing = missing([], now=at(2028, 2, 10), span=Span.DAY)

    made = missing(existing, now=at(2028, 2, 10), span=Span.MONTH)

    assert [(one.start, one.end) for one in made][:2] == [
        (at(2028, 2, 1), at(2028, 2, 10)),
        (at(2028, 2, 14), at(2028, 3, 1)),
    ]
    assert missing([*existing, *made], now=at(2028, 2, 10), span=Span.MONTH) == []


def test_ids_of_a_moment_keep_its_order_and_time() -> None:
    moment = at(2028, 2, 29, 13, 5) + timedelta(microseconds=123_999)

    same = [UUID(new_id_at(moment)) for _ in range(100)]

    assert same == sorted(same)
    assert UUID(new_id_at(moment - timedelta(microseconds=1))) < same[0]
    assert (
        same[-1]
        < UUID(new_id_at(moment + timedelta(microseconds=1)))
        < first_id_at(moment + timedelta(seconds=1))
    )
    assert moment_of(same[0]) == moment.replace(microsecond=123_000)
    assert (same[0].version, same[0].variant) == (7, "specified in RFC 4122")


def test_event_stands_in_the_partition_of_its_receipt(world: World) -> None:
    event = make_event(world.agent)

    assert table_of(event) == next(one.name for one in listed() if one.start <= event.received_at < one.end)


def test_maintenance_makes_what_is_missing_once() -> None:
    later = now() + timedelta(days=62)

    first = maintain(actor=ACTOR, now=later)
    second = maintain(actor=ACTOR, now=later)

    assert first.made
    assert second.made == []
    assert missing(listed(), now=later, span=Span.MONTH) == []


def test_outlived_partition_is_dropped_and_audited(world: World, settings: Any) -> None:
    old = make_event(world.agent, received_at=now() - timedelta(days=100))
    kept = make_event(world.agent)
    made = maintain(actor=ACTOR, now=now())
    assert made.moved_rows == 1
    settings.EVENT_RETENTION_DAYS = 60

    done = maintain(actor=ACTOR, now=now())

    (dropped,) = done.dropped
    assert dropped.start <= old.received_at < dropped.end
    entry = AuditEntry.objects.get(event_type="events.dropped", affected_id=dropped.name)
    assert not BehaviorEvent.objects.filter(id=old.id).exists()
    assert BehaviorEvent.objects.filter(id=kept.id).exists()
    assert entry.tenant_id == SERVICE_TENANT_ID
    assert (entry.metadata or {})["received_before"] == dropped.end.isoformat()
    assert all(one.end > now() - timedelta(days=60) for one in listed())


def test_partition_of_the_last_thirty_days_is_not_dropped_whatever_the_retention(
    world: World, settings: Any
) -> None:
    event = make_event(world.agent, received_at=now() - timedelta(days=20))
    maintain(actor=ACTOR, now=now())
    settings.EVENT_RETENTION_DAYS = 0

    with pytest.raises(ProgrammingError, match="last 30 days"), environments.atomic():
        maintain(actor=ACTOR, now=now() + timedelta(days=80))

    assert BehaviorEvent.objects.filter(id=event.id).exists()


def test_event_no_partition_covers_is_kept_and_moves_to_its_own(world: World) -> None:
    future = now() + timedelta(days=300)
    event = make_event(world.agent, received_at=future)
    assert table_of(event) == DEFAULT

    done = maintain(actor=ACTOR, now=future + timedelta(days=1))
    while_hot = table_of(event)
    again = maintain(actor=ACTOR, now=future + timedelta(days=1, hours=1))

    assert while_hot == DEFAULT
    assert not done.is_complete
    assert again.is_complete
    assert again.moved_rows == 1
    assert table_of(event) != DEFAULT
    assert BehaviorEvent.objects.get(id=event.id).details == event.details


def test_rows_of_the_default_past_their_retention_go(world: World) -> None:
    event = make_event(world.agent, received_at=at(2020, 1, 1))

    done = maintain(actor=ACTOR, now=now())

    assert [partition.start for partition in done.dropped] == [at(2020, 1, 1)]
    assert not BehaviorEvent.objects.filter(id=event.id).exists()


def test_row_of_no_possible_time_stays_in_the_default(world: World) -> None:
    event = make_event(world.agent, received_at=at(1970, 1, 2))

    done = maintain(actor=ACTOR, now=now())

    assert (done.default_rows, table_of(event)) == (1, DEFAULT)


def run(**options: Any) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    try:
        call_command("partition_maintain", json=True, stdout=out, stderr=io.StringIO(), **options)
    except SystemExit as ended:
        return int(ended.code or 0), json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


def test_command_finds_rows_in_the_default_and_a_dry_run_changes_nothing(world: World) -> None:
    store_event(world.agent, 0.1, now() + timedelta(days=3000))
    before = listed()

    code, told = run(environment="live", dry_run=True)

    assert code == 6
    assert told["default_rows"] == 1
    assert listed() == before


def test_partition_that_stays_locked_is_left_for_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "RETRY_DELAYS", (0.0, 0.0))
    rival = connections["default"].copy()
    with rival.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [changes.ADVISORY_LOCK])
        done = maintain(actor=ACTOR, now=now() + timedelta(days=62))
    rival.close()

    assert done.made == []
    assert done.postponed


@pytest.mark.parametrize(("days", "found"), [(182, ["events.E001"]), (183, []), (1827, [])])
def test_checks_refuse_a_retention_under_six_months(settings: Any, days: int, found: list[str]) -> None:
    settings.EVENT_RETENTION_DAYS = days

    assert [message.id for message in check_settings()] == found


@pytest.mark.parametrize("start", [["manage.py", "check"], ["-c", "import compliance.serving.application"]])
def test_nothing_starts_with_a_retention_under_six_months(settings: Any, start: list[str]) -> None:
    environment = {**os.environ, "EVENT_RETENTION_DAYS": "182"}

    ended = subprocess.run(
        [sys.executable, *start], env=environment, cwd=settings.BASE_DIR, capture_output=True, check=False
    )

    assert ended.returncode == 1
    assert b"ImproperlyConfigured: EVENT_RETENTION_DAYS is 182" in ended.stderr


@pytest.mark.parametrize(
    ("days", "is_financial", "found"),
    [(1826, True, ["events.W003"]), (1827, True, []), (1826, False, [])],
)
def test_under_mica_less_than_five_years_is_a_warning(
    world: World, settings: Any, days: int, is_financial: bool, found: list[str]
) -> None:
    if is_financial:
        make_agent(world.tenant, name="trader", financial_scope={"max_single_trade_usd": 1})
    settings.EVENT_RETENTION_DAYS = days

    assert [message.id for message in check_mica()] == found


def test_checks_tell_of_an_unknown_span(settings: Any) -> None:
    settings.EVENT_PARTITION = "fortnight"

    assert [message.id for message in check_settings()] == ["events.E002"]
