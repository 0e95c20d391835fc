"""Certifying over HTTP."""

import json
import threading
import time
from http.client import HTTPConnection

import psycopg

from bench.harness import web
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.parts.pki_run import PkiRun
from compliance.localdev.console import StepFailed, step

WARM_CLIENTS = (1, 4)
WARMING = 32

_FREE = """
SELECT id, key_uri, spki, created_at FROM certificates_pooledkey
WHERE key_uri <> ALL(%s::text[]) ORDER BY id LIMIT %s
"""
_POOL = "INSERT INTO certificates_pooledkey (id, key_uri, spki, created_at) VALUES (%s, %s, %s, %s)"


def certifying(run: PkiRun) -> None:
    """Register and certify with keys that wait, then without."""
    with step(f"{run.options.certifications + WARMING} keys in the pool"):
        take_over_pool(run, run.options.certifications + WARMING)
    rows = [["register + certify", "agents", "1/s", "p50 ms", "p99 ms", "worst ms"]]
    with web.service(run.place) as server:
        _clients(run, server, WARMING, WARMING // 2)
        for clients in WARM_CLIENTS:
            share = run.options.certifications // len(WARM_CLIENTS)
            name = f"warm pool, {clients} client{'s'[: clients - 1]}"
            rows.append(_row(name, *_clients(run, server, share, clients)))
        rows.append(_row("drained pool, 1 client", *_clients(run, server, run.options.drained, 1)))
    run.tell("Certifying over HTTP, two requests an agent", rows)


def take_over_pool(run: PkiRun, size: int) -> None:
    """So many keys in the pool. They take minutes to make: they are kept with the agents for later runs."""
    kept, mine = (run.place.url(run.place.databases(kind)[0]) for kind in ("agents", "bench"))
    with psycopg.connect(mine) as target:
        found = target.execute(
            "SELECT kms_key_arn FROM certificates_certificate WHERE kms_key_arn LIKE 'pkcs11:%'"
        )
        used = [row[0] for row in found]
        run.place.manage("key_pool_fill", "--environment", "live", "--size", str(size + len(used)))
        with psycopg.connect(kept) as source:
            rows = source.execute(_FREE, [used, size]).fetchall()
        target.execute("TRUNCATE certificates_pooledkey")
        target.cursor().executemany(_POOL, rows)


def _clients(run: PkiRun, server: WebServer, agents: int, clients: int) -> tuple[list[float], float]:
    """Latencies, and how long it took."""
    shares = [agents // clients + (number < agents % clients) for number in range(clients)]
    found: list[float] = []
    failed: list[BaseException] = []

    def work(share: int) -> None:
        try:
            found.extend(_certify(run, server, share))
        except (OSError, StepFailed) as error:
            failed.append(error)

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sorted(found), time.perf_counter() - began


def _certify(run: PkiRun, server: WebServer, agents: int) -> list[float]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {run.place.api_key}", "Content-Type": "application/json"}
    latencies = []

    def post(path: str, body: dict[str, str] | None) -> dict[str, str]:
        connection.request("POST", path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 201:
            raise StepFailed(f"POST {path} answered {answer.status}: {text[:200]!r}", hint="read the log")
        return dict(json.loads(text)["data"])

    for turn in range(agents):
        began = time.perf_counter()
        agent = post("/v1/agents", {"name": f"bench-{turn}", "model_hash": "sha256:9f86d0"})
        post(f"/v1/agents/{agent['id']}/certify", None)
        latencies.append(time.perf_counter() - began)
    return latencies


def _row(name: str, latencies: list[float], seconds: float) -> list[str]:
    quantiles = [percentile(latencies, share) * 1e3 for share in (0.5, 0.99, 1.0)]
    return [name, str(len(latencies)), number(len(latencies) / seconds), *map(number, quantiles)]
