"""`./run bench gateway`: what the gateway's decision adds to a request through nginx, and evaluations.

nginx has the documented configuration; behind it is an API that answers at once. The same requests where
nothing is decided are taken off. Evaluations (AuthZEN) of agents with habits are asked for directly.
"""

import argparse
import base64
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import psycopg
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from bench.harness import answers, machine, web
from bench.harness.command import ended, tell
from bench.harness.load import Load, Outcome, Source
from bench.harness.place import find_place
from bench.harness.report import TableRun, number
from bench.harness.stats import percentile
from bench.harness.traffic import TOOLS
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed, say
from compliance.localdev.ports import HOST, free_port
from compliance.localdev.servers.processes import wait_until

AGENTS = 20
NGINX = Path("/usr/sbin/nginx")
API = "api.example"
RATE = 300.0
CONNECTIONS = 64
CLOSED_CONNECTIONS = 16
WARM_SECONDS = 2.0
CALL_SECONDS = 30.0
START_SECONDS = 10.0
PLAIN, SERIAL = "without a decision", "by serial number"
PLAIN_PROVEN, PROVEN = "without a decision, with a proof", "by a token with its DPoP proof"
PLAIN_SIGNED, SIGNED = "without a decision, signed", "by a signature of the request"
BASES = {
    PLAIN: PLAIN, SERIAL: PLAIN, PLAIN_PROVEN: PLAIN_PROVEN, PROVEN: PLAIN_PROVEN,
    PLAIN_SIGNED: PLAIN_SIGNED, SIGNED: PLAIN_SIGNED,
}  # fmt: skip
OPEN, PROTECTED = "/health", "/orders/7"
HABIT = 100  # events of each agent before it is evaluated


class ProofMaker:
    """An agent's key, and a new DPoP proof for each request."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _jwk(self) -> dict[str, str]:
        """The public key, its members in the order of a thumbprint (RFC 7638)."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_b64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"crv": "P-256", "kty": "EC", "x": x, "y": y}

    @property
    def jkt(self) -> str:
        """The key's thumbprint."""
        text = json.dumps(self._jwk, separators=(",", ":"))
        return _b64url(hashlib.sha256(text.encode()).digest())

    def proof(self, url: str, token: str) -> str:
        """A proof for one GET made now."""
        header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self._jwk}
        claims = {"jti": str(uuid4()), "htm": "GET", "htu": url, "iat": int(time.time())}
        claims["ath"] = _b64url(hashlib.sha256(token.encode()).digest())
        text = ".".join(_b64url(json.dumps(part).encode()) for part in (header, claims))
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(SHA256())))
        return f"{text}.{_b64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


class RequestSigner:
    """An agent's Ed25519 key, and a new signature (RFC 9421) for each request."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        x = _b64url(self._key.public_key().public_bytes_raw())
        self.jwk = {"crv": "Ed25519", "kty": "OKP", "x": x}
        self._jkt = _b64url(hashlib.sha256(json.dumps(self.jwk, separators=(",", ":")).encode()).digest())

    def proof(self, url: str) -> str:
        """A DPoP proof for the key's registration."""
        header = {"typ": "dpop+jwt", "alg": "EdDSA", "jwk": self.jwk}
        claims = {"jti": str(uuid4()), "htm": "POST", "htu": url, "iat": int(time.time())}
        text = ".".join(_b64url(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{_b64url(self._key.sign(text.encode()))}"

    def headers(self, path: str) -> str:
        """The lines that sign one GET made now."""
        agent, made_at = '"https://agents.example"', int(time.time())
        params = (
            f'("@method" "@authority" "@path" "signature-agent";key="sig1");created={made_at}'
            f';expires={made_at + 60};keyid="{self._jkt}";nonce="{uuid4().hex}";tag="web-bot-auth"'
        )
        base = (
            f'"@method": GET\n"@authority": {API}\n"@path": {path}\n"signature-agent";key="sig1": {agent}\n'
            f'"@signature-params": {params}'
        )
        value = base64.b64encode(self._key.sign(base.encode())).decode()
        stated = {"Agent": f"sig1={agent}", "Input": f"sig1={params}"}
        lines = [f"Signature-{name}: {text}\r\n" for name, text in stated.items()]
        return "".join([*lines, f"Signature: sig1=:{value}:\r\n"])


def _b64url(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="./run bench gateway", description=__doc__)
    parser.add_argument("--offered", type=float, default=20.0, help="seconds of each turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of each, with medians (%(default)s)")
    parser.add_argument("--json", type=Path, help="write figures to this file, too")
    options = parser.parse_args(arguments)
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    if not NGINX.exists():
        raise StepFailed("nginx was not found", hint="apt-get install nginx-light")
    place = find_place()
    run = TableRun(options, place)
    run.lines.append(machine.described())
    with place.prepared(AGENTS):
        web.clear_leftovers(place)
        with web.service(place) as service:
            _measure(run, service)
            _evaluate(run, service)
    tell(run.lines, run.figures, options.json)
    return 0


def _measure(run: TableRun, service: WebServer) -> None:
    """A steady rate through nginx, in turns."""
    route = {"name": "orders", "credentials": ["serial", "dpop", "httpsig"], "action": TOOLS[0]}
    _post(run, service, "/v1/gateway/routes", route)
    agent = run.place.agents(1)[0]
    sources = {
        PLAIN: cycle([_get(OPEN)]).__next__, SERIAL: _by_serial(run),
        PLAIN_PROVEN: _proven(run, service, agent, OPEN), PROVEN: _proven(run, service, agent, PROTECTED),
        PLAIN_SIGNED: _signed(run, service, agent, OPEN), SIGNED: _signed(run, service, agent, PROTECTED),
    }  # fmt: skip
    outcomes: dict[str, list[Outcome]] = {name: [] for name in sources}
    with _nginx(run, service) as port:
        for turn in range(run.options.turns):
            for name, source in sources.items():
                for seconds in (WARM_SECONDS, run.options.offered):
                    # Made before: a client that signs proofs meanwhile would take the service's processors.
                    ready = iter([source() for _ in range(round(RATE * seconds))])
                    load = Load(port, ready.__next__, connections=CONNECTIONS, ids=answers.no_ids)
                    outcome = load.offered(RATE, seconds)
                outcomes[name].append(outcome)
                say(f"  … turn {turn + 1}, {name}: {outcome.errors} errors")
    _tell(run, outcomes)


def _evaluate(run: TableRun, service: WebServer) -> None:
    """Evaluations at the steady rate, and as many as there can be."""
    requests = []
    for agent in run.place.agents(AGENTS):
        act = {"action_type": "api_call", "details": {"tool": TOOLS[0], "arguments": {"q": "weather"}}}
        _post(run, service, "/v1/events/batch", {"events": [{"agent_id": agent, **act}] * HABIT})
        asked = {"subject": {"type": "agent", "id": agent}, "action": {"name": TOOLS[0]}, "context": act}
        body = json.dumps({**asked, "resource": {"type": "tool", "id": TOOLS[0]}})
        requests.append(
            f"POST /access/v1/evaluation HTTP/1.1\r\nHost: {HOST}\r\n"
            f"Authorization: Bearer {run.place.api_key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
    steady, most = [], []
    for _ in range(run.options.turns):
        source = cycle(requests).__next__
        load = Load(service.port, source, connections=CONNECTIONS, ids=answers.no_ids)
        steady.append(load.offered(RATE, run.options.offered))
        load = Load(service.port, source, connections=CLOSED_CONNECTIONS, ids=answers.no_ids)
        most.append(load.closed(run.options.offered))
    errors = sum(one.errors for one in steady + most)
    p50, p99 = (_quantile(steady, share) for share in (0.5, 0.99))
    rate = median(one.rate for one in most)
    run.figures |= {"evaluation p99 ms": p99, "evaluations 1/s": rate}
    rows = [["evaluations at 300/s, p50 ms", "p99 ms", "most 1/s", "errors"]]
    run.tell("evaluations", [*rows, [number(p50), number(p99), number(rate), str(errors)]])


def _tell(run: TableRun, outcomes: dict[str, list[Outcome]]) -> None:
    rows = [["requests through nginx", "1/s", "p50 ms", "p99 ms", "added p50", "added p99", "errors"]]
    for name, found in outcomes.items():
        measured, base = (
            [_quantile(one, share) for share in (0.5, 0.99)] for one in (found, outcomes[BASES[name]])
        )
        added = [one - other for one, other in zip(measured, base, strict=True)]
        rate, errors = median(one.rate for one in found), sum(one.errors for one in found)
        rows.append([name, *(number(one) for one in (rate, *measured, *added)), str(errors)])
        run.figures[f"gateway {name}, added p99 ms"] = added[1]
    run.tell(f"{RATE:g}/s offered, the API answers at once; medians of {run.options.turns} turns", rows)


def _quantile(outcomes: list[Outcome], share: float) -> float:
    return median(percentile(sorted(one.latencies), share) * 1e3 for one in outcomes)


def _get(path: str, more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {API}\r\n{more}\r\n".encode()


def _by_serial(run: TableRun) -> Source:
    with psycopg.connect(run.place.live_url) as connection:
        rows = connection.execute(
            "SELECT serial_number FROM certificates_certificate WHERE status = 'active'"
        )
        serials = [row[0] for row in rows]
    return cycle([_get(PROTECTED, f"X-{_name(run)}-Cert-Serial: {one}\r\n") for one in serials]).__next__


def _proven(run: TableRun, service: WebServer, agent: str, path: str) -> Callable[[], bytes]:
    """A new proof in each request, for a token bound to its key; to be sent within a minute."""
    maker, url = ProofMaker(), f"http://{API}{path}"
    chain = [{"sub": "alice@example.com", "type": "human"}]
    body = {"chain": chain, "scope": TOOLS[0], "ttl_seconds": 86_400, "dpop_jkt": maker.jkt}
    token = _post(run, service, f"/v1/agents/{agent}/delegation", body)["data"]["token"]
    return lambda: _get(path, f"Authorization: DPoP {token}\r\nDPoP: {maker.proof(url, token)}\r\n")


def _signed(run: TableRun, service: WebServer, agent: str, path: str) -> Callable[[], bytes]:
    """A new signature in each request, by a registered key; to be sent within a minute."""
    signer, keys = RequestSigner(), f"/v1/agents/{agent}/keys"
    proof = signer.proof(f"http://{HOST}:{service.port}{keys}")
    _post(run, service, keys, {"jwk": signer.jwk}, {"DPoP": proof})
    return lambda: _get(path, signer.headers(path))


def _post(
    run: TableRun, service: WebServer, path: str, body: Any, more: Mapping[str, str] | None = None
) -> Any:
    connection = HTTPConnection(HOST, service.port, timeout=CALL_SECONDS)
    headers = {"Authorization": f"Bearer {run.place.api_key}", "Content-Type": "application/json"}
    headers |= more or {}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status not in (200, 201):
        raise StepFailed(f"POST {path} answered {answer.status}: {text!r}", hint="read bench-service.log")
    return json.loads(text)


def _name(run: TableRun) -> str:
    """The name in the service's headers, which follow SERVICE_NAME."""
    return run.place.environment()["SERVICE_NAME"].title()


@contextmanager
def _nginx(run: TableRun, service: WebServer) -> Iterator[int]:
    """nginx as the documentation configures it, in a folder of its own; it is the application, too."""
    port, api = free_port(), free_port()
    text = (run.place.servers.layout.root / "docs/gateway/nginx.conf").read_text()
    application = f"server {{ listen {HOST}:{api}; return 200 ok; }}\n"
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        user = "user root;\n" if Path("/proc/self").stat().st_uid == 0 else ""
        for before, after in {
            "127.0.0.1:8000": f"{HOST}:{service.port}", "127.0.0.1:9000": f"{HOST}:{api}",
            "127.0.0.1:8080": f"{HOST}:{port}", "service.example": HOST, "X-Service-": f"X-{_name(run)}-",
            "x_service_": f"x_{_name(run).lower().replace('-', '_')}_",
            "worker_processes auto;": f"worker_processes 1;\ndaemon off;\n{user}",
            "access_log off;": f"access_log off;\n{temporary}{application}",
        }.items():  # fmt: skip
            text = text.replace(before, after)
        Path(folder, "nginx.conf").write_text(text)
        key = f'map "" $gateway_key {{ default "{run.place.api_key}"; }}\n'
        Path(folder, "gateway-key.conf").write_text(key)
        process = subprocess.Popen([str(NGINX), "-p", folder, "-e", "error.log", "-c", "nginx.conf"])
        try:
            if not wait_until(lambda: web.answers(port, "/"), seconds=START_SECONDS):
                raise StepFailed("nginx did not start", hint=f"read {folder}/error.log")
            yield port
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
