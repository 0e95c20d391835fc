"""One run: a fresh cluster, steady load, faults, and what came of it."""

import argparse
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg
import requests

from bench.harness.ledger import Ledger
from bench.harness.report import table
from bench.harness.stats import longest_gap
from compliance.localdev.console import StepFailed, say, step
from compliance.localdev.ports import HOST, free_port
from compliance.localdev.servers import processes
from ops.tests.cluster.copies import active_copies
from ops.tests.cluster.faults import NOTHING_FOUND, Fault, Faults, Struck, strike_all
from ops.tests.cluster.lanes import Attempt, Client, Orders
from ops.tests.cluster.rows import PromiseAudit, RowAudit
from ops.tests.cluster.topology import Cluster

WARM_SECONDS = 8.0
SETTLE_SECONDS = 120.0
KINDS = ("event", "verify", "certify", "delegate", "high-risk event", "revoke", "webhook")
VICTIMS_A_SECOND = 2.0
STOPPED_A_SECOND = 0.3


@dataclass
class Receiver:
    """The webhooks' receiver in a process of its own, and what it took: event id and monotonic time."""

    port: int
    process: subprocess.Popen[bytes]
    taken: list[tuple[str, float]] = field(default_factory=list)

    def collect(self) -> None:
        """Fetch what arrived since the last call."""
        offset = time.monotonic() - time.time()
        with urlopen(f"http://{HOST}:{self.port}/taken", timeout=10) as response:
            for line in response.read().decode().splitlines():
                event_id, at, _ = line.split(" ", 2)
                self.taken.append((event_id, float(at) + offset))

    def ids(self) -> set[str]:
        return {event_id for event_id, _ in self.taken}


@dataclass
class Drive:
    """A run on `cluster`, whose data is made anew."""

    cluster: Cluster
    options: argparse.Namespace
    attempts: list[Attempt] = field(default_factory=list)
    flood: dict[str, Any] = field(default_factory=dict)
    struck: list[Struck] = field(default_factory=list)
    promises: list[PromiseAudit] = field(default_factory=list)
    planned: list[Fault] = field(default_factory=list)

    def run(self) -> int:
        """Do all and print it; return 1 if a promise was broken or not tested, 2 if a pause was too long."""
        self.planned = self._plan()
        self.cluster.clear()
        began = time.time()
        with self.cluster.running(), self._receiver() as receiver:
            agents = self._agents()
            self._subscribe(receiver)
            self._drive(agents, receiver)
            self._revoke_many()
            with step("webhooks, seals and lists settle"):
                self._settle(receiver)
            with step("audit of the rows"):
                self.promises = self._audit(receiver, began)
            sys.stdout.write(self._report(receiver))
        is_sound = all(one.holds for one in self.promises) and all(one.hit for one in self.struck)
        if not is_sound:
            return 1
        return 2 if self._late(receiver) else 0

    # --- Before ------------------------------------------------------------------------------------

    @contextmanager
    def _receiver(self) -> Iterator[Receiver]:
        port = free_port()
        command = [sys.executable, "-m", "ops.tests.cluster.receiver", str(port)]
        process = subprocess.Popen(command, cwd=self.cluster.servers.layout.root)
        try:
            yield Receiver(port, process)
        finally:
            process.kill()
            process.wait()

    def _agents(self) -> list[str]:
        with step(f"{self.options.agents} certified agents"):
            command = [sys.executable, "-m", "bench.harness.agents", self.cluster.demo["tenant_id"]]
            done = subprocess.run(
                [*command, str(self.options.agents)],
                env=self.cluster.environment() | {"LOG_LEVEL": "WARNING"},
                cwd=self.cluster.servers.layout.root, stdout=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            raise StepFailed("the agents could not be certified", hint="read the messages above")
        return done.stdout.split()

    def _subscribe(self, receiver: Receiver) -> None:
        names = [
            "agent.created", "certificate.issued", "certificate.revoked", "risk.alert", "agent.suspended",
        ]  # fmt: skip
        body = {"url": f"http://{HOST}:{receiver.port}/ok", "events": names}
        answer = requests.post(
            f"{self.cluster.base_url}/v1/webhooks", json=body,
            headers={"Authorization": f"Bearer {self.cluster.demo['live_api_key']}"}, timeout=30,
        )  # fmt: skip
        if answer.status_code != 201:
            raise StepFailed(f"the webhook was refused: {answer.text}", hint=f"read {self.cluster.log}")

    def _serials(self, agents: Sequence[str]) -> list[str]:
        with psycopg.connect(self.cluster.live_url) as connection:
            rows = connection.execute(
                "SELECT serial_number FROM certificates_certificate"
                " WHERE agent_id = ANY(%s::uuid[]) AND status = 'active'",
                [list(agents)],
            ).fetchall()
        return [str(row[0]) for row in rows]

    def _agents_of(self, serials: Iterable[str]) -> list[str]:
        with psycopg.connect(self.cluster.live_url) as connection:
            rows = connection.execute(
                "SELECT agent_id::text FROM certificates_certificate WHERE serial_number = ANY(%s)",
                [list(serials)],
            ).fetchall()
        return [str(row[0]) for row in rows]

    # --- Load and faults ---------------------------------------------------------------------------

    @property
    def _seconds(self) -> float:
        return float(self.options.minutes) * 60

    def _drive(self, agents: list[str], receiver: Receiver) -> None:
        seconds = self._seconds + WARM_SECONDS
        victims = active_copies(self.cluster.live_url, round(seconds * VICTIMS_A_SECOND))
        stopping = active_copies(self.cluster.live_url, round(seconds * STOPPED_A_SECOND))
        orders = Orders(
            base_url=self.cluster.base_url, nodes=[f"http://{HOST}:{web.port}" for web in self.cluster.webs],
            key=self.cluster.demo["live_api_key"], seconds=seconds, mark=f"chaos-{round(time.time())}-",
            agents=agents, serials=self._serials(agents), stopping=self._agents_of(stopping),
            victims=[(id_, serial) for serial, id_ in victims.items()],
        )  # fmt: skip
        flood = {
            "port": int(self.cluster.base_url.rsplit(":", 1)[1]), "key": orders.key, "agents": orders.agents,
            "rate": self.options.rate, "seconds": orders.seconds,
        }  # fmt: skip
        ended = threading.Event()
        with ThreadPoolExecutor(3) as threads:
            lanes = threads.submit(_child, "ops.tests.cluster.lanes", asdict(orders), self.cluster)
            flooded = threads.submit(_child, "ops.tests.cluster.flood", flood, self.cluster)
            collecting = threads.submit(_collect, receiver, ended)
            try:
                time.sleep(WARM_SECONDS)
                self._strike()
            finally:
                self.attempts = [Attempt(**json.loads(line)) for line in lanes.result().splitlines()]
                self.flood = json.loads(flooded.result())
                (self.cluster.folder / "attempts.json").write_text(lanes.result())
                ended.set()
                collecting.result()

    def _plan(self) -> list[Fault]:
        """Choose the faults; raises `StepFailed` if there is none, or less time for each than it may last."""
        faults = Faults(self.cluster)
        chosen = [one for one in faults.all_of(self.options.rounds) if self.options.only in one.name]
        if not chosen:
            raise StepFailed(f"no fault is called {self.options.only!r}", hint="see --help")
        planned, longest = [faults.nothing(), *chosen], max(one.limit for one in chosen)
        if (every := self._seconds / len(planned)) <= longest:
            text = f"each of {len(chosen)} faults has {every:.0f} s, and may last {longest:.0f} s"
            raise StepFailed(text, hint="give more --minutes or fewer --rounds")
        return planned

    def _strike(self) -> None:
        every = self._seconds / len(self.planned)
        self.struck = strike_all(self.planned, every=every, told=lambda text: say(f"  … {text}"))

    def _revoke_many(self) -> None:
        """Revoke one certificate after the other, and ask each node at once."""
        if not self.options.revocations:
            return
        orders = Orders(
            base_url=self.cluster.base_url, nodes=[f"http://{HOST}:{web.port}" for web in self.cluster.webs],
            key=self.cluster.demo["live_api_key"], seconds=0, mark="", agents=[], serials=[], stopping=[],
            victims=[],
        )  # fmt: skip
        with step(f"{self.options.revocations:,} revocations, each verified through every node"):
            victims = active_copies(self.cluster.live_url, self.options.revocations)
            client = Client(orders, self.attempts.append)
            for serial, id_ in victims.items():
                path = f"/v1/certificates/{id_}/revoke"
                status, _ = client.once("revoke", "POST", path, {"reason": "bench"}, serial=serial)
                for node in orders.nodes if status == 200 else ():
                    began = time.monotonic()
                    kind = "verify a revoked one"
                    status, data = client.once(kind, "GET", f"/v1/verify/{serial}", base=node)
                    if status == 200 and data.get("status") != "revoked":
                        said = {"serial": serial, "said": data.get("status"), "base": node}
                        self.attempts.append(Attempt("stale", began, time.monotonic(), status, said))

    # --- After -------------------------------------------------------------------------------------

    def _settle(self, receiver: Receiver) -> None:
        """Wait until nothing is due any more; the audit tells what is left then."""

        def is_settled() -> bool:
            receiver.collect()
            with psycopg.connect(self.cluster.live_url) as connection:
                row = connection.execute(
                    "SELECT (SELECT count(*) FROM webhooks_delivery WHERE status IN ('pending', 'in_flight'))"
                    " + (SELECT count(*) FROM auditlog_pendingentry)"
                ).fetchone()
            return row is not None and row[0] == 0

        processes.wait_until(is_settled, seconds=SETTLE_SECONDS, pause=1.0)
        receiver.collect()

    def _audit(self, receiver: Receiver, began: float) -> list[PromiseAudit]:
        ledger = Ledger(self.cluster.live_url, self.flood["mark"])
        ids = [one.encode() for one in self.flood["ids"]]
        account = ledger.check("events", ids, since=began, session=self.flood["session"])
        lost = f"{account.lost} lost, {account.doubled} doubled" if not account.holds else ""
        return [
            PromiseAudit(
                "acknowledged is stored: event, once", len(ids), account.lost + account.doubled, lost
            ),
            *RowAudit(self.cluster.live_url, self.attempts).promises(sorted(receiver.ids())),
            self._command("audit log verifies", "audit_verify", "--environment", "live"),
            self._command("revocation lists agree with the rows", "crl_check", "--environment", "live"),
        ]

    def _command(self, promise: str, *arguments: str) -> PromiseAudit:
        try:
            self.cluster.manage(*arguments)
        except StepFailed as failure:
            return PromiseAudit(promise, 1, 1, failure.message)
        return PromiseAudit(promise, 1, 0)

    def _times(self, receiver: Receiver) -> dict[str, list[float]]:
        """Return when each kind of request succeeded, in order."""
        good = {
            kind: [one.ended for one in self.attempts if one.kind == kind and one.is_good] for kind in KINDS
        }
        good |= {"event": self.flood["times"], "webhook": [at for _, at in receiver.taken]}
        return {kind: sorted(times) for kind, times in good.items()}

    def _gaps(self, receiver: Receiver) -> list[dict[str, float]]:
        """Return, for each fault, the longest time without a success of each kind, in seconds."""
        times = self._times(receiver)
        return [
            {kind: longest_gap(times[kind], after=one.began, until=one.until) for kind in KINDS}
            for one in self.struck
        ]

    def _late(self, receiver: Receiver) -> list[str]:
        """Return the kinds of requests that came back too late, in words."""
        return [
            f"{one.fault.name}: {kind} {gap:.1f} s"
            for one, gaps in zip(self.struck, self._gaps(receiver), strict=True)
            for kind, gap in gaps.items()
            if gap > one.fault.limit
        ]

    def _report(self, receiver: Receiver) -> str:
        lines = [["longest time without a success, s", *KINDS, "limit", "errors"]]
        for one, gaps in zip(self.struck, self._gaps(receiver), strict=True):
            errors = sum(one.began <= at.began < one.until and at.is_failed for at in self.attempts)
            lines.append(
                [
                    f"{one.fault.name} ({one.hit or NOTHING_FOUND})",
                    *(f"{gaps[kind]:.1f}" for kind in KINDS),
                    f"{one.fault.limit:.0f}" if math.isfinite(one.fault.limit) else "-",
                    str(errors),
                ]
            )
        rows = [["promise", "tested", "broken", ""]]
        rows += [
            [
                one.promise, f"{one.tested:,}", f"{one.broken:,}",
                "" if one.holds else f"← WRONG {one.examples}",
            ]
            for one in self.promises
        ]  # fmt: skip
        latencies = sorted(self.flood["latencies"])
        middle = latencies[len(latencies) // 2] if latencies else float("nan")
        footer = [
            f"events: {len(self.flood['ids']):,} acknowledged, median {middle * 1000:.0f} ms;"
            f" failed: {self.flood['failures'] or 'none'}",
            *(f"not struck: {text}" for text in Faults(self.cluster).missing()),
            *(f"TOO LATE: {text}" for text in self._late(receiver)),
        ]
        return "\n".join(["", *table(lines), "", *table(rows), "", *footer, ""])


def _child(module: str, orders: dict[str, Any], cluster: Cluster) -> str:
    """Run a module with its orders; return what it printed. It ends by itself."""
    root: Path = cluster.servers.layout.root
    with (cluster.log / f"{module.rpartition('.')[2]}.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", module], cwd=root, input=json.dumps(orders), stdout=subprocess.PIPE,
            stderr=log, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise StepFailed(f"{module} failed", hint=f"read {log.name}")
    return done.stdout


def _collect(receiver: Receiver, stopping: threading.Event) -> None:
    while not stopping.wait(2.0):
        receiver.collect()
