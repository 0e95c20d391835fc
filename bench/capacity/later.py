"""`python -m bench.capacity.later PART`: what events cost after they were answered.

Prints JSON: how many events it worked on, this process's processor time in seconds, and the archives' bytes.
"""

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import django

django.setup()

from auditlog.vocabulary import Actor  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from events import partitions  # noqa: E402
from events.archiving import archives  # noqa: E402
from events.inbox import collecting  # noqa: E402
from events.models import BehaviorEvent  # noqa: E402
from events.risk import baselines, risk_days  # noqa: E402

ACTOR = Actor.system("bench")


def summed() -> tuple[int, int]:
    """Add all events to the days' sums."""
    return _all(lambda: risk_days.sum_up(now=_later())), 0


def pooled() -> tuple[int, int]:
    """Pool all low events into baselines."""
    return _all(lambda: baselines.pool_new(now=_later())), 0


def collected() -> tuple[int, int]:
    """Look at all events for the inbox; return how many there are."""
    _all(lambda: collecting.collect(now=_later()))
    return BehaviorEvent.objects.count(), 0


def archived() -> tuple[int, int]:
    """Archive every partition that holds events; return how many, and the files' bytes."""
    rows = size = 0
    for partition in partitions.listed():
        if partition.start <= now():
            made = archives.ensure(partition=partition, actor=ACTOR, now=now())
            rows, size = rows + made.rows, size + made.path.stat().st_size
    return rows, size


PARTS = {"summed": summed, "pooled": pooled, "collected": collected, "archived": archived}


def _all(work: Callable[[], int]) -> int:
    """Repeat until nothing is left; return how many there were."""
    total = 0
    while done := work():
        total += done
    return total


def _later() -> datetime:
    """Return a time at which no task waits for the events any more."""
    return now() + baselines.DELAY + timedelta(minutes=1)


def main(part: str) -> None:
    """Do one of them in the live environment."""
    with environments.use(Environment.LIVE):
        began = time.process_time()
        count, size = PARTS[part]()
        found = {"count": count, "seconds": time.process_time() - began, "bytes": size}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
