"""What a reporter does while the service is away, slow, or lost in the middle of an answer."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

import agentid
from agentid.reporting import Rejected
from agentid.reporting.batches import Outcome, interpret
from agentid.reporting.spool import Spool, sender_of
from compliance.tests.waiting import eventually
from tests.between import Canned, Fate, between
from tests.conftest import MakeReporter, Reported
from tests.served import Service

NOBODY = "http://127.0.0.1:9"  # discard; nothing listens there


def files(spool: Path) -> list[Path]:
    return sorted(spool.rglob("*.ndjson"))


@pytest.fixture
def patient_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reporter that is closed leaves the spool to the next one on a busy machine, too."""
    monkeypatch.setattr("agentid.reporting.reporter.JOIN_SECONDS", 60.0)


@pytest.fixture
def spool(tmp_path: Path, reported: Reported) -> Path:
    return tmp_path / "spool" / str(reported.agent.id)


def test_lost_answer_doubles_nothing(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    with between(service.address, Fate.ANSWER_LOST, Fate.ANSWER_LOST, Fate.PASSED) as way:
        reporter = make_reporter(way.address)
        for number in range(20):
            reporter.report("data_access", {"n": number})
        assert reporter.flush(60)

    assert reported.numbers() == list(range(20))
    assert len(way.keys) >= 3
    assert len(set(way.keys)) == len(way.keys) - 2  # the same key for the tries of one batch
    assert reporter.statistics().sent == 20


@pytest.mark.usefixtures("patient_end")
def test_events_wait_while_the_service_is_away_and_arrive_in_order(
    service: Service, reported: Reported, make_reporter: MakeReporter, spool: Path
) -> None:
    away = make_reporter(NOBODY)
    for number in range(1_100):
        away.report("data_access", {"n": number})

    assert not away.close(0)

    assert len(files(spool)) <= 4  # few files, though each was open to more
    back = make_reporter(service.address)
    back.flush(0)
    assert eventually(lambda: back.statistics().sent == 1_100, seconds=60)
    assert reported.numbers() == list(range(1_100))
    assert files(spool) == []


def keys_of_one(service: Service, make_reporter: MakeReporter, answer: Canned) -> list[str]:
    """Report one event, whose first try gets this answer; the keys of its tries, once it is sent."""
    with between(service.address, answer, Fate.PASSED) as way:
        reporter = make_reporter(way.address)
        reporter.report("data_access", {"n": 1})
        assert reporter.flush(60)
    return way.keys


def test_retry_after_is_honoured_and_keeps_the_event(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    began = time.monotonic()

    keys_of_one(service, make_reporter, Canned(429, headers={"Retry-After": "1"}))

    assert time.monotonic() - began >= 1
    assert reported.numbers() == [1]


@pytest.mark.parametrize("status", [401, 409, 422, 502])
def test_what_a_proxy_says_drops_nothing(
    service: Service, reported: Reported, make_reporter: MakeReporter, status: int
) -> None:
    keys_of_one(service, make_reporter, Canned(status, b"<h1>proxy</h1>"))

    assert reported.numbers() == [1]


@pytest.mark.parametrize("status", [409, 429, 503])
def test_single_events_that_the_service_could_not_store_are_sent_again_under_another_key(
    service: Service, reported: Reported, make_reporter: MakeReporter, status: int
) -> None:
    answer = Canned(200, b'{"data": [{"status": %d, "error": "later"}]}' % status)

    first, second = keys_of_one(service, make_reporter, answer)

    assert reported.numbers() == [1]
    assert second == f"{first}.r"


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (429, {"retry-after": "1"}, Outcome.REFUSED),
        (409, {"retry-after": "1"}, Outcome.UNKNOWN),
        (409, {}, Outcome.CONFLICT),
        (503, {"retry-after": "1"}, Outcome.UNKNOWN),
    ],
)
def test_batch_that_may_be_stored_in_part_is_not_taken_for_untried(
    status: int, headers: dict[str, str], outcome: Outcome
) -> None:
    answer = httpx.Response(status, headers=headers, json={"error": "later"})

    found = interpret(answer, count=1, now=datetime.now(UTC))

    assert found.outcome is outcome


def test_hanging_service_holds_up_neither_the_agent_nor_the_end(
    service: Service, reported: Reported, make_reporter: MakeReporter, spool: Path
) -> None:
    with between(service.address, Fate.NO_ANSWER) as way:
        reporter = make_reporter(way.address, timeout=60.0)
        reporter.report("data_access", {"n": 0})
        assert eventually(lambda: len(way.keys) == 1)
        for number in range(1, 101):
            assert reporter.report("data_access", {"n": number})
        assert eventually(lambda: reporter.statistics().queued == 0)

        assert not reporter.close(0.5)

        # The lock of the hanging one is still held: a second does not send what it may be sending.
        second = make_reporter(service.address)
        assert second.flush(30)
        assert second.statistics().sent == 0
        assert sum(path.read_bytes().count(b"\n") for path in files(spool)) == 101


def is_full(spool: Path, size: int, lines: int) -> bool:
    """Whether it holds `lines` lines, and no other as long as these has room."""
    try:
        found = b"".join(path.read_bytes() for path in files(spool))
    except FileNotFoundError:  # the sender renames a file around each try
        return False
    return 0 < lines == found.count(b"\n") and len(found) + len(found) // lines > size


def test_full_memory_and_spool_drop_the_newest(
    reported: Reported, make_reporter: MakeReporter, spool: Path
) -> None:
    reporter = make_reporter(NOBODY, max_queued=10, max_spool_bytes=1_000)

    def has_taken_what_fits() -> bool:
        found = reporter.statistics()
        return found.queued < 10 or is_full(spool, 1_000, found.spooled)

    taken = []
    for number in range(100):
        taken.append(reporter.report("data_access", {"n": number}))
        if not taken[-1]:
            break
        # What fits into the spool goes there, and is counted.
        assert eventually(has_taken_what_fits)

    found = reporter.statistics()
    assert taken[-1] is False
    assert (found.queued, found.dropped) == (10, 1)
    assert found.reported == len(taken) - 1 == found.queued + found.spooled
    assert found.spooled > 0


@pytest.mark.usefixtures("patient_end")
def test_torn_and_spoiled_files_cost_only_their_own_lines(
    service: Service, reported: Reported, make_reporter: MakeReporter, spool: Path
) -> None:
    away = make_reporter(NOBODY)
    for number in range(4):
        away.report("data_access", {"n": number})
    away.close(0)
    path, *more = files(spool)
    lines = b"".join(each.read_bytes() for each in (path, *more)).split(b"\n")
    for each in more:
        each.unlink()
    path.write_bytes(b"\n".join([lines[0], b"\x00" * 40, b"\xff\xfe", *lines[1:3], lines[3][:20]]))

    back = make_reporter(service.address)
    back.flush(0)

    assert eventually(lambda: back.statistics().sent == 3, seconds=30)
    assert back.flush(30)
    assert reported.numbers() == [0, 1, 2]


def tried(spool: Path, *, at: float, sender: str) -> None:
    """Make the one file look as if it had been sent without an answer."""
    (path,) = files(spool)
    path.rename(path.with_name(f"{path.stem}.{int(at)}-{sender}.ndjson"))


@pytest.mark.usefixtures("patient_end")
@pytest.mark.parametrize(
    ("hours_ago", "api_key"), [(24, None), (1, "service_live_another")], ids=["too long ago", "another key"]
)
def test_what_could_be_doubled_is_set_aside(  # the service would not recognise its key
    service: Service,
    reported: Reported,
    make_reporter: MakeReporter,
    spool: Path,
    hours_ago: int,
    api_key: str | None,
) -> None:
    away = make_reporter(NOBODY)
    away.report("data_access", {"n": 1})
    away.close(0)
    tried(spool, at=time.time() - hours_ago * 3600, sender=sender_of(api_key or reported.api_key))

    back = make_reporter(service.address)
    back.flush(0)

    assert eventually(lambda: back.statistics().unsettled == 1)
    assert back.flush(10)
    assert reported.numbers() == []
    assert [path.parent.name for path in files(spool)] == ["unsettled"]


@pytest.mark.usefixtures("patient_end")
def test_another_key_sends_what_never_got_through(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    away = make_reporter(NOBODY, api_key="service_live_another")
    away.report("data_access", {"n": 1})
    away.close(0)

    back = make_reporter(service.address)
    back.flush(0)

    assert eventually(lambda: back.statistics().sent == 1, seconds=30)
    assert reported.numbers() == [1]


@pytest.mark.usefixtures("patient_end")
def test_refusal_does_not_hide_that_an_earlier_try_may_have_got_through(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    """The answer is lost and then the API key is refused: under another key it could be doubled."""
    with between(service.address, Fate.ANSWER_LOST, Canned(401)) as way:
        away = make_reporter(way.address)
        away.report("data_access", {"n": 1})
        assert eventually(lambda: len(way.keys) >= 2)
        away.close(0)

    back = make_reporter(service.address, api_key="service_live_another")
    back.flush(0)

    assert eventually(lambda: back.statistics().unsettled == 1)
    assert reported.numbers() == [1]


@pytest.mark.usefixtures("patient_end")
def test_wrong_key_drops_nothing(
    service: Service, reported: Reported, make_reporter: MakeReporter, spool: Path
) -> None:
    wrong = make_reporter(service.address, api_key="service_live_wrong")
    wrong.report("data_access", {"n": 1})

    assert not wrong.close(1)

    assert len(files(spool)) == 1
    assert (wrong.statistics().rejected, wrong.statistics().dropped) == (0, 0)


def test_failing_callback_stops_nothing(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    def fail(rejected: Rejected) -> None:
        raise RuntimeError(rejected.error)

    reporter = make_reporter(service.address, on_rejected=fail)
    reporter.report("nonsense")  # type: ignore[arg-type]
    reporter.report("data_access", {"n": 1})

    assert reporter.flush(30)
    assert reported.numbers() == [1]


def test_two_processes_never_take_the_same_files(tmp_path: Path) -> None:
    first = Spool(tmp_path, max_bytes=1_000)
    first.append([b'{"n":1}'])
    first.close()
    found: list[int] = []

    spools = [Spool(tmp_path, max_bytes=1_000) for _ in range(8)]
    threads = [Thread(target=lambda one=one: found.append(one.adopt())) for one in spools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(found) == [0] * 7 + [1]
    for spool in spools:
        spool.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")  # since Python 3.12
def test_child_of_a_fork_reports_for_itself(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    with between(service.address, Fate.NO_ANSWER, Fate.PASSED) as way:
        reporter = make_reporter(way.address, timeout=60.0)
        reporter.report("data_access", {"n": 1})
        assert eventually(lambda: len(way.keys) == 1)

        child = forked(reporter)

        way.ended.set()  # the parent's request ends without an answer
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert reporter.flush(60)
    assert sorted(reported.numbers()) == [1, 2]
    assert reporter.statistics().reported == 1


def forked(reporter: Any) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(60)
        reporter.report("data_access", {"n": 2})
        done = reporter.flush(30) and reporter.statistics().sent == 1 and reporter.close(5)
        os._exit(0 if done else 1)
    finally:
        os._exit(2)


@pytest.mark.parametrize(
    "details",
    [
        *({"n": float("nan")}, {("a", 1): 2}, {"text": "x" * 300_000}, [1, 2], "text", 7),
        *({"a": "\x00"}, {"\x00": 1}, {"a": ["\\\x00"]}, {"a": "\ud800"}, {"a": ["x\udc00"]}, {"\udbff": 1}),
    ],
)
def test_what_has_no_json_form_is_dropped_without_an_exception(
    make_reporter: MakeReporter, details: Any
) -> None:
    reporter = make_reporter(NOBODY)

    assert reporter.report("data_access", details) is False
    assert reporter.statistics().dropped == 1


@pytest.mark.parametrize(
    "more",
    [
        {"occurred_at": datetime.now(UTC) + timedelta(days=1)},
        {"occurred_at": datetime(1999, 12, 31, tzinfo=UTC)},
        {"session_id": "s\x00"},
        {"session_id": "s" * 256},
        {"chain_id": "c"},
        {"action_type": "frob"},
    ],
)
def test_what_the_service_refuses_is_refused_at_once(make_reporter: MakeReporter, more: Any) -> None:
    reporter = make_reporter(NOBODY)

    assert reporter.report(**{"action_type": "api_call", **more}) is False
    assert reporter.statistics().dropped == 1


def test_text_that_only_looks_refused_is_stored(
    service: Service, reported: Reported, make_reporter: MakeReporter
) -> None:
    details = {"a": "\\u0000 \\ud800 \U0001f600", "\\\\u0000": "\u2028\n"}
    reporter = make_reporter(service.address)

    assert reporter.report("data_access", details)
    assert reporter.flush(30)
    assert [event.details for event in reported.events()] == [details]


FORKING = """
import os, signal, sys, threading, time
from agentid.reporting import Reporter

def child(n):
    signal.alarm(60)
    done = reporter.report("data_access", {"n": n}), reporter.flush(30), reporter.close(5)
    if not all(done):
        print(n, done, reporter.statistics(), file=sys.stderr, flush=True)
    os._exit(not all(done))

def chatter():
    while not stopped.is_set():
        reporter.report("data_access", {"n": 0})
        time.sleep(0.001)

address, key, agent, spool, stage = sys.argv[1:]
reporter, stopped = Reporter(address, key, agent, spool=spool), threading.Event()
loaded = set(sys.modules)
if stage in ("reported", "flushed"):
    reporter.report("data_access", {"n": 0})
if stage == "flushed":
    assert reporter.flush(30)
if stage == "reporting":
    thread = threading.Thread(target=chatter)
    thread.start()
children = []
for n in range(1, 7):
    found = os.fork()
    if not found:
        if stage == "grandchild":
            again = os.fork()
            if again:
                os._exit(os.waitstatus_to_exitcode(os.waitpid(again, 0)[1]))
        child(n)
    children.append(found)
    time.sleep(0.002 * n)
stopped.set()
codes = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]
if stage == "reporting":
    thread.join()
if stage == "constructed":
    assert threading.active_count() == 1
reporter.report("data_access", {"n": 0})
assert reporter.flush(30)
assert set(sys.modules) == loaded, set(sys.modules) - loaded
sys.exit(any(codes))
"""


@pytest.mark.parametrize("stage", ["constructed", "reported", "reporting", "flushed", "grandchild"])
def test_children_forked_at_any_stage_report(
    service: Service, reported: Reported, tmp_path: Path, stage: str
) -> None:
    """No thread imports, and so none leaves its children a lock that nobody releases."""
    address = service.address.replace("127.0.0.1", "localhost")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, address, reported.api_key, str(reported.agent.id),
         str(tmp_path / "spool"), stage],
        env=os.environ | {"PYTHONPATH": str(Path(agentid.__file__).parents[1])},
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert sorted(set(reported.numbers()) - {0}) == [1, 2, 3, 4, 5, 6]


def test_details_that_contain_themselves_or_fail_are_dropped(make_reporter: MakeReporter) -> None:
    class Failing:
        def __str__(self) -> str:
            raise RuntimeError("no")

    reporter = make_reporter(NOBODY)
    round_trip: dict[str, Any] = {}
    round_trip["self"] = round_trip

    assert reporter.report("data_access", round_trip) is False
    assert reporter.report("data_access", {"a": Failing()}) is False
    assert reporter.report("data_access", occurred_at="yesterday") is False  # type: ignore[arg-type]
