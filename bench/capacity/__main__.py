"""`./run bench capacity`: the processor time of each operation by part of the service, and what follows.

Measures with 1, 2 and 4 web processes in databases of its own and derives what a larger installation needs.
With `--measured FILE` it derives from figures that an earlier run wrote, or that a reader did, and measures
nothing. docs/scaling.md tells what the figures mean.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import psycopg

from bench.capacity.measuring import Measuring, Options
from bench.capacity.model import Costs, Workload, plan
from bench.capacity.tables import cost_table, plan_table
from bench.harness import machine, web
from bench.harness.place import find_place
from compliance.localdev.console import StepFailed, complain

WORKLOAD = {
    "nodes": "web nodes",
    "tenants": "tenants",
    "agents": "certified agents",
    "events": "events a second",
    "batched": "share of them that comes in batches, 0 to 1",
    "verifications": "verifications a second",
    "deliveries": "webhook deliveries a second",
    "hot_days": "days of events in PostgreSQL",
    "kept_days": "days of events in all; the others are archives",
    "web_threads": "WEB_THREADS",
    "utilisation": "share of a processor that may be busy",
    "writer_processors": "processors of the PostgreSQL primary",
    "writer_wal_mb": "MB/s of write-ahead log that its disk and its standby take",
}


def main(arguments: Sequence[str]) -> int:
    """Measure, derive and print; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    parsed = _parser().parse_args(arguments)
    workload = Workload(**{name: getattr(parsed, f"want_{name}") for name in WORKLOAD})
    try:
        costs = _measured(parsed) if parsed.measured is None else _read(parsed.measured)
    except StepFailed as failure:
        complain(failure)
        return 1
    except KeyboardInterrupt:
        return 130
    lines = ["", *cost_table(costs), "", *plan_table(plan(costs, workload)), ""]
    sys.stdout.write("\n".join(lines))
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(costs.as_json(), indent=2) + "\n")
    return 0


def _measured(parsed: argparse.Namespace) -> Costs:
    # So that signatures and key generations show as the key host's.
    os.environ.setdefault("PKCS11_HOSTS", "1")
    options = Options(
        processes=tuple(int(text) for text in parsed.processes.split(",")),
        turns=parsed.turns,
        seconds=parsed.seconds,
        agents=parsed.measured_agents,
        certificates=parsed.certificates,
        deliveries=parsed.measured_deliveries,
    )
    place = find_place()
    with place.prepared(options.agents, fresh=parsed.fresh, keep=False):
        web.clear_leftovers(place)
        with psycopg.connect(place.live_url, autocommit=True) as connection:
            measuring = Measuring(place, options, connection)
            load = machine.load_average()
            costs = measuring.run()
    sys.stdout.write(
        f"\n{machine.processor()}, {machine.cores()} cores, load {load:.1f} at the start, "
        f"{machine.loops_per_second() / 1e6:.1f} million loops a second (plain Python); "
        f"medians of {options.turns} turns; {measuring.failures} requests failed\n"
    )
    return costs


def _read(path: Path) -> Costs:
    try:
        return Costs.from_json(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StepFailed(f"{path} holds no figures: {error}", hint="make it with --json") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run bench capacity", description=__doc__)
    parser.add_argument("--processes", default="1,2,4", help="web processes (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="of each, with medians (%(default)s)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a turn (%(default)s)")
    parser.add_argument("--measured-agents", type=int, default=200, help="to measure with (%(default)s)")
    parser.add_argument("--certificates", type=int, default=40, help="of a turn (%(default)s)")
    parser.add_argument("--measured-deliveries", type=int, default=1_000, help="of a turn (%(default)s)")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    parser.add_argument("--json", type=Path, help="write what was measured to this file, too")
    parser.add_argument("--measured", type=Path, help="derive from this file and measure nothing")
    wanted = parser.add_argument_group("what the installation must carry")
    for one in fields(Workload):
        kind = type(one.default)
        wanted.add_argument(
            f"--{one.name.replace('_', '-')}",
            dest=f"want_{one.name}",
            type=kind,
            default=one.default,
            help=f"{WORKLOAD[one.name]} (%(default)s)",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
