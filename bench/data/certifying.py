"""Agents certified over HTTP, with keys that an earlier run made."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import psycopg

from bench.harness.place import Place
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed

_FREE = """
SELECT id, key_uri, spki, created_at FROM certificates_pooledkey
WHERE key_uri <> ALL(%s::text[]) ORDER BY id LIMIT %s
"""
_POOL = "INSERT INTO certificates_pooledkey (id, key_uri, spki, created_at) VALUES (%s, %s, %s, %s)"


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
    """One connection to the service, over which agents are certified and sign."""

    def __init__(self, place: Place, server: WebServer) -> None:
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {place.api_key}", "Content-Type": "application/json"}

    def certify(self) -> str:
        """Register an agent and certify it; return its id."""
        agent = self._post("/v1/agents", {"name": "bench", "model_hash": "sha256:9f86d0"})
        self._post(f"/v1/agents/{agent['id']}/certify", None)
        return agent["id"]

    def sign(self, agent_id: str) -> None:
        """Have an agent sign a message."""
        self._post(f"/v1/agents/{agent_id}/sign", {"payload": "payload"}, expected=200)

    def _post(self, path: str, body: dict[str, str] | None, *, expected: int = 201) -> dict[str, str]:
        self._connection.request("POST", path, json.dumps(body) if body else None, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != expected:
            raise StepFailed(f"POST {path} answered {answer.status}: {text[:200]!r}", hint="read the log")
        return dict(json.loads(text)["data"])
