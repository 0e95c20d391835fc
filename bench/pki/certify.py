"""Certifying over HTTP, with keys that an earlier run made."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import psycopg

from bench.harness import web
from bench.harness.place import Place
from bench.harness.report import TableRun, number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed, step

WARM_CLIENTS = (1, 2, 4)
WARMING = 32
OFFERED = 40
"""Agents a second that the service is meant to certify."""
OFFERED_CONNECTIONS = 16
START_SECONDS = 0.2
_FREE = """
SELECT id, key_uri, spki, created_at FROM certificates_pooledkey
WHERE key_uri <> ALL(%s::text[]) ORDER BY id LIMIT %s
"""
_POOL = "INSERT INTO certificates_pooledkey (id, key_uri, spki, created_at) VALUES (%s, %s, %s, %s)"


def certifying(run: TableRun) -> None:
    """Register and certify with keys that wait, then without."""
    with step(f"{run.options.certifications + WARMING} keys in the pool"):
        take_over_pool(run.place, run.options.certifications + WARMING)
    rows = [["register + certify", "agents", "1/s", "p50 ms", "p99 ms", "worst ms"]]
    share = run.options.certifications // (len(WARM_CLIENTS) + 1)
    with web.service(run.place) as server:
        certified(run.place, server, WARMING, WARMING // 2)
        for clients in WARM_CLIENTS:
            name = f"warm pool, {clients} client{'s'[: clients - 1]}"
            latencies, seconds = certified(run.place, server, share, clients)
            rows.append(_row(name, latencies, seconds))
            run.figures[f"certify_{clients}_clients_p99_ms"] = percentile(latencies, 0.99) * 1e3
        rows.append(_row(f"warm pool, {OFFERED}/s offered", *_offered(run, server, share)))
        rows.append(_row("drained pool, 1 client", *certified(run.place, server, run.options.drained, 1)))
    run.tell("Certifying over HTTP, two requests an agent", rows)


def _offered(run: TableRun, server: WebServer, agents: int) -> tuple[list[float], float]:
    """As `certified`, at a steady rate whether the server keeps up or not; latency counts from the moment an
    agent was due.
    """
    start = time.perf_counter() + START_SECONDS
    turns = iter([start + number / OFFERED for number in range(agents)])

    def work(_: int) -> list[float]:
        client, latencies = AgentClient(run.place, server), []
        for due in turns:
            time.sleep(max(0.0, due - time.perf_counter()))
            client.certify()
            latencies.append(time.perf_counter() - due)
        return latencies

    latencies, seconds = together(work, list(range(OFFERED_CONNECTIONS)))
    return latencies, seconds - START_SECONDS


def _row(name: str, latencies: list[float], seconds: float) -> list[str]:
    quantiles = [percentile(latencies, share) * 1e3 for share in (0.5, 0.99, 1.0)]
    return [name, str(len(latencies)), number(len(latencies) / seconds), *map(number, quantiles)]


def take_over_pool(place: Place, size: int) -> None:
    """So many keys in the pool. They take minutes to make: they are kept with the agents for later runs."""
    kept, mine = (place.url(place.databases(kind)[0]) for kind in ("agents", "bench"))
    with psycopg.connect(mine) as target:
        found = target.execute(
            "SELECT kms_key_arn FROM certificates_certificate"
            " WHERE kms_key_arn LIKE 'pkcs11:%' AND key_storage = 'resident'"
        )
        used = [row[0] for row in found]
        place.manage("key_pool_fill", "--environment", "live", "--size", str(size + len(used)))
        with psycopg.connect(kept) as source:
            rows = source.execute(_FREE, [used, size]).fetchall()
        target.execute("TRUNCATE certificates_pooledkey")
        target.cursor().executemany(_POOL, rows)


def certified(place: Place, server: WebServer, agents: int, clients: int) -> tuple[list[float], float]:
    """Latencies of clients that certify one agent after the other, and how long it took."""
    shares = [agents // clients + (number < agents % clients) for number in range(clients)]

    def work(share: int) -> list[float]:
        client, latencies = AgentClient(place, server), []
        for _ in range(share):
            began = time.perf_counter()
            client.certify()
            latencies.append(time.perf_counter() - began)
        return latencies

    return together(work, shares)


def together(work: Callable[[int], list[float]], shares: list[int]) -> tuple[list[float], float]:
    """Do every share at once; all latencies, sorted, and how long it took."""
    began = time.perf_counter()
    with ThreadPoolExecutor(len(shares)) as threads:
        found = sorted(latency for part in threads.map(work, shares) for latency in part)
    return found, time.perf_counter() - began


class AgentClient:
    """One connection to the service, over which agents are certified."""

    def __init__(self, place: Place, server: WebServer) -> None:
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {place.api_key}", "Content-Type": "application/json"}

    def certify(self) -> str:
        """Register an agent and certify it; return its id."""
        agent = self._post("/v1/agents", {"name": "bench", "model_hash": "sha256:9f86d0"})
        self._post(f"/v1/agents/{agent['id']}/certify", None)
        return agent["id"]

    def _post(self, path: str, body: dict[str, str] | None) -> dict[str, str]:
        self._connection.request("POST", path, json.dumps(body) if body else None, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 201:
            raise StepFailed(f"POST {path} answered {answer.status}: {text[:200]!r}", hint="read the log")
        return dict(json.loads(text)["data"])
