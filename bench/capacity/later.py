"""`python -m bench.capacity.later sums|archive`: what events cost after they were answered.

Prints JSON: how many events it worked on, this process's processor time in seconds, and the archives' bytes.
"""

import json
import sys
import time
from datetime import timedelta

import django

django.setup()

from auditlog.vocabulary import Actor  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from events import partitions  # noqa: E402
from events.archiving import archives  # noqa: E402
from events.risk import baselines, risk_days  # noqa: E402

ACTOR = Actor.system("bench")


def sums() -> tuple[int, int]:
    """Do what the tasks do with new events: add them to the days' sums and pool them into baselines."""
    later = now() + baselines.DELAY + timedelta(minutes=1)
    counted = 0
    while added := risk_days.sum_up(now=later):
        counted += added
    while baselines.pool_new(now=later):
        pass
    return counted, 0


def archive() -> tuple[int, int]:
    """Archive every partition that holds events; return how many, and the files' bytes."""
    rows = size = 0
    for partition in partitions.listed():
        if partition.start <= now():
            made = archives.ensure(partition=partition, actor=ACTOR, now=now())
            rows, size = rows + made.rows, size + made.path.stat().st_size
    return rows, size


def main(part: str) -> None:
    """Do one of them in the live environment."""
    with environments.use(Environment.LIVE):
        began = time.process_time()
        count, size = {"sums": sums, "archive": archive}[part]()
        found = {"count": count, "seconds": time.process_time() - began, "bytes": size}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
