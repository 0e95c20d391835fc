"""`./run bench signals`: how soon three gateways refuse an agent after its third strike.

Works on the running stack. Three gateways follow the feed by push and three by poll, beside a webhook of the
same revocation and a bare POST to the same receiver; with `--feed`, only the client's `RevocationFeed` does.
docs/benchmarks.md tells what each figure means. Exit code 1 when a gateway was not told, 0 otherwise.
"""

import argparse
import base64
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench.harness.command import ended
from bench.harness.stats import percentile
from compliance.localdev.console import StepFailed, say, step
from compliance.localdev.ports import HOST

GATEWAYS: Final = 3
CLIENT: Final = Path(__file__).parents[1] / "sdk" / "src"
FEED: Final = Path(__file__).parent / "trust" / "feed_child.py"
TARGET_MS: Final = 1000.0
ARRIVAL_SECONDS: Final = 30.0
PUSH: Final = "urn:ietf:rfc:8935"
SESSION_REVOKED: Final = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
STRIKE: Final = {"actionType": "unauthorized_access_attempt", "details": {"target": "/etc"}}


@dataclass
class Service:
    """The running stack over HTTP, a connection for each caller."""

    base: str
    key: str

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Make one request; return the answer's JSON. Raises: StepFailed."""
        parts = urlsplit(self.base)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise StepFailed(f"{method} {path}: {answer.status}", hint=text[:200].decode(errors="replace"))
        return json.loads(text) if text else None


@dataclass
class Refusals:
    """When each gateway began to refuse an agent, in seconds of the monotonic clock."""

    at: dict[tuple[str, str], float] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, gateway: str, agent: str) -> None:
        with self.changed:
            self.at.setdefault((gateway, agent), time.monotonic())
            self.changed.notify_all()

    def wait(self, gateways: list[str], agent: str) -> bool:
        """Wait until all of them refuse the agent; return whether they do in time."""
        with self.changed:
            return self.changed.wait_for(
                lambda: all((gateway, agent) in self.at for gateway in gateways), ARRIVAL_SECONDS
            )

    def take(self, gateway: str, token: str) -> None:
        """Refuse the agent of whose stop a Security Event Token tells."""
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        if SESSION_REVOKED in claims["events"] and claims["sub_id"]["format"] == "did":
            self.add(gateway, claims["sub_id"]["url"].rpartition(":")[2])


def receiver(refusals: Refusals) -> ThreadingHTTPServer:
    """A server on a free port: gateways under /push, a webhook under /hook, the bare POST under /bare."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.startswith("/push"):
                refusals.take(self.path, body.decode())
            elif self.path == "/hook":
                refusals.add("/hook", json.loads(body)["data"]["agent_id"])
            elif self.path == "/bare":
                refusals.add("/bare", body.decode())
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def follow(service: Service, stream: str, gateway: str, refusals: Refusals, over: threading.Event) -> None:
    """Poll a stream as a gateway does, until `over`."""
    taken: list[str] = []
    while not over.is_set():
        sets = service.call("POST", f"/v1/ssf/streams/{stream}/poll", {"ack": taken})["sets"]
        for token in sets.values():
            refusals.take(gateway, token)
        taken = list(sets)
        if not sets:
            time.sleep(0.05)


def bare_post(server: ThreadingHTTPServer, refusals: Refusals, name: str) -> float:
    """The milliseconds from a POST's beginning to its receiver's reading it."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(HOST, server.server_address[1], timeout=5)
    connection.request("POST", "/bare", name)
    connection.getresponse().read()
    connection.close()
    return (refusals.at["/bare", name] - began) * 1000


def strike(service: Service) -> tuple[str, float]:
    """Strike a new agent three times; its id, and when the third strike was sent."""
    body = {"name": "struck", "model_hash": "h", "metadata": {"permitted_actions": ["read"]}}
    agent = service.call("POST", "/v1/agents", body)["data"]["id"]
    service.call("POST", f"/v1/agents/{agent}/certify")
    for _ in range(2):
        service.call("POST", "/v1/events", {"agentId": agent, **STRIKE})
    began = time.monotonic()
    service.call("POST", "/v1/events", {"agentId": agent, **STRIKE})
    return agent, began


def note(refusals: Refusals, agents: Iterable[str]) -> None:
    """Note when each agent is named."""
    for line in agents:
        refusals.add("feed", line.strip())


def measure_feed(service: Service, rounds: int) -> int:
    """Print how soon the client's `RevocationFeed` knows of a stop; return how many it did not learn of."""
    if find_spec("httpx") is None:
        raise StepFailed("the client needs httpx", hint="./test --version installs it")
    stream = service.call("POST", "/v1/ssf/streams", {})
    refusals, delays = Refusals(), list[float]()
    arguments = [str(FEED), stream["stream_id"], stream["iss"], stream["aud"]]
    environ = os.environ | {
        "PYTHONPATH": str(CLIENT),
        "AGENTID_BASE_URL": service.base,
        "AGENTID_API_KEY": service.key,
    }
    with subprocess.Popen(
        [sys.executable, *arguments], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as feed:
        if feed.stdin is None or feed.stdout is None or feed.stdout.readline() != "following\n":
            raise StepFailed("the feed did not start", hint="its error is above")
        threading.Thread(target=note, args=(refusals, feed.stdout), daemon=True).start()
        for _ in range(rounds):
            agent, began = strike(service)
            if refusals.wait(["feed"], agent):
                delays.append((refusals.at["feed", agent] - began) * 1000)
        feed.stdin.close()
    service.call("DELETE", f"/v1/ssf/streams?stream_id={stream['stream_id']}")
    p50, most = (percentile(sorted(delays), share) for share in (0.5, 1.0))
    say(f"third strike to RevocationFeed: median {p50:.0f} ms, max {most:.0f} ms, of {len(delays)}")
    return rounds - len(delays)


def measure(service: Service, server: ThreadingHTTPServer, refusals: Refusals, rounds: int) -> int:
    """Strike agents one after the other, print the delays, return how many stops did not arrive."""
    pushes = [f"/push/{number}" for number in range(GATEWAYS)]
    polls = [f"poll {number}" for number in range(GATEWAYS)]
    delays: dict[str, list[float]] = {name: [] for name in ("push", "poll", "webhook", "bare POST")}
    missing = 0
    for number in range(rounds):
        agent, began = strike(service)
        if not refusals.wait([*pushes, *polls, "/hook"], agent):
            missing += 1
            continue
        since = {name: (at - began) * 1000 for (name, whose), at in refusals.at.items() if whose == agent}
        delays["push"].append(max(since[name] for name in pushes))
        delays["poll"].append(max(since[name] for name in polls))
        delays["webhook"].append(since["/hook"])
        delays["bare POST"].append(bare_post(server, refusals, f"bare {number}"))
    for name, found in delays.items():
        p50, p99, most = (percentile(sorted(found), share) for share in (0.5, 0.99, 1.0))
        say(f"{name:<10} p50 {p50:8.1f} ms  p99 {p99:8.1f} ms  max {most:8.1f} ms  of {len(found)}")
    push, hook = (percentile(sorted(delays[name]), 0.99) for name in ("push", "webhook"))
    say(f"third strike to refusal at {GATEWAYS} gateways: p99 {push:.0f} ms, target {TARGET_MS:.0f} ms;")
    say(f"{push / hook:.1f} times the webhook's, which waits for no seal of the audit log")
    return missing


def run(options: argparse.Namespace) -> int:
    service = Service(os.environ["BASE_URL"], os.environ["LIVE_API_KEY"])
    if options.feed:
        with step(f"{options.rounds} agents, three strikes each, followed by RevocationFeed"):
            return int(measure_feed(service, options.rounds) > 0)
    refusals, over = Refusals(), threading.Event()
    server, made = receiver(refusals), list[str]()
    base = f"http://{HOST}:{server.server_address[1]}"
    hook = service.call("POST", "/v1/webhooks", {"url": f"{base}/hook", "events": ["agent.halted"]})["data"][
        "id"
    ]
    try:
        for number in range(GATEWAYS):
            delivery = {"method": PUSH, "endpoint_url": f"{base}/push/{number}"}
            made.append(service.call("POST", "/v1/ssf/streams", {"delivery": delivery})["stream_id"])
            made.append(service.call("POST", "/v1/ssf/streams", {})["stream_id"])
            arguments = (service, made[-1], f"poll {number}", refusals, over)
            threading.Thread(target=follow, args=arguments, daemon=True).start()
        with step(f"{options.rounds} agents, three strikes each"):
            missing = measure(service, server, refusals, options.rounds)
    finally:
        over.set()
        time.sleep(6.0)  # pollers end with their last answer
        for stream in made:
            service.call("DELETE", f"/v1/ssf/streams?stream_id={stream}")
        service.call("DELETE", f"/v1/webhooks/{hook}")
        server.shutdown()
    if missing:
        say(f"{missing} of {options.rounds} stops did not reach every gateway")
    return int(missing > 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench signals", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=100, help="agents to strike (default 100)")
    parser.add_argument("--feed", action="store_true", help="only the client's RevocationFeed, by poll")
    options = parser.parse_args()
    return ended(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
