"""`python -m ops.tests.cluster.flood`: ordinary events at a fixed rate, whatever the cluster does.

Reads {port, key, agents, rate, seconds} as JSON from standard input; writes one JSON document to standard
output: the mark of the events' sessions, the ids acknowledged, when, and what failed.
"""

import json
import sys
from collections import Counter

from bench.harness.load import Load, Outcome
from bench.harness.traffic import Traffic

CONNECTIONS = 48
PART_SECONDS = 5.0


def main() -> None:
    """Offer the load in parts: what could not be sent in time is counted, not piled up for ever."""
    orders = json.load(sys.stdin)
    traffic = Traffic(orders["agents"])
    first = traffic.next_session()
    load = Load(orders["port"], traffic.single(key=orders["key"]), connections=CONNECTIONS)
    parts: list[Outcome] = []
    left = orders["seconds"]
    while left > 0:
        parts.append(load.offered(orders["rate"], min(left, PART_SECONDS)))
        left -= parts[-1].seconds
    failures: Counter[str] = sum((part.failures for part in parts), Counter())
    found = {
        "mark": traffic.mark, "session": first, "ids": [one.decode() for part in parts for one in part.ids],
        "times": [at for part in parts for at in part.times],
        "latencies": [one for part in parts for one in part.latencies], "failures": dict(failures),
    }  # fmt: skip
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
