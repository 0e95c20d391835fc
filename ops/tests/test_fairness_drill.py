"""What others see while one tenant asks for all it may, with ordinary keys, within the rate limits.

Each attack runs against a stack as `./run` starts it. The others' p95 stays within three times the idle one
or 250 ms, a revocation is on its list within 5 s, and no refusal names an outage that there is none of.
"""

import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import count
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from cryptography import x509

from bench.harness.stats import percentile
from compliance.api.exceptions import DATABASE_DOWN
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.stack import Stack
from compliance.tests.waiting import eventually

pytestmark = [pytest.mark.drill, pytest.mark.long]

FACTOR, LEAST_SECONDS, LISTED_SECONDS = 3, 0.25, 5.0
ATTACK_SECONDS = 12.0  # over which the samples beside an attack are spread
LONG_POLL_SECONDS = 5.0
HIGH = "unauthorized_access_attempt"
PUSH = "urn:ietf:rfc:8935"
POLL = "urn:ietf:rfc:8936"


@dataclass
class Client:
    """What one tenant sends with its key, the statuses of its answers, and the words of refusals (5xx)."""

    base: str
    key: str
    answered: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        given = {"Authorization": f"Bearer {self.key}", **headers}
        found = requests.request(method, self.base + path, json=body, headers=given, timeout=60)
        self.answered[found.status_code] += 1
        if found.status_code >= 500:
            self.refused[found.json()["error"]] += 1
        return found

    def data(self, method: str, path: str, body: Any = None) -> Any:
        found = self.send(method, path, body)
        assert found.ok, found.text
        return found.json().get("data")

    def new_agent(self) -> str:
        agent: str = self.data("POST", "/v1/agents", {"name": "drill", "model_hash": "h"})["id"]
        return agent

    def new_stream(self, delivery: dict[str, str]) -> str:
        stream: str = self.send("POST", "/v1/ssf/streams", {"delivery": delivery}).json()["stream_id"]
        return stream


Probe = Callable[[Client], float]
"""Does once what others do; returns its seconds."""
Parts = Sequence[Callable[[], object]]
Attack = Callable[[Client, Client, Event, ExitStack], Parts]
"""Prepares what two tenants do at once, each part over and over until the event is set."""


@pytest.fixture(scope="module")
def new_client(stack: Stack) -> Callable[[], Client]:
    numbers = count()

    def made(command: str, *arguments: str) -> dict[str, Any]:
        ran = stack.run("manage", command, *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout[ran.stdout.index("{") :])
        return found

    def new() -> Client:
        tenant = made("tenant_create", "--name", f"tenant {next(numbers)}")["id"]
        # No agent is stopped by what it does here.
        made("tenant_enforcement", tenant, "observe", "--environment", "live", "--reason", "drill")
        key = made("key_create", "--environment", "live", "--tenant", tenant, "--name", "drill")["key"]
        return Client(stack.exports["BASE_URL"], key)

    return new


@pytest.fixture(scope="module")
def two(new_client: Callable[[], Client]) -> Client:
    return new_client()


@pytest.fixture(scope="module")
def other(new_client: Callable[[], Client]) -> Client:
    return new_client()


def certified_agent(client: Client) -> str:
    agent = client.new_agent()
    client.data("POST", f"/v1/agents/{agent}/certify")
    return agent


def high_events(agent: str, number: int) -> dict[str, Any]:
    return {"events": [{"agent_id": agent, "action_type": HIGH} for _ in range(number)]}


def timed(client: Client, method: str, path: str, body: Any = None) -> float:
    began = time.monotonic()
    found = client.send(method, path, body)
    assert found.ok, (found.status_code, found.text)
    return time.monotonic() - began


# What the hostile tenants do.


def batches(one: Client, two: Client, over: Event, held: ExitStack) -> Parts:
    agent = certified_agent(one)
    return [lambda: one.send("POST", "/v1/events/batch", high_events(agent, 1_000))] * 4


def batches_and_changes(one: Client, two: Client, over: Event, held: ExitStack) -> Parts:
    agent, numbers = certified_agent(one), count()

    def batch() -> None:
        key = {"Idempotency-Key": f"drill {next(numbers)}"}
        one.send("POST", "/v1/events/batch", high_events(agent, 1_000), **key)

    def change() -> None:
        one.send("PATCH", f"/v1/agents/{agent}", {"description": str(next(numbers))})

    return [batch] * 4 + [change] * 30


def reports(one: Client, two: Client, over: Event, held: ExitStack) -> Parts:
    days = count()

    def request() -> None:
        end = date(2026, 9, 30) - timedelta(days=next(days) % 4_000)
        period = {"period_start": str(end - timedelta(days=7)), "period_end": str(end)}
        one.send("POST", "/v1/reports", {"type": "eu_ai_act", **period})
        over.wait(0.14)  # 400 in 7 s by eight

    return [request] * 8


def slow_receivers(one: Client, two: Client, over: Event, held: ExitStack) -> Parts:
    def script(connection: socket.socket, receiver: Any) -> None:
        over.wait(9)
        answer(202, b"")(connection, receiver)

    receiver = held.enter_context(receiving(script))
    for client in (one, two):
        for _ in range(20):
            client.new_stream({"method": PUSH, "endpoint_url": receiver.url})

    def stop_agents(client: Client) -> None:
        agent = certified_agent(client)
        client.data("POST", f"/v1/agents/{agent}/retire", {"reason": "drill"})
        over.wait(1)

    return [lambda: stop_agents(one), lambda: stop_agents(two)]


def slow_downloads(one: Client, two: Client, over: Event, held: ExitStack) -> Parts:
    agent = certified_agent(one)
    for _ in range(3):
        one.send("POST", "/v1/events/batch", high_events(agent, 1_000))
    address = urlsplit(one.base)
    head = f"GET /v1/audit-log/export HTTP/1.1\r\nHost: {address.netloc}\r\n"

    def download() -> None:
        with closing(socket.socket()) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(5)
            client.connect((address.hostname, address.port))
            client.sendall(f"{head}Authorization: Bearer {one.key}\r\n\r\n".encode())
            while not over.wait(0.1) and client.recv(1024):
                pass

    return [download] * 6


def long_polls(one: Client, two: Client, over: Event, held: ExitStack) -> Parts:
    stream = one.new_stream({"method": POLL})

    def poll() -> None:
        refused = one.send("POST", f"/v1/ssf/streams/{stream}/poll", {}).headers.get("Retry-After")
        over.wait(float(refused or 0))

    return [poll] * 8


@contextmanager
def attacked(attack: Attack, one: Client, two: Client) -> Iterator[None]:
    over = Event()

    def repeat(part: Callable[[], object]) -> None:
        while not over.is_set():
            with suppress(requests.RequestException, OSError, AssertionError):
                part()

    with ExitStack() as held:
        parts = attack(one, two, over, held)
        threads = [Thread(target=repeat, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        try:
            time.sleep(1)
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()


# What the others do.


def reads_an_agent(client: Client, held: ExitStack) -> Probe:
    agent = client.new_agent()
    return lambda client: timed(client, "GET", f"/v1/agents/{agent}")


def registers(client: Client, held: ExitStack) -> Probe:
    return lambda client: timed(client, "POST", "/v1/agents", {"name": "drill", "model_hash": "h"})


def sends_a_batch(client: Client, held: ExitStack) -> Probe:
    agent = certified_agent(client)
    body = {"events": [{"agent_id": agent, "action_type": "api_call"}] * 20}
    return lambda client: timed(client, "POST", "/v1/events/batch", body)


def exports(client: Client, held: ExitStack) -> Probe:
    client.new_agent()
    return lambda client: timed(client, "GET", "/v1/audit-log/export")


def is_pushed_to(client: Client, held: ExitStack) -> Probe:
    receiver = held.enter_context(receiving(answer(202, b"")))
    client.new_stream({"method": PUSH, "endpoint_url": receiver.url})

    def probe(client: Client) -> float:
        agent = certified_agent(client)
        known = len(receiver.received)
        client.data("POST", f"/v1/agents/{agent}/retire", {"reason": "drill"})
        began = time.monotonic()
        assert eventually(lambda: len(receiver.received) > known, seconds=60)
        return time.monotonic() - began

    return probe


def polls(client: Client, held: ExitStack) -> Probe:
    """Poll while nothing waits; the seconds by which the poll is too short."""
    stream = client.new_stream({"method": POLL})
    return lambda client: max(
        0.0, LONG_POLL_SECONDS - timed(client, "POST", f"/v1/ssf/streams/{stream}/poll", {})
    )


def seconds_until_listed(client: Client) -> float:
    certificate = client.data("POST", f"/v1/agents/{client.new_agent()}/certify")
    parsed = x509.load_pem_x509_certificate(certificate["certificate_pem"].encode())
    points = parsed.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    assert points[0].full_name
    url = points[0].full_name[0].value
    client.data("POST", f"/v1/certificates/{certificate['id']}/revoke", {"reason": "drill"})
    began = time.monotonic()

    def is_listed() -> bool:
        found = x509.load_der_x509_crl(requests.get(url, timeout=60).content)
        return found.get_revoked_certificate_by_serial_number(parsed.serial_number) is not None

    assert eventually(is_listed, seconds=120)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("attack", "made_probes", "samples"),
    [
        (batches, [sends_a_batch, reads_an_agent], 30),
        (batches_and_changes, [reads_an_agent, registers, sends_a_batch], 30),
        (reports, [reads_an_agent, is_pushed_to], 20),
        (slow_receivers, [is_pushed_to, reads_an_agent], 20),
        (slow_downloads, [exports, reads_an_agent], 30),
        (long_polls, [polls], 4),
    ],
)
def test_others_go_on(
    new_client: Callable[[], Client],
    two: Client,
    other: Client,
    attack: Attack,
    made_probes: Sequence[Callable[[Client, ExitStack], Probe]],
    samples: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = new_client()
    figures = []
    with ExitStack() as held:
        probes = [made(other, held) for made in made_probes]

        def measure(pause: float = 0.0) -> list[float]:
            taken: list[list[float]] = [[] for _ in probes]
            for _ in range(samples):
                for probe, seconds in zip(probes, taken, strict=True):
                    seconds.append(probe(other))
                time.sleep(pause)
            return [percentile(sorted(seconds), 0.95) for seconds in taken]

        idle = measure()
        with attacked(attack, one, two):
            beside, listed = measure(ATTACK_SECONDS / samples), seconds_until_listed(other)
        for made, before, after in zip(made_probes, idle, beside, strict=True):
            bound = max(FACTOR * before, LEAST_SECONDS)
            figures.append((made.__name__, before, after, bound))
    told = [
        f"{name} p95 {after:.3f} s (idle {before:.3f}, at most {bound:.3f})"
        for name, before, after, bound in figures
    ]
    with capsys.disabled():
        told.append(f"revocation listed in {listed:.1f} s")
        told.append(f"attackers' answers {dict(one.answered + two.answered)}, {dict(one.refused)}")
        sys.stdout.write(f"\n{attack.__name__}: {'; '.join(told)}\n")

    assert [one for one in figures if one[2] > one[3]] == []
    assert listed <= LISTED_SECONDS
    assert not other.refused
    assert DATABASE_DOWN not in one.refused
