"""What clients wait for: requests that sign with resident keys, unwrapped ones, and ones to unwrap."""

import re
import time
from itertools import cycle
from random import Random
from statistics import median

from bench.data.certifying import AgentClient
from bench.harness import web
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.pki.run import PkiRun
from bench.pki.wrapped import store_records
from compliance.localdev.console import StepFailed, say, step

UNWRAPPED = 32
"""Keys that the service keeps unwrapped (PKCS11_UNWRAPPED_KEYS)."""
HIT = UNWRAPPED // 4
"""Agents whose keys are used again before as many others were."""
MISSED = 120
"""Agents that sign in a circle: each key has been given up by its next turn. As many have resident keys."""
REQUESTS = 1_000
TURNS = 5
UNWRAPPING = re.compile(
    r'^compliance_hsm_calls_total\{operation="unwrap_and_sign",outcome="ok"\} (\S+)', re.MULTILINE
)


def signing_requests(run: PkiRun) -> None:
    """Ask `POST /v1/agents/{id}/sign` over one connection; the module is in the web worker's process.

    Raises StepFailed where other keys were unwrapped than those that were to be.
    """
    place = run.place
    if place.key_hosts():
        raise StepFailed("key hosts count what they unwrap themselves", hint="unset PKCS11_HOSTS")
    store_records(run)
    with web.service(place) as server, step(f"{MISSED} agents with resident keys"):
        client = AgentClient(place, server)
        agents = {"resident": [client.certify() for _ in range(MISSED)]}
    settings = {"AGENT_KEYS": "wrapped", "PKCS11_UNWRAPPED_KEYS": str(UNWRAPPED)}
    with web.observed(place, settings=settings) as server:
        client = AgentClient(place, server)
        with step(f"{HIT + MISSED} agents with wrapped keys"):
            agents["hit"] = [client.certify() for _ in range(HIT)]
            agents["miss"] = [client.certify() for _ in range(MISSED)]
        # Of each agent the first request finds nothing of it at hand.
        _turn(client, agents, MISSED)
        before, turns = _unwrapped(server), []
        for turn in range(TURNS):
            turns.append(_turn(client, agents, REQUESTS))
            say(f"  … turn {turn + 1} of {TURNS}")
        if (found := _unwrapped(server) - before) != TURNS * REQUESTS:
            raise StepFailed(f"{found:,} keys were unwrapped", hint=f"{TURNS * REQUESTS:,} were to be")
    _tell(run, turns)


def _turn(client: AgentClient, agents: dict[str, list[str]], requests: int) -> dict[str, list[float]]:
    """Seconds of so many requests with each kind of key, in ascending order; the kinds' order varies."""
    circles = {kind: cycle(of_kind) for kind, of_kind in agents.items()}
    latencies: dict[str, list[float]] = {kind: [] for kind in agents}
    chance, kinds = Random(1), list(agents)
    for _ in range(requests):
        chance.shuffle(kinds)
        for kind in kinds:
            agent = next(circles[kind])
            began = time.perf_counter()
            client.sign(agent)
            latencies[kind].append(time.perf_counter() - began)
    return {kind: sorted(found) for kind, found in latencies.items()}


def _tell(run: PkiRun, turns: list[dict[str, list[float]]]) -> None:
    rows = [["key", "p50 ms", "p99 ms", "p50 to resident", "p99 to resident", "least", "most"]]
    for kind in turns[0]:
        figures, ratios = [], {}
        for share in (0.5, 0.99):
            found = [percentile(turn[kind], share) * 1e3 for turn in turns]
            resident = [percentile(turn["resident"], share) * 1e3 for turn in turns]
            figures.append(median(found))
            ratios[share] = sorted(one / peer for one, peer in zip(found, resident, strict=True))
        figures += [median(ratios[0.5]), median(ratios[0.99]), ratios[0.99][0], ratios[0.99][-1]]
        rows.append([kind, *map(number, figures)])
        if kind != "resident":
            run.figures[f"signing_request_{kind}_p99_ratio"] = median(ratios[0.99])
    title = f"Requests that sign, {REQUESTS:,} with each kind of key in each of {TURNS} turns"
    run.tell(f"{title}; least and most of p99 to resident", rows)


def _unwrapped(server: WebServer) -> int:
    """Return how many keys the service has unwrapped."""
    found = UNWRAPPING.search(web.metrics_of(server))
    return int(float(found[1])) if found else 0
