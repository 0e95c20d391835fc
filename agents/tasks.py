"""The task of agents."""

import time
from typing import Any

from agents import mailing
from compliance.core.clock import now
from compliance.core.tasks import task
from compliance.stores import wakeups


@task(mailing.SEND)
def send_mails(**kwargs: Any) -> None:
    """Send the messages that wait for owners; safe to run twice and at the same time."""
    wakeups.answer(mailing.SEND)
    time.sleep(wakeups.QUIET_SECONDS)
    while mailing.send_due(now=now()):
        pass
