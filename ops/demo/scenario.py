"""The life of an agent, step by step, each step checked against what the service promises."""

import hashlib
import hmac
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, perf_counter, sleep
from typing import Any

import requests
from django.conf import settings

from compliance.core.environments import Environment
from ops.demo.transcript import Transcript, expect


@dataclass
class Inbox:
    """The envelopes received; `header` names the header that carries the signature."""

    url: str
    header: str
    secret: str = ""
    envelopes: list[dict[str, Any]] = field(default_factory=list)
    rejected: int = 0

    def accept(self, body: bytes, signature: str) -> int:
        """Store an envelope and return the status to answer: 204, or 401 for a wrong signature."""
        expected = "sha256=" + hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, signature):
            self.rejected += 1
            return 401
        self.envelopes.append(json.loads(body))
        return 204

    def wait_for(self, event: str, *, seconds: float) -> dict[str, Any] | None:
        """Return the first envelope of `event`; None if none arrives in time."""
        deadline = monotonic() + seconds
        while True:
            found = next((envelope for envelope in self.envelopes if envelope["event"] == event), None)
            if found is not None or monotonic() > deadline:
                return found
            sleep(0.01)


@contextmanager
def receiver(header: str) -> Iterator[Inbox]:
    """Run a receiver on a free port inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(inbox.accept(body, self.headers.get(header, "")))
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Write no log: the transcript shows what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    inbox = Inbox(f"http://127.0.0.1:{server.server_port}/hooks", header)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield inbox
    finally:
        server.shutdown()
        server.server_close()


ORDINARY_EVENTS = 100
MOST_WAITS = 3
"""Of one request, for other callers of the same address and key."""
PERMITTED = ["read_market_data", "place_order"]
PROFILE = {
    "name": "trade-bot",
    "model": "gpt-5",
    "version": "2.1.0",
    "model_hash": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "metadata": {"permitted_actions": PERMITTED},
}
CHAIN = [
    {"sub": "alice@example.com", "type": "human"},
    {"sub": "trade-bot", "type": "agent"},
    {"sub": "price-checker", "type": "sub_agent"},
]
READ = {"actionType": "data_access", "details": {"tool": "read_market_data", "resource": "prices"}}
CALL = {"actionType": "api_call", "details": {"tool": "place_order", "host": "api.kraken.com"}}
SUBSCRIBED = ["agent.created", "certificate.issued", "certificate.revoked", "risk.alert", "agent.high_risk"]
AUDITED = {
    *("agent.created", "certificate.issued", "agent.activated", "delegation.issued"),
    *("message.signed", "event.high_risk", "certificate.revoked", "agent.suspended"),
}


class DemoClient:
    """Calls the service with a tenant's API key of one environment, or without one where `public` is true."""

    def __init__(self, base_url: str, key: str, environment: Environment) -> None:
        self._base_url = base_url
        self.environment = environment
        self._session = requests.Session()
        # Neither a proxy nor a ~/.netrc of the caller's may come between.
        self._session.trust_env = False
        self._authorization = {"Authorization": f"Bearer {key}"}

    def call(
        self, method: str, path: str, *, status: int = 200, public: bool = False, **options: Any
    ) -> requests.Response:
        """Send a request, again after `Retry-After` where a rate limit asks for it.

        Raises: ExpectationFailed unless the answer has `status`.
        """
        headers = {**({} if public else self._authorization), **options.pop("headers", {})}
        url = self._base_url + path
        answer = self._session.request(method, url, headers=headers, timeout=30, **options)
        for _ in range(MOST_WAITS):
            if answer.status_code != 429 or status == 429:
                break
            seconds = int(answer.headers["Retry-After"])
            sys.stderr.write(f"  … {path} is rate-limited: waiting {seconds} s\n")
            sleep(seconds)
            answer = self._session.request(method, url, headers=headers, timeout=30, **options)
        seen = f"{method} {path} answered {answer.status_code}, not {status}: {answer.text[:200]}"
        expect(answer.status_code == status, seen)
        return answer

    def get(self, path: str, *, public: bool = False, **params: Any) -> Any:
        """Return the `data` that a GET answers."""
        return self.call("GET", path, public=public, params=params).json()["data"]

    def post(self, path: str, body: Any = None, *, status: int = 200, public: bool = False) -> Any:
        """Return the `data` that a POST answers."""
        return self.call("POST", path, status=status, public=public, json=body).json()["data"]


def play(transcript: Transcript, client: DemoClient) -> None:
    """Play every step; raises at the first that does not go as the service promises."""
    with receiver(f"X-{settings.SERVICE_NAME.title()}-Signature") as inbox:
        scenario = Scenario(transcript, client, inbox)
        try:
            scenario.play()
        finally:
            if scenario.webhook:
                client.call("DELETE", f"/v1/webhooks/{scenario.webhook['id']}", status=204)


class Scenario:
    """One agent's life: certified, at work, stopped at its third high-risk event, reinstated."""

    def __init__(self, transcript: Transcript, client: DemoClient, inbox: Inbox) -> None:
        self.step = transcript.step
        self.client = client
        self.inbox = inbox
        self.webhook: dict[str, Any] = {}
        self.agent: dict[str, Any] = {}
        self.certificate: dict[str, Any] = {}
        self.breached_at = 0.0

    def play(self) -> None:
        self._get_certified()
        self._act_as_certified()
        self._breach_the_threshold()
        self._notify_and_publish()
        self._return_to_work()

    @property
    def _path(self) -> str:
        return f"/v1/agents/{self.agent['id']}"

    def _verified(self, serial: str) -> Any:
        return self.client.get(f"/v1/verify/{serial}", public=True)

    def _send(self, event: dict[str, Any]) -> Any:
        return self.client.post("/v1/events", {"agentId": self.agent["id"], **event}, status=201)

    def _get_certified(self) -> None:
        with self.step("Subscribe a webhook on a local receiver") as step:
            body = {"url": self.inbox.url, "events": SUBSCRIBED, "description": "scenario"}
            self.webhook = self.client.post("/v1/webhooks", body, status=201)
            self.inbox.secret = self.webhook["secret"]
            step.note = f"{len(SUBSCRIBED)} event names"
        begun = perf_counter()
        with self.step("Register an agent") as step:
            self.agent = self.client.post("/v1/agents", PROFILE, status=201)
            expect(self.agent["status"] == "pending", f"status is {self.agent['status']}, not pending")
            step.note = self.agent["did"]
        with self.step("Certify it (register + certify)", target=3) as step:
            self.certificate = self.client.post(f"{self._path}/certify", status=201)
            step.seconds = perf_counter() - begun
            step.note = f"serial {self.certificate['serial_number']}"
            expect(self.certificate["status"] == "active", "the certificate is not active")
        with self.step("openssl accepts certificate, chain and CRL") as step:
            step.note = self._openssl_verdict()
            expect(step.note == "OK", f"openssl says: {step.note}")
        with self.step("Anyone verifies it by serial", target=0.5) as step:
            answer = self._verified(self.certificate["serial_number"])
            expect(answer["status"] == "active", f"status is {answer['status']}")
            expect(answer["agent_id"] == self.agent["id"], "another agent is named")
            expect(answer["permitted_actions"] == PERMITTED, "the scope differs from what was registered")
            step.note = f"{answer['status']}, operator {answer['operator']}"

    def _act_as_certified(self) -> None:
        with self.step(f"Stream {ORDINARY_EVENTS} ordinary events (p99)", target=0.2) as step:
            times, bands = [], set()
            for number in range(ORDINARY_EVENTS):
                begun = perf_counter()
                bands.add(self._send(CALL if number % 3 == 0 else READ)["risk_band"])
                times.append(perf_counter() - begun)
            expect("high" not in bands, "an ordinary event was scored high")
            step.seconds = statistics.quantiles(times, n=100)[98]
            step.note = f"median {statistics.median(times) * 1000:.1f} ms"
        with self.step("Issue and verify a delegation token (3 actors)") as step:
            body = {"chain": CHAIN, "scope": "place_order", "ttl_seconds": 600}
            token = self.client.post(f"{self._path}/delegation", body)["token"]
            verified = self.client.post("/v1/delegation/verify", {"token": token}, public=True)
            expect(verified["valid"] is True, f"the token does not verify: {verified}")
            expect(verified["chain"] == CHAIN, "the chain came back changed")
            step.note = verified["chain_display"]
        with self.step("Sign a message; a receiver verifies it") as step:
            payload = {"order": 17, "amount_usd": 250}
            signed = self.client.post(f"{self._path}/sign", {"payload": payload})
            serial = self.certificate["serial_number"]
            proof = {"signature": signed["signature"], "certificate_serial": serial}
            answer, forged = (
                self.client.post("/v1/verify/message", {"payload": sent, **proof}, public=True)
                for sent in (payload, {**payload, "order": 18})
            )
            expect(answer["valid"] is True, f"the signature does not verify: {answer}")
            expect(forged["valid"] is False, "a changed message verified")
            step.note = signed["algorithm"]

    def _breach_the_threshold(self) -> None:
        with self.step("Three high-risk events") as step:
            scores = []
            for target in ("payroll-db", "admin-console", "key-vault"):
                event = {"actionType": "unauthorized_access_attempt", "details": {"target": target}}
                scored = self._send(event)
                expect(scored["risk_band"] == "high", f"scored {scored['risk_score']}, not high")
                scores.append(scored["risk_score"])
            self.breached_at = perf_counter()
            step.note = f"scores {scores}"
        with self.step("Verify shows the certificate revoked", target=60) as step:
            answer = self._verified(self.certificate["serial_number"])
            step.seconds = perf_counter() - self.breached_at
            expect(answer["status"] == "revoked", f"status is {answer['status']}")
            step.note = str(answer["revocation_reason"])
        with self.step("The stopped agent's next event is refused") as step:
            body = {"agentId": self.agent["id"], "actionType": "api_call"}
            step.note = self.client.call("POST", "/v1/events", status=422, json=body).json()["error"]

    def _notify_and_publish(self) -> None:
        with self.step("The webhook certificate.revoked arrives, signed", target=5) as step:
            envelope = self.inbox.wait_for("certificate.revoked", seconds=6) or {"data": {}}
            step.seconds = perf_counter() - self.breached_at
            expect(self.inbox.rejected == 0, "a signature is wrong")
            serial = envelope["data"].get("serial_number", "nothing")
            expect(serial == self.certificate["serial_number"], f"it names {serial}")
            step.note = f"{len(self.inbox.envelopes)} deliveries so far"
        with self.step("The CRL lists it: openssl refuses the certificate", target=60) as step:
            while (verdict := self._openssl_verdict()) == "OK" and perf_counter() - self.breached_at < 60:
                sleep(0.2)
            step.seconds = perf_counter() - self.breached_at
            expect("certificate revoked" in verdict, f"openssl says: {verdict}")
            step.note = "certificate revoked"
        with self.step("The audit log tells the whole story") as step:
            agent_id, entries = self.agent["id"], self.client.get("/v1/audit-log", limit=100)
            audited = [
                entry["event_type"]
                for entry in entries
                if entry["affected_id"] in (agent_id, self.certificate["id"])
                or (entry["metadata"] or {}).get("agent_id") == agent_id
            ]
            missing = AUDITED.difference(audited)
            expect(not missing, f"missing {missing}")
            step.note = f"{len(audited)} entries"

    def _return_to_work(self) -> None:
        with self.step("Reinstate after review, certify anew") as step:
            reinstated = self.client.post(f"{self._path}/reinstate", {"reason": "cause fixed"})
            expect(reinstated["status"] == "pending", "the agent is not pending")
            serial = self.client.post(f"{self._path}/certify", status=201)["serial_number"]
            expect(serial != self.certificate["serial_number"], "the serial number was reused")
            status = self._verified(serial)["status"]
            expect(status == "active", f"the new certificate is {status}")
            step.note = f"serial {serial}"
        with self.step("Suspend puts it on hold, reinstate lifts the hold") as step:
            certificates = self.client.get("/v1/certificates", agent_id=self.agent["id"])
            seen = []
            for verb in ("suspend", "reinstate"):
                self.client.post(f"{self._path}/{verb}", {"reason": "under review"})
                answer = self._verified(certificates[0]["serial_number"])
                seen.append((answer["status"], answer["revocation_reason"], answer["agent_status"]))
            held, released = seen
            expect(held == ("revoked", "certificateHold", "suspended"), f"suspended, it is {held}")
            expect(released == ("active", None, "active"), f"reinstated, it is {released}")
            step.note = "revoked (certificateHold), then active"

    def _openssl_verdict(self) -> str:
        """Return "OK", or what `openssl verify -x509_strict -crl_check` finds wrong."""
        which, text = {"environment": self.client.environment.value}, {"Accept": "text/plain"}
        authorities = self.client.get("/v1/ca", public=True, **which)["certificates"]
        crl = self.client.call("GET", "/v1/crl", public=True, params=which, headers=text)
        texts = {authority["role"]: authority["pem"] for authority in authorities}
        texts |= {"leaf": self.certificate["certificate_pem"], "crl": crl.text}
        with TemporaryDirectory() as folder:
            for name, text in texts.items():
                (Path(folder) / f"{name}.pem").write_text(text)
            command = "openssl verify -x509_strict -crl_check -CAfile root.pem"
            command += " -untrusted issuing.pem -CRLfile crl.pem leaf.pem"
            done = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, check=False)
        return "OK" if done.returncode == 0 else (done.stderr or done.stdout).strip()
