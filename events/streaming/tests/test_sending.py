"""The stream to a bucket and to a syslog server: all of it, in order, at least once."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from pytest_django.fixtures import Settings

from auditlog.models import AuditEntry
from auditlog.sealing.tree import head
from auditlog.tests.factories import seal_and_sign
from auditlog.tests.logs import make_log
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import first_id_at
from compliance.outbound.tests.receivers import Received, Receiver, answers, receiving
from compliance.tests.ocsf import problems
from events import tasks
from events.streaming import sending
from events.streaming.models import StreamPosition
from events.streaming.sending import FIRST_PAUSE, LONGEST_PAUSE, positions, send_new
from events.streaming.tests.receiving import Syslog, certificate, syslog
from events.tests.conftest import World
from events.tests.factories import store_event
from ops.doctor import stream_keeps_up

LONG_AGO = datetime(2026, 3, 4, tzinfo=UTC)
ENTRIES, EVENTS = "audit-log", "events"


@pytest.fixture
def bucket(settings: Settings) -> Iterator[Receiver]:
    """A server that takes everything, as the settings name it."""
    with receiving(answers(200)) as found:
        point_at(settings, found)
        yield found


def point_at(settings: Settings, receiver: Receiver) -> None:
    settings.STREAM_S3_URL = f"http://{receiver.host}:{receiver.port}/bucket/agents"
    settings.STREAM_S3_KEY_ID, settings.STREAM_S3_SECRET = "AKIDEXAMPLE", "secret/+key"
    settings.STREAM_S3_REGION = "eu-central-2"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture
def server(settings: Settings, own: Path) -> Iterator[Syslog]:
    with syslog(own) as found:
        settings.STREAM_SYSLOG, settings.STREAM_CA_FILE = found.address, str(own)
        yield found


def begin(*names: str, at: datetime = LONG_AGO) -> None:
    """Have streams stand where there was nothing yet but the log's present entries."""
    seal_and_sign()
    for name in names:
        is_log = name.endswith(ENTRIES)
        upto = UUID(int=head().size) if is_log else first_id_at(at)
        StreamPosition.objects.create(name=name, upto=upto, caught_up_at=at)


def uids(octets: bytes) -> list[str]:
    return [json.loads(line)["metadata"]["uid"] for line in octets.splitlines()]


def objects(bucket: Receiver) -> dict[str, bytes]:
    """The objects of the bucket as they are now: what was put later under a name replaces what was there."""
    return {one.request_line.split()[1]: one.body for one in bucket.received}


def is_signed_as_by_aws(request: Received) -> bool:
    """Whether the signature is the one that Amazon's own library makes of the request."""
    method, path, _ = request.request_line.split()
    named = re.search("SignedHeaders=([^,]+)", request.headers["authorization"])
    assert named is not None
    headers = {name: request.headers[name] for name in named[1].split(";")}
    asked = AWSRequest(method, f"http://{request.headers['host']}{path}", headers, request.body)
    asked.context["timestamp"] = request.headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials("AKIDEXAMPLE", "secret/+key"), "s3", "eu-central-2")
    canonical = signer.canonical_request(asked)
    signature = signer.signature(signer.string_to_sign(asked, canonical), asked)
    return request.headers["authorization"].endswith(f"Signature={signature}")


def test_without_receivers_nothing_is_done(world: World) -> None:
    assert send_new(now=now()) == 0
    assert positions() == []


def test_stream_begins_with_what_comes_after_it_is_turned_on(world: World, bucket: Receiver) -> None:
    make_log(3)
    store_event(world.agent, 0.1, LONG_AGO)

    assert send_new(now=now()) == 0
    made = make_log(3)

    assert send_new(now=now()) == 3
    assert [uids(body) for body in objects(bucket).values()] == [[str(one.id) for one in made]]


def test_bucket_gets_all_in_order_signed_as_by_aws(
    world: World, bucket: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MOST", 2)
    begin("s3.audit-log", "s3.events")
    entries = make_log(5)
    events = [store_event(world.agent, 0.1, LONG_AGO + timedelta(hours=n)) for n in range(5)]

    sent = send_new(now=now())

    assert sent == 10
    assert all(map(is_signed_as_by_aws, bucket.received))
    found = sorted(objects(bucket).items())
    of = {
        source: [uid for path, body in found for uid in uids(body) if f"/live/{source}/" in path]
        for source in (ENTRIES, EVENTS)
    }
    assert of == {ENTRIES: [str(one.id) for one in entries], EVENTS: [str(one.id) for one in events]}
    assert [problem for body in objects(bucket).values() for line in body.splitlines()
            for problem in problems(json.loads(line))] == []  # fmt: skip
    assert send_new(now=now()) == 0


def test_what_was_sent_and_not_noted_replaces_its_object(world: World, bucket: Receiver) -> None:
    begin("s3.events", at=LONG_AGO)
    store_event(world.agent, 0.1, LONG_AGO + timedelta(hours=1))
    before = StreamPosition.objects.get(name="s3.events").upto
    send_new(now=now())
    # As if the process had been killed before it noted its position.
    StreamPosition.objects.filter(name="s3.events").update(upto=before)
    store_event(world.agent, 0.1, LONG_AGO + timedelta(hours=2))

    send_new(now=now())

    kept = [body for path, body in objects(bucket).items() if "/events/" in path]
    assert len(bucket.received) == 2
    assert [len(uids(body)) for body in kept] == [2]


def test_receiver_that_is_away_is_left_alone_for_longer_and_longer_and_loses_nothing(
    world: World, settings: Settings
) -> None:
    moment = now()
    with receiving(answers(503, 200)) as away:
        point_at(settings, away)
        begin("s3.audit-log", at=moment)
        made = make_log(2)

        assert send_new(now=moment) == 0
        (row,) = StreamPosition.objects.filter(name="s3.audit-log")
        assert (row.failures, row.retry_at) == (1, moment + FIRST_PAUSE)
        assert row.problem.startswith("The bucket answered 503")
        assert send_new(now=moment + FIRST_PAUSE / 2) == 0
        assert len(away.received) == 1

        assert send_new(now=moment + FIRST_PAUSE) == 2
        assert uids(away.received[-1].body) == [str(one.id) for one in made]
        row.refresh_from_db()
        assert (row.failures, row.retry_at, row.problem) == (0, None, "")


def test_pause_has_an_end(world: World, settings: Settings) -> None:
    moment = now()
    settings.STREAM_S3_URL = "http://127.0.0.1:1/bucket"
    begin("s3.audit-log", at=moment)
    StreamPosition.objects.update(failures=10_000)
    make_log(1)

    send_new(now=moment)

    row = StreamPosition.objects.get(name="s3.audit-log")
    assert (row.retry_at, row.problem) == (moment + LONGEST_PAUSE, "Connection refused")


def test_addresses_of_metadata_services_are_refused(world: World, settings: Settings) -> None:
    settings.STREAM_S3_URL = "http://169.254.169.254/bucket"
    settings.STREAM_SYSLOG = "169.254.169.254:6514"
    begin("s3.audit-log", "syslog.audit-log")
    make_log(1)

    send_new(now=now())

    assert all("public" in row.problem for row in positions() if row.name.endswith(ENTRIES))


def test_environments_have_streams_of_their_own(world: World, bucket: Receiver) -> None:
    with environments.use(Environment.TEST):
        begin("s3.audit-log")
        made = make_log(1)
        send_new(now=now())

    assert [path for path in objects(bucket) if "/test/audit-log/" in path] != []
    assert uids(bucket.received[-1].body) == [str(made[0].id)]
    assert json.loads(bucket.received[-1].body)["metadata"]["labels"] == ["environment:test"]


def test_syslog_gets_each_as_a_framed_message(world: World, server: Syslog) -> None:
    begin("syslog.audit-log", "syslog.events")
    entries = make_log(3)
    low, high = (store_event(world.agent, score, LONG_AGO + timedelta(hours=1)) for score in (0.1, 0.9))

    assert send_new(now=now()) == 5

    date = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    pattern = re.compile(rb"<(\d+)>1 (%b) (\S+) service - (audit-log|events) - (.*)" % date, re.DOTALL)
    found = [pattern.fullmatch(message) for message in server.messages]
    assert None not in found
    read = [(int(one[1]), one[4].decode(), json.loads(one[5])) for one in found if one]
    sent = [event["metadata"]["uid"] for _, _, event in read]
    assert sent == [*(str(one.id) for one in entries), str(low.id), str(high.id)]
    # Log audit, informational and error.
    assert [priority for priority, source, _ in read if source == EVENTS] == [13 * 8 + 6, 13 * 8 + 3]
    assert [problem for _, _, event in read for problem in problems(event)] == []


@pytest.mark.parametrize(
    ("end", "arrived"), [("answer", True), ("close", True), ("die", False), ("silent", False)]
)
def test_position_moves_once_the_receiver_has_read_to_the_end(
    world: World, server: Syslog, settings: Settings, end: str, arrived: bool
) -> None:
    settings.STREAM_TIMEOUT_SECONDS = 2.0
    server.ends = [end, "answer"]
    begin("syslog.audit-log")
    made = make_log(2)

    first = send_new(now=now())
    second = send_new(now=now() + LONGEST_PAUSE)

    assert (first, second) == ((2, 0) if arrived else (0, 2))
    assert {json.loads(one[one.index(b"{") :])["metadata"]["uid"] for one in server.messages} == {
        str(one.id) for one in made
    }


def test_server_with_another_certificate_gets_nothing(
    world: World, settings: Settings, tmp_path: Path, own: Path
) -> None:
    with syslog(certificate(tmp_path, "localhost")) as stranger:
        settings.STREAM_SYSLOG, settings.STREAM_CA_FILE = stranger.address, str(own)
        begin("syslog.audit-log")
        make_log(1)

        assert send_new(now=now()) == 0

    assert stranger.messages == []
    assert StreamPosition.objects.get(name="syslog.audit-log").problem.startswith("TLS certificate not valid")


def test_one_process_sends_at_a_time(world: World, bucket: Receiver) -> None:
    tasks.stream.apply(headers={"service_environment": "live"}, throw=True)

    assert {row.name for row in positions()} == {"s3.audit-log", "s3.events"}


def test_doctor_names_a_stream_that_is_behind(world: World, settings: Settings) -> None:
    moment = now()
    settings.STREAM_S3_URL = "http://127.0.0.1:1/bucket"
    begin("s3.audit-log", at=moment)
    make_log(1)
    send_new(now=moment)

    assert stream_keeps_up(moment).problem == ""
    assert "s3.audit-log is behind since" in stream_keeps_up(moment + timedelta(hours=1)).problem
    assert AuditEntry.objects.exists()
