"""What the gateway's decision adds to a request through nginx, with the documented configuration."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psycopg

from bench.harness import answers, web
from bench.harness.load import Load, Outcome, Source
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.traffic import TOOLS
from bench.trust import calls
from bench.trust.doors import errors_of
from bench.trust.run import TrustRun
from compliance.localdev.console import StepFailed, say
from compliance.localdev.ports import HOST, free_port
from compliance.localdev.servers.processes import wait_until

NGINX = Path("/usr/sbin/nginx")
API = "api.example"
ROUTE = "orders"
RATE = 300.0
CONNECTIONS = 64
WARM_SECONDS = 2.0
START_SECONDS = 10.0
PLAIN, SERIAL = "without a decision", "by serial number"
PLAIN_PROVEN, PROVEN = "without a decision, with a proof", "by a token with its DPoP proof"
BASES = {PLAIN: PLAIN, SERIAL: PLAIN, PLAIN_PROVEN: PLAIN_PROVEN, PROVEN: PLAIN_PROVEN}
"""What is taken off: the same requests where nothing is decided."""
OPEN, PROTECTED = "/health", "/orders/7"


def gateway(run: TrustRun, agents: Sequence[str]) -> None:
    """A steady rate through nginx to an API that does nothing, in turns."""
    route = {"name": ROUTE, "credentials": ["serial", "dpop"], "action": TOOLS[0]}
    status, found = run.call("POST", "/v1/gateway/routes", route)
    if status != 201 or not NGINX.exists():
        run.lines += ["", f"The gateway was not measured: {found if NGINX.exists() else 'no nginx'}"]
        return
    sources = {
        PLAIN: calls.in_turn([_get(OPEN)]),
        SERIAL: _by_serial(run),
        PLAIN_PROVEN: _proven(run, agents[0], OPEN),
        PROVEN: _proven(run, agents[0], PROTECTED),
    }
    outcomes: dict[str, list[Outcome]] = {name: [] for name in sources}
    with web.nothing(run.place) as api, _nginx(run, api.port) as port:
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


def _tell(run: TrustRun, outcomes: dict[str, list[Outcome]]) -> None:
    rows = [["requests through nginx", "1/s", "p50 ms", "p99 ms", "added p50", "added p99", "errors"]]
    for name, found in outcomes.items():
        measured, base = (
            [_quantile(one, share) for share in (0.5, 0.99)] for one in (found, outcomes[BASES[name]])
        )
        added = [one - other for one, other in zip(measured, base, strict=True)]
        rate = median(one.rate for one in found)
        rows.append([name, *(number(one) for one in (rate, *measured, *added)), errors_of(found)])
        run.figures[f"gateway {name}, added p99 ms"] = added[1]
    run.tell(f"{RATE:g}/s offered, the API answers at once; medians of {run.options.turns} turns", rows)


def _quantile(outcomes: list[Outcome], share: float) -> float:
    return median(percentile(sorted(one.latencies), share) * 1e3 for one in outcomes)


def _get(path: str, more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {API}\r\n{more}\r\n".encode()


def _by_serial(run: TrustRun) -> Source:
    with psycopg.connect(run.place.live_url) as connection:
        rows = connection.execute(
            "SELECT serial_number FROM certificates_certificate WHERE status = 'active'"
        )
        serials = [row[0] for row in rows]
    return calls.in_turn([_get(PROTECTED, f"X-{_name(run)}-Cert-Serial: {one}\r\n") for one in serials])


def _proven(run: TrustRun, agent: str, path: str) -> Callable[[], bytes]:
    """A new proof in each request, for a token bound to its key; to be sent within a minute."""
    maker, url = calls.ProofMaker(), f"http://{API}{path}"
    body = {"chain": [calls.ROOT], "scope": TOOLS[0], "ttl_seconds": 86_400, "dpop_jkt": maker.jkt}
    token = run.done("POST", f"/v1/agents/{agent}/delegation", body)["data"]["token"]

    def source() -> bytes:
        proof = maker.proof("GET", url, token)
        return _get(path, f"Authorization: DPoP {token}\r\nDPoP: {proof}\r\n")

    return source


def _name(run: TrustRun) -> str:
    """The name in the service's headers, which follow SERVICE_NAME."""
    return run.place.environment()["SERVICE_NAME"].title()


@contextmanager
def _nginx(run: TrustRun, api: int) -> Iterator[int]:
    """nginx as the documentation configures it, in a folder of its own."""
    port = free_port()
    text = (run.place.servers.layout.root / "docs/gateway/nginx.conf").read_text()
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        user = "user root;\n" if Path("/proc/self").stat().st_uid == 0 else ""
        for before, after in {
            "127.0.0.1:8000": f"{HOST}:{run.service.port}",
            "127.0.0.1:9000": f"{HOST}:{api}",
            "127.0.0.1:8080": f"{HOST}:{port}",
            "service.example": HOST,
            "X-Service-": f"X-{_name(run)}-",
            "x_service_": f"x_{_name(run).lower().replace('-', '_')}_",
            "worker_processes auto;": f"worker_processes 1;\ndaemon off;\n{user}",
            "access_log off;": f"access_log off;\n{temporary}",
        }.items():
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
