"""Revocations by one node, verified at once through every node."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

from bench.data.revoked import active_copies
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.nodes.run import NodeClient, NodesRun
from compliance.localdev.console import StepFailed, say, step

TOLD_EVERY = 500
REVOKED = "revoked"


def revoked(run: NodesRun) -> None:
    """Ask each node before a revocation, so that it could have kept the answer, and at once after it."""
    clients = run.clients()
    count = -(-run.options.verifications // len(clients))
    with step(f"{count:,} more certificates"):
        victims = active_copies(run.place.live_url, count)
    said: Counter[str] = Counter()
    latencies: list[float] = []
    revoking = cycle(clients)
    with ThreadPoolExecutor(len(clients)) as threads:
        for done, (serial, certificate) in enumerate(victims.items(), 1):
            path = f"/v1/verify/{serial}"
            before = list(threads.map(lambda client, path=path: _status(client, path)[0], clients))
            if before != ["active"] * len(clients):
                raise StepFailed(f"{serial} was {before} before it was revoked", hint="read the nodes' logs")
            body = {"reason": "bench"}
            status, _ = next(revoking).call("POST", f"/v1/certificates/{certificate}/revoke", body)
            if status != 200:
                raise StepFailed(f"a revocation was answered {status}", hint="read the nodes' logs")
            for found, seconds in threads.map(lambda client, path=path: _status(client, path), clients):
                said[found] += 1
                latencies.append(seconds)
            if done % TOLD_EVERY == 0:
                say(f"  … {done:,} revoked, {said.total():,} verified, {said.total() - said[REVOKED]} stale")
    wrong = said.total() - said[REVOKED]
    run.is_broken |= wrong > 0
    latencies.sort()
    run.tell(
        "Revoked through one node, verified at once through every node",
        [
            ["revocations", "verifications", "stale or failed", "p50 ms", "p99 ms"],
            [
                f"{count:,}",
                f"{said.total():,}",
                str(wrong),
                *(number(percentile(latencies, share) * 1e3) for share in (0.5, 0.99)),
            ],
        ],
    )
    run.lines += [f"answered otherwise: {dict(said)}"] if wrong else []


def _status(client: NodeClient, path: str) -> tuple[str, float]:
    """What a node says of a certificate, and after how many seconds."""
    began = time.perf_counter()
    status, found = client.call("GET", path)
    return str(found.get("status")) if status == 200 else str(status), time.perf_counter() - began
