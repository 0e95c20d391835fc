"""`./run bench chaos`: a cluster on one machine under load; break it, and audit the rows.

0, 1 if a promise was broken or not tested, or 2 if a pause was too long.
"""

import argparse
import sys
import time

from bench.harness.command import ended
from compliance.localdev.console import say
from compliance.localdev.layout import Layout
from compliance.localdev.servers.servers import Servers
from ops.tests.cluster.drive import Drive
from ops.tests.cluster.network import LogDisk, Namespaces, enter_namespaces, has_namespaces
from ops.tests.cluster.programs import find_programs
from ops.tests.cluster.topology import NODES, Cluster

SHORT_MINUTES = 6.0


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="./run bench chaos", description=__doc__)
    parser.add_argument("--stay", action="store_true", help="only start the cluster, until Ctrl-C")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long faults are struck (10)")
    parser.add_argument("--rate", type=float, default=500.0, help="events a second (500)")
    parser.add_argument("--rounds", type=int, help="kills of each kind (2; 1 in less than 6 minutes)")
    parser.add_argument("--agents", type=int, default=60, help="certified agents (60)")
    parser.add_argument("--revocations", type=int, default=5000, help="revocations at the end (%(default)s)")
    parser.add_argument("--only", default="", help="strike only faults whose name holds this text")
    found = parser.parse_args()
    if found.rounds is None:
        found.rounds = 2 if found.minutes >= SHORT_MINUTES else 1
    return found


def main() -> int:
    """Run it on a fresh cluster, which is stopped at the end."""
    chosen = options()
    if chosen.stay:
        return ended(_stay)
    enter_namespaces("bench.chaos", sys.argv[1:])
    return ended(lambda: _run(chosen))


def _cluster() -> Cluster:
    layout = Layout()
    return Cluster(Servers(layout), find_programs(layout), layout.local / "cluster")


def _run(chosen: argparse.Namespace) -> int:
    cluster = _cluster()
    if has_namespaces():
        cluster.network = Namespaces(NODES)
        cluster.log_disk = LogDisk(cluster.log, cluster.folder / "log-kept")
    return Drive(cluster, chosen).run()


def _stay() -> int:
    cluster = _cluster()
    with cluster.running():
        say(f"API: {cluster.base_url}/v1, key {cluster.demo.get('live_api_key')}")
        say(f"Primary: {cluster.primary()}, synchronous standby {', '.join(cluster.synchronous_standbys())}")
        say(f"Logs and configurations: {cluster.folder}. Ctrl-C stops the cluster.")
        while True:
            time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
