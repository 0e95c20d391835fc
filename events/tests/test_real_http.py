"""Events over real connections to a running stack: bad input, stalled senders, parts killed in mid-burst."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import psycopg
import pytest

from compliance.tests.stack import HEAL_SECONDS, Stack, processes_of
from compliance.tests.waiting import eventually, kill
from events.tests.raw_http import Connection, body_for

pytestmark = [pytest.mark.slow, pytest.mark.drill]

SENDERS = 16
LONG_AGO = "1999-12-31T23:59:59Z"


@pytest.fixture(scope="module")
def agent(stack: Stack) -> str:
    found = stack.new_agent()
    assert stack.certify(found).status_code == 201
    return found


@pytest.fixture
def connect(stack: Stack) -> Iterator[Callable[[], Connection]]:
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(Connection(stack)))


def refused_with_400(agent: str) -> dict[str, bytes]:
    """A body for each way of being wrong."""
    ahead = (datetime.now(UTC) + timedelta(minutes=6)).isoformat()
    good = body_for(agent)[:-1]
    return {
        "spellings that disagree": body_for(agent, action_type="data_access"),
        "details that disagree": body_for(agent, details={"a": 1}, payload={"a": 2}),
        "unknown action type": body_for(agent, actionType="nonsense"),
        "malformed id": body_for("nonsense"),
        "malformed chain": body_for(agent, chainId="0193d2a4"),
        "malformed date": body_for(agent, occurredAt="yesterday"),
        "date ahead": body_for(agent, occurredAt=ahead),
        "date long ago": body_for(agent, occurredAt=LONG_AGO),
        "NUL": good + b', "details": {"a": "\\u0000"}}',
        "raw NUL": good + b', "details": {"a": "\x00"}}',
        "lone surrogate": good + b', "details": {"a": "\\ud800"}}',
        "encoded surrogate": good + b', "details": {"a": "\xed\xa0\x80"}}',
        "NaN": good + b', "details": {"a": NaN}}',
        "Infinity": good + b', "details": {"a": -Infinity}}',
        "1e400": good + b', "details": {"a": 1e400}}',
        "depth": good + b', "details": ' + b'{"a":' * 40 + b"1" + b"}" * 41,
        "abysmal depth": b"[" * 500_000,
        "name twice": good + b', "agentId": "x"}',
        "name twice, escaped": good + b', "agent\\u0049d": "x"}',
        "truncated": good,
        "trailing": good + b"}}",
        "no object": b"[]",
        "empty": b"",
        "not UTF-8": b"\xff\xfe",
        "UTF-16": body_for(agent).decode().encode("utf-16"),
    }


@pytest.mark.parametrize("name", sorted(refused_with_400("")))
def test_bad_body_is_400_and_harms_neither_its_connection_nor_a_neighbour(
    connect: Callable[[], Connection], agent: str, name: str
) -> None:
    bad, neighbour = connect(), connect()
    assert bad.ask(bad.request(body_for(agent))).status == 201

    for raw in (bad.request, bad.chunked):
        neighbour.send(neighbour.request(body_for(agent)))
        refused = bad.ask(raw(refused_with_400(agent)[name]))
        assert refused.status == 400, refused.body
        assert list(json.loads(refused.body)) == ["error"]
        assert neighbour.receive().status == 201
        assert bad.ask(bad.request(body_for(agent))).status == 201


@pytest.mark.parametrize("is_chunked", [False, True], ids=["with a length", "chunked"])
def test_body_over_a_mebibyte_is_413_and_says_that_the_connection_ends(
    connect: Callable[[], Connection], agent: str, is_chunked: bool
) -> None:
    connection, neighbour = connect(), connect()
    body = body_for(agent).ljust(1024 * 1024 + 1)
    raw = connection.chunked(body) if is_chunked else connection.request(body)

    refused = connection.ask(raw)

    assert (refused.status, list(json.loads(refused.body))) == (413, ["error"])
    assert refused.headers["connection"] == "close"
    assert neighbour.ask(neighbour.request(body_for(agent))).status == 201


def test_body_of_exactly_a_mebibyte_is_taken(connect: Callable[[], Connection], agent: str) -> None:
    connection = connect()

    taken = connection.ask(connection.request(body_for(agent).ljust(1024 * 1024)))

    assert taken.status == 201
    assert connection.ask(connection.request(body_for(agent))).status == 201


def test_chunked_event_is_taken_in_pieces_of_any_size(connect: Callable[[], Connection], agent: str) -> None:
    connection, body = connect(), body_for(agent, details={"text": "é" * 100})
    pieces = [body[place : place + 1] for place in range(len(body))]

    replies = [connection.ask(connection.chunked(*pieces)), connection.ask(connection.chunked(body))]

    assert [reply.status for reply in replies] == [201, 201]


@pytest.mark.parametrize(
    "framing", ["zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n", "5\r\n{}extra too long\r\n0\r\n\r\n"]
)
def test_broken_chunks_are_never_an_event_and_harm_no_neighbour(
    connect: Callable[[], Connection], agent: str, framing: str
) -> None:
    broken, neighbour = connect(), connect()
    broken.send(broken.head("Transfer-Encoding: chunked") + framing.encode())
    broken.finish()

    try:
        status = broken.receive().status
    except ConnectionError:
        status = 0

    assert status == 0 or 400 <= status < 500
    assert neighbour.ask(neighbour.request(body_for(agent))).status == 201


def test_body_cut_short_is_never_an_event(connect: Callable[[], Connection], agent: str) -> None:
    broken, neighbour = connect(), connect()
    body = body_for(agent)
    broken.send(broken.head(f"Content-Length: {len(body) + 10}") + body)
    broken.finish()

    try:
        status = broken.receive().status
    except ConnectionError:
        status = 0

    assert status in (0, 400)
    assert neighbour.ask(neighbour.request(body_for(agent))).status == 201


@pytest.mark.parametrize(
    "header", [b"Authorization: Bearer \xff\xfe", b"X-Text: \xff", b"Idempotency-Key: \xff", b"Host: \xff"]
)
def test_header_that_is_no_text_is_no_defect(
    connect: Callable[[], Connection], agent: str, header: bytes
) -> None:
    connection, neighbour = connect(), connect()
    body = body_for(agent)
    line = b"POST /v1/events HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    host = b"" if header.startswith(b"Host") else b"Host: 127.0.0.1\r\n"

    reply = connection.ask(line + host + header + b"\r\n\r\n" + body)

    assert 400 <= reply.status < 500
    assert neighbour.ask(neighbour.request(body_for(agent))).status == 201


def test_pipelined_requests_are_answered_in_their_order(
    connect: Callable[[], Connection], agent: str
) -> None:
    connection = connect()
    bodies = [body_for(agent, details={"number": n}) if n % 5 else b"{" for n in range(20)]

    connection.send(b"".join(connection.request(body) for body in bodies))
    replies = [connection.receive() for _ in bodies]

    assert [reply.status for reply in replies] == [201 if n % 5 else 400 for n in range(20)]
    stored = [reply.data["details"]["number"] for reply in replies if reply.status == 201]
    assert stored == [n for n in range(20) if n % 5]


def test_stalled_senders_hinder_nobody(connect: Callable[[], Connection], agent: str) -> None:
    def others_are_served_meanwhile() -> bool:
        """Return whether they are while no sender has been turned away: a slow machine may take longer."""
        senders = [connect() for _ in range(50)]
        for number, sender in enumerate(senders):
            framing = "Content-Length: 500" if number % 2 else "Transfer-Encoding: chunked"
            sender.send(sender.head(framing) + b'5\r\n{"a":')
        connection = connect()
        statuses = [connection.ask(connection.request(body_for(agent))).status for _ in range(20)]
        assert statuses == [201] * 20
        return not any(sender.has_answer() for sender in senders)

    assert eventually(others_are_served_meanwhile)


@dataclass
class Burst:
    """Senders that note what was acknowledged, and go on when their connection breaks."""

    stack: Stack
    agents: list[str]
    acknowledged: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    is_over: Event = field(default_factory=Event)

    def send(self, number: int) -> None:
        connection: Connection | None = None
        while not self.is_over.is_set():
            try:
                connection = connection or Connection(self.stack)
                reply = connection.ask(connection.request(body_for(self.agents[number % len(self.agents)])))
            except OSError:
                self._drop(connection)
                connection = None
                continue
            self.statuses.add(reply.status)
            if reply.status == 201:
                self.acknowledged.append(reply.data["id"])
            elif reply.headers.get("connection") == "close":
                self._drop(connection)
                connection = None
        self._drop(connection)

    def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            connection.close()
        time.sleep(0.05)


def drill(stack: Stack, agents: list[str], strike: Callable[[Burst], None]) -> Burst:
    """What was sent while `strike` happened in mid-burst, and until the service answered again."""
    burst = Burst(stack, agents)
    with ThreadPoolExecutor(SENDERS) as pool:
        sending = [pool.submit(burst.send, number) for number in range(SENDERS)]
        try:
            assert eventually(lambda: len(burst.acknowledged) > 200, seconds=HEAL_SECONDS)
            strike(burst)
            healed_from = len(burst.acknowledged)
            assert eventually(lambda: len(burst.acknowledged) > healed_from + 200, seconds=30)
        finally:
            burst.is_over.set()
        for sender in sending:
            sender.result()
    return burst


def assert_nothing_lost_or_doubled(stack: Stack, burst: Burst) -> None:
    with psycopg.connect(stack.exports["DATABASE_URL"]) as connection:
        rows = connection.execute(
            "SELECT id::text, count(*) FROM events_behaviorevent WHERE id = ANY(%s::uuid[]) GROUP BY id",
            [burst.acknowledged],
        ).fetchall()
    stored = {row[0] for row in rows}
    assert len(burst.acknowledged) == len(set(burst.acknowledged))
    assert set(burst.acknowledged) <= stored
    assert {row[1] for row in rows} == {1}


@pytest.fixture(scope="module")
def agents(stack: Stack, agent: str) -> list[str]:
    found = [stack.new_agent() for _ in range(3)]
    for other in found:
        assert stack.certify(other).status_code == 201
    return [agent, *found]


def children_of(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found]


def test_killed_web_worker_loses_no_acknowledged_event(stack: Stack, agents: list[str]) -> None:
    servers = processes_of(stack, "gunicorn")
    workers = [process for process in servers if any(process in children_of(other) for other in servers)]
    assert workers

    burst = drill(stack, agents, lambda _: kill(workers[0]))

    assert_nothing_lost_or_doubled(stack, burst)
    assert burst.statuses <= {201, 503}


def test_killed_postgresql_loses_no_acknowledged_event(stack: Stack, agents: list[str]) -> None:
    postmaster = stack.servers.postgres.running()
    assert postmaster is not None

    def kill_and_start(burst: Burst) -> None:
        kill(postmaster)
        assert eventually(lambda: 503 in burst.statuses, seconds=HEAL_SECONDS)
        stack.start("postgres")

    burst = drill(stack, agents, kill_and_start)

    assert_nothing_lost_or_doubled(stack, burst)
    assert burst.statuses <= {201, 503}
    assert 503 in burst.statuses
