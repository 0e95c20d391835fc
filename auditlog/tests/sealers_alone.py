"""Sealers in processes of their own, for the drills: `DATABASE`.

A line of the input starts one that goes on until it is killed: `task` repeats the Celery task, `rounds` seals
and signs without pauses. The answer is its process id.
"""

import os
import signal
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from django.conf import settings

settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()

from auditlog import tasks  # noqa: E402
from auditlog.sealing import sealer  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.core.tasks import ENVIRONMENT_HEADER  # noqa: E402


def task() -> None:
    tasks.seal.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)


def rounds() -> None:
    sealer.seal_queued()
    sealer.sign_head(now=now())


WAYS = {"task": task, "rounds": rounds}


def work(way: str) -> None:
    try:
        with environments.use(Environment.LIVE):
            while True:
                WAYS[way]()
    finally:
        os._exit(70)


def main() -> None:
    """Fork for each line: starting Django takes seconds."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            work(line.strip())
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
