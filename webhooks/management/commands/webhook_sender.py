"""`webhook_sender`: sends webhooks of both environments until it is told to end."""

import signal
import threading
from datetime import datetime
from types import FrameType
from typing import Any

from compliance.commands import ServiceCommand
from compliance.environments import Environment
from webhooks import doorbell
from webhooks.engine import Engine


class Command(ServiceCommand):
    help = "Send webhooks of both environments, until SIGTERM or SIGINT. Several may run."

    def run(self, *, now: datetime, **options: Any) -> None:
        engines = {environment: Engine(environment) for environment in Environment}
        stopping = threading.Event()

        def stop(number: int, frame: FrameType | None) -> None:
            stopping.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        clerks = [
            threading.Thread(target=engine.run, name=f"webhooks-clerk-{environment.value}")
            for environment, engine in engines.items()
        ]
        for clerk in clerks:
            clerk.start()
        bells = {environment: engine.wake for environment, engine in engines.items()}
        threading.Thread(target=doorbell.listen, args=(bells, stopping), daemon=True).start()
        while not stopping.is_set() and all(clerk.is_alive() for clerk in clerks):
            stopping.wait(1.0)
        for engine in engines.values():
            engine.stop()
        for clerk in clerks:
            clerk.join()
        if not stopping.is_set():
            # A clerk ended by a defect of ours: whoever supervises us starts anew.
            self._fail("a sender ended by itself; its log says why", 1)
