"""From a revocation to the published list that carries it, through the real web server and worker."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from bench.data.revoked import Crowd
from bench.harness import web
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.pki.run import PkiRun
from compliance.localdev.console import StepFailed, say, step
from compliance.localdev.ports import HOST

SINGLE = 60
STORM = 1_000
STORM_CLIENTS = 8
LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 60.0


class Watch:
    """Looks at the published list as a relying party would, and notes when it first sees each serial."""

    def __init__(self, port: int) -> None:
        self.seen: dict[str, float] = {}
        self.lists = 0
        self._waiting: set[str] = set()
        self._connection = HTTPConnection(HOST, port, timeout=30)
        self._etag = ""

    def expect(self, serials: list[str]) -> None:
        self._waiting.update(serials)

    def look(self) -> None:
        """Fetch the list if it has changed."""
        self._connection.request("GET", "/v1/crl", headers={"If-None-Match": self._etag})
        answer = self._connection.getresponse()
        body, at = answer.read(), time.perf_counter()
        if answer.status != 200:
            return
        self.lists += 1
        self._etag = answer.headers["ETag"]
        there = {serial for serial in self._waiting if bytes.fromhex(serial) in body}
        self._waiting -= there
        self.seen.update(dict.fromkeys(there, at))

    def until_seen(self) -> None:
        """Look until all that is expected was seen."""
        deadline = time.perf_counter() + PATIENCE_SECONDS
        while self._waiting and time.perf_counter() < deadline:
            self.look()
            time.sleep(LOOK_SECONDS)
        if self._waiting:
            raise StepFailed(f"{len(self._waiting)} revocations are on no list", hint="read the worker's log")


def revoking(run: PkiRun) -> None:
    """One by one, then a thousand at once."""
    with step(f"{SINGLE + STORM + 1:,} active certificates"):
        there = list(Crowd(run.place).active(SINGLE + STORM + 1).items())
    rows = [["revoked over HTTP", "revocations", "1/s", "p50 s", "p99 s", "max s", "lists seen"]]
    with web.service(run.place) as server, _worker(run):
        watch = Watch(server.port)
        _one_by_one(run, server, watch, there[:1])
        say("  … one by one")
        rows.append(_row("one by one", *_one_by_one(run, server, watch, there[1 : SINGLE + 1])))
        say("  … storm")
        rows.append(
            _row(f"at once, {STORM_CLIENTS} clients", *_storm(run, server, watch, there[SINGLE + 1 :]))
        )
    run.tell("From the request to revoke to the published list, which is looked at every 20 ms", rows)


Told = tuple[list[float], float, int]
"""Seconds until each was seen, how long the revoking took, and how many lists were seen."""


def _one_by_one(run: PkiRun, server: WebServer, watch: Watch, chosen: list[tuple[str, str]]) -> Told:
    waits, lists, began = list[float](), watch.lists, time.perf_counter()
    connection = HTTPConnection(HOST, server.port, timeout=30)
    for serial, certificate_id in chosen:
        watch.expect([serial])
        asked = time.perf_counter()
        _revoke(run, connection, certificate_id)
        watch.until_seen()
        waits.append(watch.seen[serial] - asked)
    return waits, time.perf_counter() - began, watch.lists - lists


def _storm(run: PkiRun, server: WebServer, watch: Watch, chosen: list[tuple[str, str]]) -> Told:
    asked: dict[str, float] = {}
    failed: list[BaseException] = []

    def work(mine: list[tuple[str, str]]) -> None:
        connection = HTTPConnection(HOST, server.port, timeout=30)
        try:
            for serial, certificate_id in mine:
                asked[serial] = time.perf_counter()
                _revoke(run, connection, certificate_id)
        except (OSError, StepFailed) as error:
            failed.append(error)

    watch.expect([serial for serial, _ in chosen])
    lists, began = watch.lists, time.perf_counter()
    threads = [
        threading.Thread(target=work, args=(chosen[number::STORM_CLIENTS],))
        for number in range(STORM_CLIENTS)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        watch.look()
        time.sleep(LOOK_SECONDS)
    seconds = time.perf_counter() - began
    if failed:
        raise failed[0]
    watch.until_seen()
    return [watch.seen[serial] - at for serial, at in asked.items()], seconds, watch.lists - lists


def _revoke(run: PkiRun, connection: HTTPConnection, certificate_id: str) -> None:
    headers = {"Authorization": f"Bearer {run.place.api_key}", "Content-Type": "application/json"}
    body = json.dumps({"reason": "keyCompromise"})
    connection.request("POST", f"/v1/certificates/{certificate_id}/revoke", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise StepFailed(f"revoking answered {answer.status}: {text[:200]!r}", hint="read the log")


@contextmanager
def _worker(run: PkiRun) -> Iterator[None]:
    command = web.part("worker", run.place, port=0)
    with web.started("worker", command, run.place.environment(), run.place):
        yield


def _row(name: str, waits: list[float], seconds: float, lists: int) -> list[str]:
    ordered = sorted(waits)
    quantiles = [number(percentile(ordered, share)) for share in (0.5, 0.99, 1.0)]
    return [name, str(len(waits)), number(len(waits) / seconds), *quantiles, str(lists)]
