"""`./run bench webhooks`: how soon and how fast deliveries reach their receivers, and who waits for whom.

Works in databases of its own on the stack's PostgreSQL; docs/benchmarks.md tells what each figure means. Exit
code 1 when an event that was due did not arrive, 0 otherwise.
"""

import argparse
import http.client
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench.data import outbox
from bench.data.outbox import Outbox, Taken
from bench.harness import machine, web
from bench.harness.command import ended
from bench.harness.place import Place, find_place
from bench.harness.report import Report, Row
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed, say, step
from compliance.localdev.ports import HOST

PARTS = ("latency", "saturation", "dead")
SETTLE_SECONDS = 2.0
ARRIVAL_SECONDS = 30.0


@dataclass
class Run:
    """One run: its place, servers, options and findings."""

    place: Place
    service: WebServer
    outbox: Outbox
    options: argparse.Namespace
    report: Report = field(default_factory=Report)
    missing: int = 0

    def call(self, method: str, path: str, body: object = None) -> int:
        """One request to the service; its status."""
        connection = http.client.HTTPConnection(HOST, self.service.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.place.api_key}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        status = connection.getresponse().status
        connection.close()
        return status

    def wait_for_sender(self, webhook: str) -> None:
        """Until a first event has arrived: a process takes its time to start."""
        self.call("POST", f"/v1/webhooks/{webhook}/test")
        until = time.monotonic() + ARRIVAL_SECONDS
        while not any(one.path == "/ok" for one in self.outbox.taken()):
            if time.monotonic() > until:
                raise StepFailed("the sender sends nothing", hint="read .local/log/bench-sender.log")
            time.sleep(0.1)

    def row(self, name: str, unit: str, value: float, note: str = "") -> None:
        self.report.rows.append(Row(name, unit, value, note=note))

    def latencies(self, name: str, taken: Sequence[Taken], expected: int) -> None:
        """Rows of the time from the event's making, a little before its commit, to the first byte."""
        created = self.outbox.created()
        first: dict[str, float] = {}
        for one in taken:
            first[one.event_id] = min(one.at, first.get(one.event_id, one.at))
        waits = sorted((at - created[event_id]) * 1000 for event_id, at in first.items())
        self.missing += expected - len(first)
        for share, word in ((0.5, "p50"), (0.99, "p99"), (1.0, "max")):
            self.row(f"{name}, {word}", "ms", percentile(waits, share))
        self.report.footer.append(f"{name}: {expected:,} events, {expected - len(first)} did not arrive")


def latency(run: Run) -> None:
    """Revocations over the API, one after the other, one healthy receiver."""
    (webhook,) = run.outbox.register(["/ok"])
    agents = run.place.agents(run.options.agents)
    with psycopg.connect(run.place.live_url) as connection:
        found = connection.execute(
            "SELECT id FROM certificates_certificate WHERE agent_id = ANY(%s::uuid[]) AND status = 'active'",
            [agents],
        ).fetchall()
    with outbox.sender(run.place):
        run.wait_for_sender(webhook)
        revoked = 0
        for (certificate_id,) in found:
            revoked += (
                run.call("POST", f"/v1/certificates/{certificate_id}/revoke", {"reason": "bench"}) == 200
            )
            time.sleep(0.02)
        taken = run.outbox.take_until(revoked, seconds=ARRIVAL_SECONDS)
    run.latencies("revocation to first byte", taken, revoked)


def saturation(run: Run) -> None:
    """Everything is due at once: to one endpoint, then to twenty."""
    for endpoints in (1, 20):
        run.outbox.clear()
        hooks = run.outbox.register([f"/ok/{number}" for number in range(endpoints)])
        run.outbox.fill(hooks, run.options.deliveries)
        run.outbox.taken()
        with outbox.sender(run.place):
            taken = run.outbox.take_until(run.options.deliveries, seconds=run.options.deliveries / 20 + 30)
        times = sorted(one.at for one in taken)
        found = len({one.event_id for one in taken})
        run.missing += run.options.deliveries - found
        rate = (len(times) - 1) / (times[-1] - times[0])
        run.row(f"saturation, {endpoints} endpoint{'s'[: endpoints - 1]}", "1/s", rate)
        run.report.footer.append(
            f"saturation, {endpoints}: {found:,} of {run.options.deliveries:,} events arrived, "
            f"{len(taken) - found} twice"
        )


def dead(run: Run) -> None:
    """Endpoints that were quick now hang or drip, and much is due to them; a healthy one gets its events."""
    paths = [f"/{'hang' if number % 2 else 'drip'}/{number}" for number in range(run.options.dead)]
    hooks = run.outbox.register(paths)
    (healthy,) = run.outbox.register(["/ok"])
    run.outbox.fill(hooks, run.options.due)
    run.outbox.taken()
    sent, arrived = 0, list[Taken]()
    with outbox.sender(run.place):
        run.wait_for_sender(healthy)
        until = time.monotonic() + run.options.dead_seconds
        while time.monotonic() < until:
            sent += run.call("POST", f"/v1/webhooks/{healthy}/test") == 202
            time.sleep(0.05)
        time.sleep(SETTLE_SECONDS)
        taken = run.outbox.taken()
    arrived = [one for one in taken if one.path == "/ok"]
    run.latencies(f"healthy beside {run.options.dead} dead", arrived, sent)
    run.report.footer.append(
        f"dead: {len(taken) - len(arrived):,} attempts at {run.options.dead} endpoints meanwhile, "
        f"{run.options.due:,} deliveries due"
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _parser().parse_args(arguments)
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    place = find_place()
    with place.prepared(options.agents, fresh=options.fresh, keep=options.keep):
        web.clear_leftovers(place)
        run = _measure(place, options)
    sys.stdout.write("\n" + run.report.text())
    if options.json is not None:
        run.report.write_json(options.json)
    return 1 if run.missing else 0


def _measure(place: Place, options: argparse.Namespace) -> Run:
    with outbox.receiver(place) as receiver, web.service(place) as service:
        run = Run(place, service, Outbox(place, receiver), options)
        loops = machine.loops_per_second() / 1e6
        run.report.header += [
            f"Machine     {machine.processor()}, {machine.cores()} cores, load {machine.load_average():.1f} "
            "at the start",
            f"            one core does {loops:.1f} million loops a second ; compare runs by it",
        ]
        for name, part in (("latency", latency), ("saturation", saturation), ("dead", dead)):
            if name in options.only.split(","):
                with step(name):
                    run.outbox.clear()
                    part(run)
                say("  … " + "; ".join(" ".join(row.cells()[:2]) for row in run.report.rows[-3:]))
    return run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run bench webhooks", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, of these (%(default)s)")
    parser.add_argument("--agents", type=int, default=100, help="certificates to revoke (%(default)s)")
    parser.add_argument("--deliveries", type=int, default=6_000, help="due at saturation (%(default)s)")
    parser.add_argument("--dead", type=int, default=100, help="endpoints that hang or drip (%(default)s)")
    parser.add_argument("--due", type=int, default=300_000, help="deliveries due to them (%(default)s)")
    parser.add_argument("--dead-seconds", type=float, default=60.0, help="for so long (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--keep", action="store_true", help="leave the run's databases in place")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
