"""`./run bench capacity`: the processor time of each operation by part of the service, and what follows.

Measures with 1, 2 and 4 web processes in databases of its own and derives what a larger installation needs.
With `--measured FILE` it derives from figures that an earlier run wrote, or that a reader did, and measures
nothing. docs/scaling.md tells what the figures mean.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import psycopg

from bench.capacity.measuring import Measuring, Options
from bench.capacity.model import Costs, Plan, Workload, plan, plans
from bench.capacity.tables import document, text
from bench.harness import machine, web
from bench.harness.command import ended
from bench.harness.place import find_place
from compliance.localdev.console import StepFailed
from compliance.localdev.layout import find_layout

WORKLOAD = {
    "nodes": "web nodes",
    "tenants": "tenants",
    "agents": "certified agents",
    "events": "events a second",
    "batched": "share of them that comes in batches, 0 to 1; both are shown without it",
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
    parsed = _parser().parse_args(arguments)
    return ended(lambda: _run(parsed))


def _run(parsed: argparse.Namespace) -> int:
    costs = _measured(parsed) if parsed.measured is None else read(parsed.measured)
    found = _plans(parsed, costs)
    if parsed.document:
        document(find_layout().root / "docs/scaling.md", costs, found)
    sys.stdout.write(text(costs, found))
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(costs.as_json(), indent=2) + "\n")
    return 0


def _plans(parsed: argparse.Namespace, costs: Costs) -> dict[str, Plan]:
    """What is needed, without `--batched` for events that come singly and for the same in batches."""
    given = {name: getattr(parsed, f"want_{name}") for name in WORKLOAD}
    if given["batched"] is None:
        return plans(costs, Workload(**{**given, "batched": 0.0}))
    return {"needed": plan(costs, Workload(**given))}


def _measured(parsed: argparse.Namespace) -> Costs:
    # So that signatures and key generations show as the key host's.
    if os.environ.get("PKCS11_HOSTS", "0") == "0":
        os.environ["PKCS11_HOSTS"] = "1"
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
    told = f"{machine.described(load=load)}, medians of {options.turns} turns" + (
        f", {measuring.failures} requests failed" if measuring.failures else ""
    )
    return replace(costs, measured_on=told)


def read(path: Path) -> Costs:
    """Return the costs that `--json` wrote. Raises StepFailed."""
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
    parser.add_argument("--document", action="store_true", help="write the tables into docs/scaling.md")
    wanted = parser.add_argument_group("what the installation must carry")
    for one in fields(Workload):
        kind = type(one.default)
        wanted.add_argument(
            f"--{one.name.replace('_', '-')}",
            dest=f"want_{one.name}",
            type=kind,
            default=None if one.name == "batched" else one.default,
            help=f"{WORKLOAD[one.name]} (%(default)s)",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
