"""`signal_sender`: follow the audit log and push signals of both environments until SIGTERM or SIGINT."""

import signal
import threading
from datetime import datetime
from typing import Any

from django.conf import settings

from compliance.core import environments
from compliance.core.commands import ServiceCommand
from compliance.core.environments import Environment
from compliance.signals import wakeup
from compliance.signals.sending.sender import SignalSender


class Command(ServiceCommand):
    help = "Derive and push signals of both environments, until SIGTERM or SIGINT. Several may run."

    def run(self, *, now: datetime, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        size = settings.SIGNALS_SENDER_THREADS
        senders = [SignalSender(environment, size=size) for environment in Environment]
        threads = [
            threading.Thread(target=sender.run, name=f"signals-{sender.environment}") for sender in senders
        ]
        for thread in threads:
            thread.start()
        while all(thread.is_alive() for thread in threads) and not stopping.wait(1.0):
            for environment in Environment:
                with environments.use(environment):
                    wakeup.mark_sender_alive()
        for sender in senders:
            sender.stop()
        for thread in threads:
            thread.join()
        if not stopping.is_set():
            self._fail("a sender stopped because of a defect; its log says why", 1)
