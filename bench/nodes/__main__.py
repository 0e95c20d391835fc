"""`./run bench nodes`: several web nodes beside one another, over the same databases, Valkey and keys.

`revoked` revokes certificates through one node after the other and verifies each at once through every node.
`scores` sends agents' events to nodes at random, and by agent, and compares their scores with those that one
node gives the same events. Exit code 1 when a verification was stale or failed, 6 when fewer scores agree
than promised, 0 otherwise.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from bench.harness import machine, web
from bench.harness.command import ended, tell
from bench.harness.place import find_place
from bench.nodes.revoked import revoked
from bench.nodes.run import NodesRun
from bench.nodes.scores import WAYS, scores
from compliance.localdev.console import step

PARTS = {"revoked": revoked, "scores": scores}
BROKEN, NOT_HELD = 1, 6


def main(arguments: Sequence[str]) -> int:
    """Do it and print; the exit code."""
    options = _options(arguments)
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    place = find_place()
    agents = options.agents * len(WAYS) if "scores" in options.only else 1
    load = machine.load_average()
    with place.prepared(agents, fresh=options.fresh, keep=False), ExitStack() as stack:
        web.clear_leftovers(place)
        with step(f"{options.nodes} web nodes"):
            nodes = [
                stack.enter_context(web.service(place, name=f"node-{number}", settings={"WEB_WORKERS": "1"}))
                for number in range(1, options.nodes + 1)
            ]
        run = NodesRun(options, place, nodes)
        run.lines.append(f"{machine.described(load=load)}; {options.nodes} nodes of one web process")
        for name, part in PARTS.items():
            if name in options.only:
                part(run)
    tell(run.lines)
    if run.is_broken:
        return BROKEN
    return 0 if run.is_held else NOT_HELD


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench nodes", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts (%(default)s)")
    parser.add_argument("--nodes", type=int, default=4, help="web nodes (%(default)s)")
    parser.add_argument("--verifications", type=int, default=10_000, help="of revoked ones (%(default)s)")
    parser.add_argument("--agents", type=int, default=40, help="for each way of routing (%(default)s)")
    parser.add_argument("--events", type=int, default=250, help="of each agent (%(default)s)")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    parsed = parser.parse_args(arguments)
    parsed.only = frozenset(parsed.only.split(","))
    if parsed.only - PARTS.keys():
        parser.error(f"there are {', '.join(PARTS)}")
    return parsed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
