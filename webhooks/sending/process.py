"""The process of a sender: a thread for each environment until a signal ends it."""

import signal
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from compliance.core import environments
from compliance.core.commands import ServiceCommand
from compliance.core.environments import Environment
from compliance.observing import metrics_server
from webhooks.sending.loop import SendingLoop


class SenderCommand(ServiceCommand):
    """Run a sender for each environment until SIGTERM or SIGINT. Several processes may run."""

    mark_alive: Callable[[], None]
    """Shows for some seconds that a sender of the current environment runs."""

    def senders(self) -> Sequence[SendingLoop[Any, Any]]:
        """The senders to run."""
        raise TypeError(f"{type(self).__name__} has no senders()")

    def run(self, *, now: datetime, **options: Any) -> None:
        metrics_server.start()
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        senders = self.senders()
        threads = [threading.Thread(target=one.run, name=f"{one.name}-{one.environment}") for one in senders]
        for thread in threads:
            thread.start()
        while all(thread.is_alive() for thread in threads) and not stopping.wait(1.0):
            for environment in Environment:
                with environments.use(environment):
                    self.mark_alive()
        for sender in senders:
            sender.stop()
        for thread in threads:
            thread.join()
        if not stopping.is_set():
            self._fail("a sender stopped because of a defect; its log says why", 1)
