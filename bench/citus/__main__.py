"""`./run bench citus`: events on a Citus coordinator with two workers, beside plain PostgreSQL.

Prints the processor time that PostgreSQL takes for an event (singly, in groups of several tenants, in
batches), beside that of an INSERT alone; what web server, PostgreSQL and Valkey take for one that clients
send. Then a tenant gets a shard of its own and moves to another node, while its events go on. Exit code 1
when an event was lost or stored twice. CITUS_BUILD names the build.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.citus.conversation import conversation
from bench.citus.costs import FORMS, Costs
from bench.citus.ground import CITUS, KINDS, Ground
from bench.citus.moving import Moving
from bench.citus.request_costs import ARRIVALS, RequestCosts
from bench.harness import machine
from bench.harness.command import ended, tell
from bench.harness.servers import find_build
from bench.harness.stats import median
from compliance.localdev.console import StepFailed, step
from compliance.localdev.layout import find_layout
from compliance.localdev.servers.citus import tell_if_missing
from compliance.localdev.servers.servers import Servers
from compliance.localdev.state import LockBusy, locked

PARTS = ("costs", "requests", "moving")
MODES = ("force_logical", "block_writes")


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _options(arguments)
    if tell_if_missing():
        return 0
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    layout, header = find_layout(), machine.described()
    layout.prepare()
    ground = Ground(Servers(layout), layout.local / "citus", find_build(), options.shards)
    try:
        with locked(layout.run / "citus.lock", wait=False), ground.started(), ExitStack() as stack:
            children, tenants = {}, {}
            for kind in KINDS:
                children[kind] = stack.enter_context(conversation(ground, kind))
                with step(f"{options.tenants} tenants, {kind}"):
                    tenants[kind] = children[kind].ask("fill", options.tenants, options.agents)
            figures, is_held = dict[str, Any](), True
            if "costs" in options.only:
                costs = Costs(ground, children, tenants, options.events, options.turns)
                costs.measure()
                tell([header, "", *costs.lines()])
                figures["ratios"] = {form.name: costs.ratio(form.name) for form in FORMS}
            if "requests" in options.only:
                callers = {kind: children[kind].ask("callers") for kind in KINDS}
                requests = RequestCosts(ground, callers, options.seconds, options.turns)
                requests.measure()
                tell([header, "", *requests.lines()])
                names = [arrivals.name for arrivals in ARRIVALS]
                figures["request_ratios"] = {name: median(requests.ratios(name)) for name in names}
            if "moving" in options.only:
                moving = Moving(ground, children[CITUS], options.mode, options.settle)
                moving.run(*tenants[CITUS][:2])
                tell(moving.lines())
                figures |= {"longest_pause": moving.longest, "lost": moving.lost, "doubled": moving.doubled}
                is_held = moving.is_held
    except LockBusy:
        raise StepFailed("another benchmark of Citus runs here", hint="wait for it to end") from None
    if options.json is not None:
        tell([], figures, options.json)
    return 0 if is_held else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench citus", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts (%(default)s)")
    parser.add_argument("--events", type=int, default=3_000, help="of each form in a turn (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each arrivals in a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="with medians (%(default)s)")
    parser.add_argument("--tenants", type=int, default=10, help="on each kind (%(default)s)")
    parser.add_argument("--agents", type=int, default=4, help="of each tenant (%(default)s)")
    parser.add_argument("--shards", type=int, default=4, help="the tenants lie in (%(default)s)")
    parser.add_argument("--mode", choices=MODES, default=MODES[0], help="of the transfer (%(default)s)")
    parser.add_argument("--settle", type=float, default=3.0, help="s before, between, after (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parsed = parser.parse_args(arguments)
    parsed.only = frozenset(parsed.only.split(","))
    if parsed.only - set(PARTS):
        parser.error(f"there are {', '.join(PARTS)}")
    if parsed.turns < 1:
        parser.error("at least 1 turn is needed")
    if parsed.shards < 1 or parsed.tenants < (least := max(form.tenants for form in FORMS)):
        parser.error(f"at least 1 shard and {least} tenants are needed")
    return parsed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
