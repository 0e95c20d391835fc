"""`./run bench pki`: keys, certificates, revocation and verification, beside what limits them.

Works in databases and tokens of its own and prints tables. docs/benchmarks.md tells what the figures mean.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness import machine, web
from bench.harness.command import ended, tell
from bench.harness.place import find_place
from bench.pki.certify import certifying
from bench.pki.keys import key_growth, signing
from bench.pki.lists import issuing, revocation_lists
from bench.pki.ocsp import asking
from bench.pki.revoking import revoking
from bench.pki.run import PkiOptions, PkiRun
from bench.pki.signing_requests import signing_requests
from bench.pki.verify import verifying
from bench.pki.wrapped import wrapped_keys
from compliance.localdev.console import say

PARTS = {
    "sign": signing,
    "growth": key_growth,
    "wrapped": wrapped_keys,
    "certify": certifying,
    "verify": verifying,
    "ocsp": asking,
    "revoke": revoking,
    "issue": issuing,
    "crl": revocation_lists,
    # Last, as it leaves agents and events behind.
    "requests": signing_requests,
}
AGENTS = 20


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _options(arguments)
    return ended(lambda: _run(options))


def _run(options: PkiOptions) -> int:
    place = find_place()
    run = PkiRun(options, place)
    run.lines.append(machine.described())
    with place.prepared(AGENTS, fresh=False, keep=False):
        web.clear_leftovers(place)
        for name, part in PARTS.items():
            if name in options.only:
                say(f"  … {name}")
                part(run)
    tell(run.lines, run.figures, options.json)
    return 0


def _options(arguments: Sequence[str]) -> PkiOptions:
    parser = argparse.ArgumentParser(prog="./run bench pki", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (%(default)s)")
    parser.add_argument(
        "--sizes", default="100,1000,10000", help="keys; 50000 take minutes to make (%(default)s)"
    )
    parser.add_argument("--agents", type=int, default=100_000, help="with wrapped keys (%(default)s)")
    parser.add_argument("--certifications", type=int, default=200, help="with warm pools (%(default)s)")
    parser.add_argument("--drained", type=int, default=30, help="with a drained pool (%(default)s)")
    parser.add_argument("--offered", type=float, default=20.0, help="seconds of a steady rate (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of verify, with medians (%(default)s)")
    parser.add_argument("--lists", default="10000,100000,1000000", help="entries of lists (%(default)s)")
    parser.add_argument("--json", type=Path, help="write figures to this file, too")
    parser.add_argument("--peer-seconds", type=float, default=180.0, help="django-ca may take (%(default)s)")
    parsed = parser.parse_args(arguments)
    only = frozenset(parsed.only.split(","))
    if only - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(only - PARTS.keys()))}; there are {', '.join(PARTS)}")
    sizes = tuple(int(text) for text in parsed.sizes.split(","))
    return PkiOptions(
        seconds=parsed.seconds,
        sizes=sizes,
        agents=parsed.agents,
        certifications=parsed.certifications,
        drained=parsed.drained,
        only=only,
        offered=parsed.offered,
        turns=parsed.turns,
        lists=tuple(int(text) for text in parsed.lists.split(",")),
        peer_seconds=parsed.peer_seconds,
        json=parsed.json,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
