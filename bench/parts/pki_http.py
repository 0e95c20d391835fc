"""Certifying over HTTP."""

import json
import threading
import time
from http.client import HTTPConnection

from bench.harness import web
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.parts.pki_run import PkiRun
from compliance.localdev.console import StepFailed, step

WARM_CLIENTS = 4


def certifying(run: PkiRun) -> None:
    """Register and certify with keys that wait, then without."""
    with step(f"{run.options.certifications} keys in the pool"):
        run.place.manage("key_pool_fill", "--environment", "live", "--size", str(run.options.certifications))
        _take_over_pool(run)
    rows = [["register + certify", "agents", "1/s", "p50 ms", "p99 ms", "worst ms"]]
    with web.service(run.place) as server:
        _certify(run, server, 1)
        warm = run.options.certifications - 1
        rows.append(_row(f"warm pool, {WARM_CLIENTS} clients", *_clients(run, server, warm, WARM_CLIENTS)))
        rows.append(_row("drained pool, 1 client", *_clients(run, server, run.options.drained, 1)))
    run.tell("Certifying over HTTP, two requests an agent", rows)


def _take_over_pool(run: PkiRun) -> None:
    """Keys take minutes to make, so they are kept with the agents, and each run has rows of its own."""
    statements = (
        "COPY (SELECT * FROM certificates_pooledkey ORDER BY created_at LIMIT {}) TO STDOUT".format(
            run.options.certifications
        ),
        "COPY certificates_pooledkey FROM STDIN",
    )
    kept, mine = (run.place.url(run.place.databases(kind)[0]) for kind in ("agents", "bench"))
    with psycopg.connect(kept) as source, psycopg.connect(mine) as target:
        target.execute("TRUNCATE certificates_pooledkey")
        with source.cursor().copy(statements[0]) as out, target.cursor().copy(statements[1]) as into:
            for piece in out:
                into.write(piece)


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
