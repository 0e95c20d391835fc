"""A process that reports numbered events at a rate until it is told to stop or is killed.

Prints `<reported> <written to the spool> <peak of traced memory>` after each tenth of a second.
"""

import sys
import time
import tracemalloc
from pathlib import Path
from threading import Thread

from agentid.reporting import Reporter

STEP = 0.1


def main(address: str, api_key: str, agent_id: str, spool: str, first: str, rate: str) -> None:
    tracemalloc.start()
    number, per_step, stopped = int(first), int(float(rate) * STEP), list[str]()
    Thread(target=lambda: stopped.append(sys.stdin.readline()), daemon=True).start()
    reporter = Reporter(address, api_key, agent_id, spool=Path(spool))
    due = time.monotonic()
    while not stopped:
        for _ in range(per_step):
            reporter.report("data_access", {"n": number, "resource": "orders"})
            number += 1
        found = reporter.statistics()
        sys.stdout.write(
            f"{found.reported} {found.reported - found.queued} {tracemalloc.get_traced_memory()[1]}\n"
        )
        sys.stdout.flush()
        due += STEP
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(*sys.argv[1:])
