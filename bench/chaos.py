"""`./run bench chaos`: drive the cluster, break it, and audit the rows.

0, or 1 if a promise was broken or not tested, or a pause too long.

With `--citus` all nodes share loopback: no log disk is filled, no link is cut, and workers are not struck.
"""

import argparse
import sys

from bench.cluster.__main__ import find_cluster
from bench.cluster.drive import Drive
from bench.cluster.log_disk import LogDisk
from bench.cluster.network import Namespaces, enter_namespaces, has_namespaces
from bench.cluster.topology import NODES
from bench.harness.command import ended
from compliance.localdev.servers.citus import tell_if_missing

SHORT_MINUTES = 6.0


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="./run bench chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long faults are struck (10)")
    parser.add_argument("--rate", type=float, default=500.0, help="events a second (500)")
    parser.add_argument("--rounds", type=int, help="kills of each kind (2; 1 in less than 6 minutes)")
    parser.add_argument("--agents", type=int, default=60, help="certified agents (60)")
    parser.add_argument("--revocations", type=int, default=5000, help="revocations at the end (%(default)s)")
    parser.add_argument("--only", default="", help="strike only faults whose name holds this text")
    parser.add_argument("--citus", action="store_true", help="on a coordinator and two workers (CITUS_BUILD)")
    found = parser.parse_args()
    if found.rounds is None:
        found.rounds = 2 if found.minutes >= SHORT_MINUTES else 1
    return found


def main() -> int:
    """Run it on a fresh cluster, which is stopped at the end."""
    chosen = options()
    if chosen.citus:
        return 0 if tell_if_missing() else ended(lambda: _run(chosen))
    enter_namespaces("bench.chaos", sys.argv[1:])
    return ended(lambda: _run(chosen))


def _run(chosen: argparse.Namespace) -> int:
    cluster = find_cluster(citus=chosen.citus)
    if has_namespaces():
        cluster.network = Namespaces(NODES)
        cluster.log_disk = LogDisk(cluster.log, cluster.folder / "log-kept")
    return Drive(cluster, chosen).run()


if __name__ == "__main__":
    sys.exit(main())
