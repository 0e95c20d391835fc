"""`python -m ops.tests.cluster.lanes`: steady requests of each kind, every answer noted with its time.

Reads an `Orders` as JSON from standard input; writes one JSON line for each attempt to standard output. Times
are seconds of the monotonic clock, which all processes of the machine share.
"""

import json
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import requests

from bench.harness.traffic import TOOLS

TIMEOUT_SECONDS = 10.0
PAUSE_SECONDS = 0.2
FINISH_SECONDS = 60.0
"""How long after the end a request that may be repeated is repeated until it is answered."""


@dataclass(frozen=True)
class Orders:
    """What to send where. `stopping`: agents to stop; `victims`: id and serial of certificates to revoke."""

    base_url: str
    nodes: list[str]
    key: str
    seconds: float
    mark: str
    agents: list[str]
    serials: list[str]
    stopping: list[str]
    victims: list[tuple[str, str]]


@dataclass(frozen=True)
class Attempt:
    """One request and what came of it; `found` is what an audit looks for."""

    kind: str
    began: float
    ended: float
    status: int
    found: dict[str, Any] | None = None

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_failed(self) -> bool:
        return self.status == 0 or self.status >= 500


class Client:
    """One lane's requests over connections of its own; 0 is the status of a request without an answer."""

    def __init__(self, orders: Orders, note: Callable[[Attempt], None]) -> None:
        self._orders, self._note = orders, note
        self._session = requests.Session()
        self._session.trust_env = False

    def once(
        self,
        kind: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
        base: str = "",
        **found: Any,
    ) -> tuple[int, Any]:
        """Send a request; note it, with `found` and the answer's id, and return its status and answer."""
        headers = {"Authorization": f"Bearer {self._orders.key}"} | ({"Idempotency-Key": key} if key else {})
        began = time.monotonic()
        try:
            answer = self._session.request(
                method, f"{base or self._orders.base_url}{path}", json=body, headers=headers,
                timeout=TIMEOUT_SECONDS,
            )  # fmt: skip
            status, content = answer.status_code, answer.json() if answer.content else {}
        except (requests.RequestException, ValueError):
            status, content = 0, {}
        data = content.get("data", content) if isinstance(content, dict) else {}
        kept = {name: data[name] for name in ("id", "serial_number", "token_id") if name in data}
        self._note(Attempt(kind, began, time.monotonic(), status, {**found, **kept}))
        return status, data

    def until_answered(
        self, kind: str, method: str, path: str, body: Any, *, key: str, deadline: float, **found: Any
    ) -> Any:
        """Repeat a request under one key until it is answered for good, then once more; return its data."""
        while time.monotonic() < deadline:
            status, data = self.once(kind, method, path, body, key=key, **found)
            if 200 <= status < 300:
                self.once(kind, method, path, body, key=key, **found)
                return data
            if status not in (0, 409, 429) and status < 500:
                return None
            time.sleep(PAUSE_SECONDS)
        return None


class Lanes:
    """All lanes of a run."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._until = time.monotonic() + orders.seconds
        self._finish = self._until + FINISH_SECONDS
        self._lock = threading.Lock()
        self._revoked: list[str] = []

    def run(self) -> None:
        """Drive every lane to its end."""
        lanes: list[tuple[Callable[[Client], None], float]] = [
            (self._verify, 0.1), (self._delegate, 0.3), (self._certify, 1.0), (self._record_once, 0.4),
            (self._stop_agents, 1.0), (self._revoke, 0.5),
        ]  # fmt: skip
        threads = [threading.Thread(target=self._drive, args=lane) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _drive(self, step: Callable[[Client], None], every: float) -> None:
        client = Client(self._orders, self._note)
        due = time.monotonic()
        while time.monotonic() < self._until:
            step(client)
            due = max(due + every, time.monotonic())
            time.sleep(max(0.0, min(due, self._until) - time.monotonic()))

    def _note(self, attempt: Attempt) -> None:
        line = json.dumps(asdict(attempt)) + "\n"
        with self._lock:
            sys.stdout.write(line)
            sys.stdout.flush()

    def _verify(self, client: Client) -> None:
        """Ask of a certificate in force and of one that was revoked, in turn."""
        revoked = bool(self._revoked) and random.random() < 0.5
        serial = random.choice(self._revoked if revoked else self._orders.serials)
        self._ask(client, "verify", serial, revoked=revoked)

    def _ask(self, client: Client, kind: str, serial: str, *, revoked: bool, base: str = "") -> None:
        began = time.monotonic()
        status, data = client.once(kind, "GET", f"/v1/verify/{serial}", base=base)
        if status == 200 and (data.get("status") == "revoked") != revoked:
            said = {"serial": serial, "said": data.get("status"), "revoked": revoked, "base": base}
            self._note(Attempt("stale", began, time.monotonic(), status, said))

    def _delegate(self, client: Client) -> None:
        agent = random.choice(self._orders.agents)
        chain = [{"sub": "alice@example.com", "type": "human"}, {"sub": "bench", "type": "agent"}]
        body = {"chain": chain, "scope": TOOLS[0], "ttl_seconds": 600}
        client.once("delegate", "POST", f"/v1/agents/{agent}/delegation", body)

    def _certify(self, client: Client) -> None:
        name = f"{self._orders.mark}{uuid.uuid4().hex}"
        body = {
            "name": name, "model": "gpt-5", "version": "1.0", "model_hash": "sha256:9f86d081", "metadata": {},
        }  # fmt: skip
        options: dict[str, Any] = {"deadline": self._finish, "name": name}
        made = client.until_answered("register", "POST", "/v1/agents", body, key=name, **options)
        if made is not None:
            path = f"/v1/agents/{made['id']}/certify"
            client.until_answered("certify", "POST", path, {}, key=f"{name}-c", agent=made["id"], **options)

    def _record_once(self, client: Client) -> None:
        session = f"once-{self._orders.mark}{uuid.uuid4().hex}"
        agent = random.choice(self._orders.agents)
        body = {
            "agent_id": agent, "action_type": "api_call", "session_id": session,
            "details": {"tool": TOOLS[0]},
        }  # fmt: skip
        options: dict[str, Any] = {"deadline": self._finish, "session": session}
        client.until_answered("event once", "POST", "/v1/events", body, key=session, **options)

    def _stop_agents(self, client: Client) -> None:
        """Send the next high-risk event of the first agent that is not known to be stopped."""
        if not self._orders.stopping:
            return
        agent = self._orders.stopping[0]
        body = {
            "agent_id": agent,
            "action_type": "unauthorized_access_attempt",
            "details": {"target": "payroll-db"},
        }
        status, _ = client.once("high-risk event", "POST", "/v1/events", body, agent=agent)
        if status == 422:
            self._orders.stopping.pop(0)

    def _revoke(self, client: Client) -> None:
        """Revoke a certificate, and ask every node at once whether it is."""
        if not self._orders.victims:
            return
        certificate, serial = self._orders.victims.pop()
        path = f"/v1/certificates/{certificate}/revoke"
        status, _ = client.once("revoke", "POST", path, {"reason": "bench"}, serial=serial)
        if status == 200:
            for node in self._orders.nodes:
                self._ask(client, "verify a revoked one", serial, revoked=True, base=node)
            self._revoked.append(serial)


def main() -> None:
    """Run the lanes that standard input orders."""
    Lanes(Orders(**json.load(sys.stdin))).run()


if __name__ == "__main__":
    main()
