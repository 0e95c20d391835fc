"""`./run bench cluster`: the cluster, up until Ctrl-C."""

import argparse
import sys
import time

from bench.cluster.programs import find_programs
from bench.cluster.topology import Cluster
from bench.harness.servers import find_build
from compliance.localdev.console import StepFailed, complain, say
from compliance.localdev.layout import find_layout
from compliance.localdev.servers.citus import tell_if_missing
from compliance.localdev.servers.servers import Servers


def find_cluster(*, citus: bool = False) -> Cluster:
    """Return the cluster of this checkout. Raises StepFailed if a program or build is missing."""
    layout = find_layout()
    servers, programs = Servers(layout), find_programs(layout)
    if not citus:
        return Cluster(servers, programs, layout.local / "cluster")
    # Parameters are set when the nodes are first made.
    return Cluster(servers, programs, layout.local / "cluster-citus", citus_install=find_build())


def main() -> int:
    """Start everything, print where it is, and stay."""
    parser = argparse.ArgumentParser(prog="./run bench cluster", description=__doc__)
    parser.add_argument("--citus", action="store_true", help="a coordinator and two workers (CITUS_BUILD)")
    chosen = parser.parse_args()
    if chosen.citus and tell_if_missing():
        return 0
    try:
        cluster = find_cluster(citus=chosen.citus)
        with cluster.running():
            rows = {
                "API": f"{cluster.base_url}/v1",
                "Web nodes": ", ".join(f"{web.name} :{web.port}" for web in cluster.webs),
                "Primary": cluster.primary(),
                "Synchronous standby": ", ".join(cluster.synchronous_standbys()),
                "Live key": cluster.demo.get("live_api_key"),
                "Logs": cluster.log,
            }
            sys.stdout.write("\n" + "".join(f"  {name:<22}{value}\n" for name, value in rows.items()) + "\n")
            sys.stdout.flush()
            say("Ctrl-C stops the cluster.")
            while True:
                time.sleep(1)
    except KeyboardInterrupt:
        return 0
    except StepFailed as failure:
        complain(failure)
        return 1


if __name__ == "__main__":
    sys.exit(main())
