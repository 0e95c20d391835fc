"""What clients see of wrapped keys: requests that sign, by turns with each kind of key."""

import time
from itertools import cycle, islice
from statistics import median

import psycopg

from bench.data.certifying import Certifier
from bench.harness import web
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.pki.run import PkiRun
from compliance.localdev.console import say, step

HOT = 8
"""Agents whose keys stay unwrapped while others come and go."""
MISSED = 120
"""Agents that sign in a circle; of the service's processes none keeps so many keys unwrapped."""
REQUESTS = 1_000
TURNS = 5
RESIDENT = """
SELECT agent_id::text FROM certificates_certificate
WHERE status = 'active' AND key_storage = 'resident' AND kms_key_arn LIKE 'pkcs11:%%' LIMIT %s
"""


def signing_requests(run: PkiRun) -> None:
    """`POST /v1/agents/{id}/sign` over one connection."""
    with psycopg.connect(run.place.live_url) as connection:
        resident = [agent for (agent,) in connection.execute(RESIDENT, [HOT])]
    with web.service(run.place, settings={"AGENT_KEYS": "wrapped"}) as server:
        client = Certifier(run.place, server)
        with step(f"{HOT + MISSED} agents with wrapped keys"):
            wrapped = [client.certify() for _ in range(HOT + MISSED)]
        agents = {"resident": resident, "hit": wrapped[:HOT], "miss": wrapped[HOT:]}
        turns = []
        for turn in range(TURNS):
            turns.append(_turn(client, agents))
            say(f"  … turn {turn + 1} of {TURNS}")
    rows = [["key", "p50 ms", "p99 ms", "p50 to resident", "p99 to resident", "least", "most"]]
    for name in agents:
        figures = [median(found[name, share] for found in turns) for share in (0.5, 0.99)]
        ratios = {
            share: sorted(found[name, share] / found["resident", share] for found in turns)
            for share in (0.5, 0.99)
        }
        spread = [median(ratios[0.5]), median(ratios[0.99]), ratios[0.99][0], ratios[0.99][-1]]
        rows.append([name, *map(number, figures), *map(number, spread)])
        run.figures[f"wrapped_{name}_request_p99_ratio"] = median(ratios[0.99])
    run.tell(f"Requests that sign, {REQUESTS:,} of each kind of key in each of {TURNS} turns", rows)


def _turn(client: Certifier, agents: dict[str, list[str]]) -> dict[tuple[str, float], float]:
    """Milliseconds by kind of key and quantile; one request of each kind after the other."""
    circles = {name: cycle(of_kind) for name, of_kind in agents.items()}
    for name in ("resident", "hit"):
        for agent in islice(circles[name], 2 * HOT):
            client.sign(agent)
    latencies: dict[str, list[float]] = {name: [] for name in agents}
    for _ in range(REQUESTS):
        for name, circle in circles.items():
            agent = next(circle)
            began = time.perf_counter()
            client.sign(agent)
            latencies[name].append(time.perf_counter() - began)
    return {
        (name, share): percentile(sorted(found), share) * 1e3
        for name, found in latencies.items()
        for share in (0.5, 0.99)
    }
