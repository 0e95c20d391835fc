"""Proofs and tiles of a long log, in the process and over HTTP; `audit_verify` over all of it."""

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from bench.audit.filling import grow
from bench.audit.run import AuditRun, Child
from bench.harness import answers, machine, web
from bench.harness.load import Load, Outcome
from bench.harness.report import number
from bench.harness.traffic import reads
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed, say

CONNECTIONS = 8
STEADY_RATE = 50.0
TILE_LEAVES = 256
_IDS = "SELECT entry_id::text FROM auditlog_leaf WHERE index = ANY(%s)"


def long_logs(run: AuditRun) -> None:
    """Everything that depends on the log's length, at each of the sizes."""
    with run.child() as child:
        for size in run.options.sizes:
            grow(run, child, size)
            if "proofs" in run.options.only:
                proving(run, child, size)
            if "tiles" in run.options.only:
                tiles(run, size)
            if "verify" in run.options.only and _has_verifier(run):
                verifying(run, size)


def _has_verifier(run: AuditRun) -> bool:
    return (run.place.servers.layout.root / "auditlog/management/commands/audit_verify.py").exists()


def proving(run: AuditRun, child: Child, size: int) -> None:
    """Proofs of random entries: the function, one client over HTTP, a steady rate, as many as it can."""
    chosen = random.Random(size).sample(range(size), run.options.proofs)
    ids = [row[0] for row in run.query(_IDS, [chosen])]
    child.ask("prove", ids[:100])
    rows = [["proofs", "1/s", "p50 ms", "p99 ms", "errors"]]
    taken = child.ask("prove", ids)
    rows.append(_row(run, f"proof_{size}", "proofs.proof()", taken, len(taken) / sum(taken), 0))
    source = reads([f"/v1/audit-log/{entry_id}/proof" for entry_id in ids], key=run.place.api_key)
    with web.service(run.place) as server:
        for name, connections, measure in _ways(run):
            outcome = measure(Load(server.port, source, connections=connections, ids=answers.no_ids))
            figure = f"proof_http_{size}" if connections == 1 else f"proof_http_{size}_{name.split()[0]}"
            rows.append(_row(run, figure, name, list(outcome.latencies), outcome.rate, outcome.errors))
    run.tell(f"Proofs in a log of {size:,} entries, load {machine.load_average():.1f}", rows)
    say(f"  … proofs at {size:,}: " + ", ".join(" ".join(row[:4:3]) for row in rows[1:]))


def _ways(run: AuditRun) -> list[tuple[str, int, Callable[[Load], Outcome]]]:
    seconds = run.options.seconds * 2
    return [
        ("HTTP, 1 connection", 1, lambda load: load.closed(seconds)),
        (f"{STEADY_RATE:g}/s offered over HTTP", 16, lambda load: load.offered(STEADY_RATE, seconds)),
        (f"saturation, HTTP, {CONNECTIONS} connections", CONNECTIONS, lambda load: load.closed(seconds)),
    ]


def _row(
    run: AuditRun, figure: str, name: str, latencies: Sequence[float], rate: float, errors: int
) -> list[str]:
    p50, p99 = run.tell_milliseconds(figure, list(latencies))
    return [name, number(rate), number(p50), number(p99), str(errors)]


def tiles(run: AuditRun, size: int) -> None:
    """Full tiles of the lowest level, in turns with a plain Django view that reads the same rows."""
    places = range(size // TILE_LEAVES)
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    with web.service(run.place) as service, web.plain_drf(run.place) as plain:
        contestants: dict[str, tuple[WebServer, list[str]]] = {
            "GET …/tile/0/…": (service, [f"/v1/audit-log/tile/0/{_path(index)}" for index in places]),
            "plain Django view, one row": (plain, [f"/tile/0/{index}" for index in places]),
        }
        for _ in range(run.options.turns):
            for name, (server, paths) in contestants.items():
                random.shuffle(paths)
                source = reads(paths[:1000], key="")
                load = Load(server.port, source, connections=CONNECTIONS, ids=answers.no_ids)
                load.closed(0.5)
                outcomes[name].append(load.closed(run.options.seconds))
    rates = {name: median(one.rate for one in found) for name, found in outcomes.items()}
    ours, rival = rates.values()
    rows = [["tiles, 8 KiB", "1/s", "p50 ms", "p99 ms", "errors", "to plain Django"]]
    for name, found in outcomes.items():
        latencies = [latency for one in found for latency in one.latencies]
        figure = "tile" if rates[name] == ours else "plain_tile"
        errors = sum(one.errors for one in found)
        rows.append([*_row(run, figure, name, latencies, rates[name], errors), f"{rates[name] / rival:.2f}"])
    run.figures |= {"tiles_per_s": ours, "tiles_to_plain": ours / rival}
    run.tell(f"Tiles over HTTP, {CONNECTIONS} connections, medians of {run.options.turns} turns", rows)
    say(f"  … tiles: {ours:,.0f}/s")


def _path(index: int) -> str:
    """The path of a full tile (C2SP tlog-tiles)."""
    groups = f"{index:09d}"
    parts = [groups[:3], groups[3:6], groups[6:]]
    while len(parts) > 1 and parts[0] == "000":
        parts.pop(0)
    return "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])


def verifying(run: AuditRun, size: int) -> None:
    """`audit_verify` over the whole live log; its start is included."""
    root = run.place.servers.layout.root
    command = [sys.executable, str(root / "manage.py"), "audit_verify", "--environment", "live"]
    began = time.monotonic()
    process = subprocess.Popen(
        command, env=run.place.environment(), cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise StepFailed(f"audit_verify ended with {process.returncode}", hint="run it by hand")
    rate, peak = size / seconds, used.ru_maxrss / 1024
    run.figures |= {f"verify_{size}_per_s": rate, f"verify_{size}_mb": peak}
    worked = number(used.ru_utime + used.ru_stime)
    rows = [["audit_verify", "rows/s", "s", "processor s", "peak MB"]]
    rows.append([f"{size:,} entries", *map(number, (rate, seconds)), worked, number(peak)])
    run.tell("The whole log verified", rows)
