"""Certifying over HTTP."""

import time

from bench.data.certifying import AgentClient, certified, take_over_pool, together
from bench.harness import web
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.pki.run import PkiRun
from compliance.localdev.console import step

WARM_CLIENTS = (1, 2, 4)
WARMING = 32
OFFERED = 40
"""Agents a second that the service is meant to certify."""
OFFERED_CONNECTIONS = 16
START_SECONDS = 0.2


def certifying(run: PkiRun) -> None:
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


def _offered(run: PkiRun, server: WebServer, agents: int) -> tuple[list[float], float]:
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
