"""`./run bench pki`: verifying, certifying and revocation lists.

Works in databases and tokens of its own and prints tables. docs/benchmarks.md says what the figures mean.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness import machine, web
from bench.harness.command import ended, tell
from bench.harness.place import find_place
from bench.harness.report import TableRun
from bench.pki.certify import certifying
from bench.pki.lists import revocation_lists
from bench.pki.verify import verifying
from compliance.localdev.console import say

PARTS = {"certify": certifying, "verify": verifying, "crl": revocation_lists}
AGENTS = 20


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _options(arguments)
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    place = find_place()
    run = TableRun(options, place)
    run.lines.append(machine.described())
    with place.prepared(AGENTS):
        web.clear_leftovers(place)
        for name, part in PARTS.items():
            if name in options.only:
                say(f"  … {name}")
                part(run)
    tell(run.lines, run.figures, options.json)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench pki", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each saturation (%(default)s)")
    parser.add_argument("--offered", type=float, default=20.0, help="seconds of a steady rate (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of verify, with medians (%(default)s)")
    parser.add_argument("--certifications", type=int, default=200, help="with warm pools (%(default)s)")
    parser.add_argument("--drained", type=int, default=30, help="with a drained pool (%(default)s)")
    parser.add_argument(
        "--lists", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="entries (%(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write figures to this file, too")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    if unknown := set(options.only) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
