"""The loop of a sender, and the process that runs one for each environment.

One thread owns the only database connection, and each claim is worked on by another without one: receivers
that hang hold none.
"""

import logging
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from datetime import datetime, timedelta
from queue import SimpleQueue
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import Error, connections

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.commands import ServiceCommand
from compliance.core.environments import Environment
from compliance.observing import metrics_server
from compliance.stores import sql, wakeups

ASK_SECONDS: Final = 5.0


log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
CLOSING_SECONDS = 5.0
MARK_SECONDS = 3.0  # between two signs of life


class Leased(Protocol):
    """A sender's claim; `lease` names the claim."""

    @property
    def lease(self) -> UUID: ...


Claim = TypeVar("Claim", bound=Leased)
Result = TypeVar("Result")


class SendingLoop(ABC, Generic[Claim, Result]):
    """Work on what is due in `environment`, on at most `size` claims at a time.

    `in_flight` are the claims that are worked on, by lease; `awake` ends a pause; `stop()` sets `stopping`.
    """

    name: ClassVar[str]
    """What the threads are called."""
    channels: ClassVar[tuple[wakeups.Channel, ...]]
    """Where messages come that there is work; on the first one it shows that it runs."""
    gather_seconds: ClassVar[float]
    """The shortest turn, so that one transaction takes many results."""
    renew_seconds: ClassVar[float]
    """How often leases are extended."""
    recoverable: ClassVar[tuple[type[Exception], ...]] = ()
    """Errors besides the database's after which a turn is tried again."""

    def __init__(self, environment: Environment, *, size: int) -> None:
        self.environment = environment
        self.size = size
        self.in_flight: dict[UUID, Claim] = {}
        self._finished: SimpleQueue[Result] = SimpleQueue()
        self._unrecorded: list[Result] = []
        self.awake = threading.Event()
        self.stopping = threading.Event()
        self._renewed = 0.0
        self._trouble = ""
        # The database's time and `monotonic()` then; before it was asked, this machine's time.
        self._told = now(), time.monotonic()
        self._ask_at = 0.0

    @property
    @abstractmethod
    def poll_seconds(self) -> float:
        """Seconds between looks for work of which no message came."""

    @abstractmethod
    def take(self) -> Sequence[Claim]:
        """Claim what is due, within `size`."""

    @abstractmethod
    def work(self, claim: Claim) -> None:
        """Make the requests of a claim, and `finish()` each result; runs without the database."""

    @abstractmethod
    def record(self, ended: list[Result]) -> tuple[list[Result], Collection[UUID]]:
        """Record results; return those to record later, and the leases of the claims that have ended."""

    @abstractmethod
    def renew(self, held: Collection[Claim]) -> None:
        """Extend the leases of claims."""

    @abstractmethod
    def release(self, held: Collection[Claim]) -> None:
        """Leave claims to other senders at once."""

    def upkeep(self) -> None:
        """Do what else belongs to a turn."""

    def run(self) -> None:
        """Work until `stop`; what the database refuses is tried again."""
        listening = (self.channels, self.environment, self.awake.set, self.stopping)
        threading.Thread(target=wakeups.listen, args=listening, daemon=True).start()
        with environments.use(self.environment):
            while not self.stopping.is_set():
                began = time.monotonic()
                if self._try(self._turn):
                    self._wait(self.poll_seconds)
                else:
                    self.stopping.wait(RETRY_SECONDS)
                time.sleep(max(0.0, began + self.gather_seconds - time.monotonic()))
            self._close(CLOSING_SECONDS)
            connections[self.environment.alias].close()

    def run_until_idle(self, *, seconds: float) -> int:
        """Work on what is due, begin nothing after `seconds`; return the number of claims."""
        until = time.monotonic() + seconds
        with environments.use(self.environment):
            begun = self._turn()
            while self.in_flight and time.monotonic() < until:
                self._wait(self.poll_seconds)
                begun += self._turn()
            self._close(settings.WEBHOOK_TIMEOUT_SECONDS + CLOSING_SECONDS)
        return begun

    def stop(self) -> None:
        """Make `run` claim nothing more and return, at most `CLOSING_SECONDS` later."""
        self.stopping.set()
        self.awake.set()

    def now(self) -> datetime:
        """Return the database's time: by its own a node that is ahead would take others' work for lost.

        From any thread; it asks nobody.
        """
        told, at = self._told
        return told + timedelta(seconds=time.monotonic() - at)

    def finish(self, result: Result) -> None:
        """Hand a result to the thread that records."""
        self._finished.put(result)
        self.awake.set()

    def _turn(self) -> int:
        if time.monotonic() >= self._ask_at:
            ((told,),) = sql.query("SELECT clock_timestamp()")
            self._told = told, time.monotonic()
            self._ask_at = time.monotonic() + ASK_SECONDS
        self._record_and_renew()
        self.upkeep()
        claimed = self.take()
        for claim in claimed:
            self.in_flight[claim.lease] = claim
            context = copy_context()  # the environment's
            arguments = [self.work, claim]
            threading.Thread(
                target=context.run, args=arguments, name=f"{self.name}-send", daemon=True
            ).start()
        return len(claimed)

    def _wait(self, seconds: float) -> None:
        """Pause, but not beyond the time when leases are to be extended."""
        self.awake.wait(min(seconds, self.renew_seconds) if self.in_flight else seconds)
        self.awake.clear()

    def _try(self, work: Callable[[], object]) -> bool:
        """Return whether it worked; the same reason why not is logged once until it works."""
        try:
            work()
        except Error as error:
            # Whether the transaction took place or not, the next turn goes by what is stored.
            trouble = f"the database refused: {type(error).__name__}"
            connections[self.environment.alias].close()
        except self.recoverable as error:
            trouble = f"nothing sent: {error}"
        else:
            trouble = ""
        if trouble not in ("", self._trouble):
            log.warning("%s: %s", self.environment.value, trouble)
        if trouble or not self.stopping.is_set():  # closing, it may work without the database
            self._trouble = trouble
        return not trouble

    def _record_and_renew(self) -> None:
        while not self._finished.empty():
            self._unrecorded.append(self._finished.get())
        if self._unrecorded:
            self._unrecorded, ended = self.record(self._unrecorded)
            for lease in ended:
                self.in_flight.pop(lease, None)
        if time.monotonic() - self._renewed >= self.renew_seconds:
            self.renew(self.in_flight.values())
            self._renewed = time.monotonic()

    def _close(self, seconds: float) -> None:
        """Record what ends within `seconds`, and leave the rest to other senders at once."""
        until = time.monotonic() + seconds
        while self.in_flight and (left := until - time.monotonic()) > 0:
            if self._try(self._record_and_renew):
                self._wait(min(left, 0.05))
            else:
                time.sleep(min(left, RETRY_SECONDS))
        self._try(lambda: self.release(self.in_flight.values()))


class SenderCommand(ServiceCommand):
    """Run a `loop` of `size` for each environment until SIGTERM or SIGINT. Several processes may run."""

    loop: ClassVar[type[SendingLoop[Any, Any]]]
    size: ClassVar[int]

    def run(self, *, now: datetime, **options: Any) -> None:
        metrics_server.start()
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        senders = [self.loop(environment, size=self.size) for environment in Environment]
        threads = [threading.Thread(target=one.run, name=f"{one.name}-{one.environment}") for one in senders]
        for thread in threads:
            thread.start()
        while all(thread.is_alive() for thread in threads) and not stopping.wait(MARK_SECONDS):
            for sender in senders:
                with environments.use(sender.environment):
                    wakeups.mark_alive(sender.channels[0])
        for sender in senders:
            sender.stop()
        for thread in threads:
            thread.join()
        if not stopping.is_set():
            self._fail("a sender stopped because of a defect; its log says why", 1)
