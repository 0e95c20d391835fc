"""`./run bench trust`: tokens, proofs, signed messages and the gateway's decisions.

Works in databases and tokens of its own and prints tables. docs/benchmarks.md tells what the figures mean.
"""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness import machine, web
from bench.harness.place import Place, find_place
from bench.trust_parts.doors import doors
from bench.trust_parts.gateway import gateway
from bench.trust_parts.limits import limits
from bench.trust_parts.run import TrustOptions, TrustRun
from compliance.localdev.console import StepFailed, complain, say

PARTS = ("limits", "doors", "gateway")
AGENTS = 20


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    parsed = _parsed(arguments)
    options = TrustOptions(
        parsed.seconds, parsed.offered, parsed.turns, frozenset(parsed.only.split(",")), parsed.json
    )
    place = find_place()
    try:
        with place.prepared(AGENTS, fresh=parsed.fresh, keep=False):
            run = _measured(place, options)
    except StepFailed as failure:
        complain(failure)
        return 1
    except KeyboardInterrupt:
        return 130
    sys.stdout.write("\n".join(["", *run.lines, ""]))
    if options.json is not None:
        options.json.write_text(json.dumps(run.figures, indent=2) + "\n")
    return 0


def _measured(place: Place, options: TrustOptions) -> TrustRun:
    """The wanted parts, beside what limits them."""
    web.clear_leftovers(place)
    agents = place.agents(AGENTS)
    with web.service(place) as service:
        run = TrustRun(options, place, service)
        run.lines.append(_machine())
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


def _machine() -> str:
    loops = machine.loops_per_second() / 1e6
    return (
        f"{machine.processor()}, {machine.cores()} cores, load {machine.load_average():.1f} at the start, "
        f"{loops:.1f} million loops a second (plain Python)"
    )


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
