"""`./run bench replay`: how fast and in how much memory a tenant's stored events are replayed.

Fills a database of its own with a history of events, then has `backtest_risk --from-database` replay it with
stored scores and scored anew. The limit is reading the same rows alone. Exit code 1 when a replay exceeds
`--minutes` or `--megabytes`, 0 otherwise.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from bench.data.history import History
from bench.data.ledger import EVENTS
from bench.harness import machine
from bench.harness.command import ended
from bench.harness.place import Place, find_place
from bench.harness.report import table
from compliance.localdev.console import StepFailed, say, step

WAYS: dict[str, dict[str, Any]] = {
    "stored scores": {"strikes": 2},
    "scored anew": {"strikes": 2, "rescore": True},
}
READ = f"""
SELECT id, agent_id, action_type, received_at, risk_score, model_version, details::text FROM {EVENTS}
WHERE tenant_id = %s ORDER BY id
"""
FETCHED = 5_000


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    parsed = _parser().parse_args(arguments)
    return ended(lambda: _run(parsed))


def _run(parsed: argparse.Namespace) -> int:
    place = find_place()
    with place.prepared(parsed.agents, fresh=parsed.fresh, keep=parsed.keep):
        history = History(place, place.agents(parsed.agents), parsed.events)
        with step(f"a history of {parsed.events:,} events"):
            history.make_partitions()
            history.fill(parsed.events)
        limit = _read_alone(place)
        found = {name: _replayed(place, changes) for name, changes in WAYS.items()}
    rows = [["", "seconds", "events/s", "of limit", "processor s", "peak MB"]]
    rows.append(["reading the rows alone", f"{limit:.1f}", f"{parsed.events / limit:,.0f}", "", "", ""])
    for name, (seconds, worked, peak) in found.items():
        rate = f"{parsed.events / seconds:,.0f}"
        rows.append([name, f"{seconds:.1f}", rate, f"{limit / seconds:.0%}", f"{worked:.1f}", f"{peak:.0f}"])
    say(f"\n{machine.described()}")
    say("\n".join(table(rows)))
    holds = all(s <= parsed.minutes * 60 and mb <= parsed.megabytes for s, _, mb in found.values())
    return 0 if holds else 1


def _read_alone(place: Place) -> float:
    """Seconds to read all rows with a server-side cursor, as bytes."""
    began = time.monotonic()
    with psycopg.connect(place.live_url) as connection, connection.cursor("rows", binary=True) as cursor:
        cursor.execute(READ, [place.tenant_id])
        while cursor.fetchmany(FETCHED):
            pass
    return time.monotonic() - began


def _replayed(place: Place, changes: dict[str, Any]) -> tuple[float, float, float]:
    """Seconds, seconds of the processor and peak megabytes of the command, its start included."""
    root = place.servers.layout.root
    with tempfile.TemporaryDirectory() as folder:
        candidate = Path(folder, "candidate.json")
        candidate.write_text(json.dumps(changes))
        command = [sys.executable, str(root / "manage.py"), "backtest_risk", "--from-database", "--json"]
        command += ["--tenant", place.tenant_id, "--candidate", str(candidate)]
        command += ["--checkpoint", str(Path(folder, "checkpoint"))]
        with step(f"replay: {json.dumps(changes)}"):
            began = time.monotonic()
            process = subprocess.Popen(
                command,
                env=place.environment(),
                cwd=root,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise StepFailed(f"the replay ended with {process.returncode}", hint="run backtest_risk by hand")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run bench replay", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="stored events (%(default)s)")
    parser.add_argument("--agents", type=int, default=200, help="certified agents (%(default)s)")
    parser.add_argument("--minutes", type=float, default=5.0, help="most minutes of a replay (%(default)s)")
    parser.add_argument("--megabytes", type=float, default=300.0, help="most memory of it (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the run's databases in place")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
