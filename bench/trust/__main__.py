"""`./run bench trust`: tokens, proofs, signed messages and the gateway's decisions.

Works in databases and tokens of its own and prints tables. docs/benchmarks.md tells what the figures mean.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness import machine, web
from bench.harness.command import ended, tell
from bench.harness.place import Place, find_place
from bench.trust.doors import doors
from bench.trust.gateway import gateway
from bench.trust.limits import limits
from bench.trust.run import TrustOptions, TrustRun
from compliance.localdev.console import say

PARTS = ("limits", "doors", "gateway")
AGENTS = 20


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    parsed = _parsed(arguments)
    options = TrustOptions(
        parsed.seconds, parsed.offered, parsed.turns, frozenset(parsed.only.split(",")), parsed.json
    )
    return ended(lambda: _run(options, fresh=parsed.fresh))


def _run(options: TrustOptions, *, fresh: bool) -> int:
    place = find_place()
    with place.prepared(AGENTS, fresh=fresh, keep=False):
        run = _measured(place, options)
    tell(run.lines, run.figures, options.json)
    return 0


def _measured(place: Place, options: TrustOptions) -> TrustRun:
    """The wanted parts, beside what limits them."""
    web.clear_leftovers(place)
    agents = place.agents(AGENTS)
    with web.service(place) as service:
        run = TrustRun(options, place, service)
        run.lines.append(machine.described())
        found = {}
        if "limits" in options.only:
            say("  … limits")
            found = limits(run)
        if "doors" in options.only:
            say("  … doors")
            doors(run, found, agents)
        if "gateway" in options.only:
            say("  … gateway")
            gateway(run, agents)
        run.lines += ["", f"Load of the machine at the end: {machine.load_average():.1f}"]
    return run


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench trust", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each saturation (%(default)s)")
    parser.add_argument("--offered", type=float, default=20.0, help="seconds of a steady rate (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of each, with medians (%(default)s)")
    parser.add_argument("--json", type=Path, help="write figures to this file, too")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    parsed = parser.parse_args(arguments)
    if unknown := set(parsed.only.split(",")) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return parsed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
