"""`./run bench audit`: appends to the audit log, sealing, proofs, tiles and verification, beside peers.

Works in databases of its own and prints tables. docs/benchmarks.md tells what the figures mean.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.audit.appending import appends
from bench.audit.proving import long_logs
from bench.audit.run import AuditOptions, AuditRun
from bench.audit.sealing import lag
from bench.harness import machine, web
from bench.harness.command import ended, tell
from bench.harness.place import find_place
from compliance.localdev.console import say

LONG = ("proofs", "tiles", "verify")
PARTS = ("appends", "lag", *LONG)
AGENTS = 1


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _options(arguments)
    return ended(lambda: _run(options))


def _run(options: AuditOptions) -> int:
    place = find_place()
    run = AuditRun(options, place)
    run.lines.append(machine.described())
    with place.prepared(AGENTS, fresh=False, keep=False):
        web.clear_leftovers(place)
        _measure(run)
    tell(run.lines, run.figures, options.json)
    return 0


def _measure(run: AuditRun) -> None:
    for name, part in (("appends", appends), ("lag", lag)):
        if name in run.options.only:
            say(f"  … {name}")
            part(run)
    if run.options.only & set(LONG):
        long_logs(run)


def _options(arguments: Sequence[str]) -> AuditOptions:
    parser = argparse.ArgumentParser(prog="./run bench audit", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts (%(default)s)")
    parser.add_argument("--turns", type=int, default=15, help="of appends, and of tiles (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn (%(default)s)")
    parser.add_argument("--rate", type=float, default=1_000.0, help="rows a second offered (%(default)s)")
    parser.add_argument("--offered", type=float, default=30.0, help="for so many seconds (%(default)s)")
    parser.add_argument(
        "--dead",
        type=int,
        default=600_000,
        help="sealed rows that the open transaction keeps in the queue: ten minutes' (%(default)s)",
    )
    parser.add_argument(
        "--rows", default="1", help="million entries, as 1,10; 10 take 15 minutes and 10 GB (%(default)s)"
    )
    parser.add_argument("--proofs", type=int, default=2_000, help="random entries proved (%(default)s)")
    parser.add_argument("--json", type=Path, help="write figures to this file, too")
    parsed = parser.parse_args(arguments)
    only = frozenset(parsed.only.split(","))
    if only - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(only - set(PARTS)))}; there are {', '.join(PARTS)}")
    return AuditOptions(
        only=only,
        turns=parsed.turns,
        seconds=parsed.seconds,
        rate=parsed.rate,
        offered=parsed.offered,
        dead=parsed.dead,
        sizes=tuple(round(float(text) * 1e6) for text in parsed.rows.split(",")),
        proofs=parsed.proofs,
        json=parsed.json,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
