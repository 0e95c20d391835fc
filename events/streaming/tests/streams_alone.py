"""Streams in processes of their own, for the drill: `DATABASE URL`.

A line of the input starts one that sends until it is killed; the answer is its process id.
"""

import os
import signal
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from django.conf import settings

settings.DATABASES["default"]["NAME"], settings.STREAM_S3_URL = sys.argv[1:]
django.setup()

from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from events.streaming import sending  # noqa: E402


def work() -> None:
    vars(sending)["MOST"] = 3  # small batches have more moments to die at
    try:
        with environments.use(Environment.LIVE):
            while True:
                sending.send_new(now=now())
    finally:
        os._exit(70)


def main() -> None:
    """Fork for each line: starting Django takes seconds."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            work()
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
