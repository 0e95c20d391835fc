"""The loop of a sender: one thread owns the only database connection, each claim is worked on by another.

The threads of claims have no connection, so receivers that hang hold none.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from queue import SimpleQueue
from typing import ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from django.db import Error, connections

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores.database_clock import DatabaseClock

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
CLOSING_SECONDS = 5.0


class Leased(Protocol):
    """What a sender has claimed; `lease` names the claim."""

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
        self._clock = DatabaseClock()

    @property
    @abstractmethod
    def poll_seconds(self) -> float:
        """How often to look for work of which no message came."""

    @property
    @abstractmethod
    def timeout_seconds(self) -> float:
        """How long one request may take."""

    @abstractmethod
    def listen(self) -> None:
        """Set `awake` at each message that there is work, until `stopping` is set."""

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
        threading.Thread(target=self.listen, daemon=True).start()
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
            self._close(self.timeout_seconds + CLOSING_SECONDS)
        return begun

    def stop(self) -> None:
        """Make `run` claim nothing more and return, at most `CLOSING_SECONDS` later."""
        self.stopping.set()
        self.awake.set()

    def now(self) -> datetime:
        """Return the database's time: by its own a node that is ahead would take others' work for lost."""
        return self._clock.now()

    def finish(self, result: Result) -> None:
        """Hand a result to the thread that records."""
        self._finished.put(result)
        self.awake.set()

    def _turn(self) -> int:
        self._clock.ask_if_due()
        self._record()
        self._renew()
        self.upkeep()
        claimed = self.take()
        for claim in claimed:
            self.in_flight[claim.lease] = claim
            threading.Thread(target=self._work, args=(claim,), name=f"{self.name}-send", daemon=True).start()
        return len(claimed)

    def _work(self, claim: Claim) -> None:
        with environments.use(self.environment):
            self.work(claim)

    def _wait(self, seconds: float) -> None:
        self.awake.wait(seconds)
        self.awake.clear()

    def _try(self, work: Callable[[], object]) -> bool:
        """Whether it worked; the same reason why not is logged once until it works."""
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
        self._trouble = trouble
        return not trouble

    def _record(self) -> None:
        while not self._finished.empty():
            self._unrecorded.append(self._finished.get())
        if self._unrecorded:
            self._unrecorded, ended = self.record(self._unrecorded)
            for lease in ended:
                self.in_flight.pop(lease, None)

    def _renew(self) -> None:
        if time.monotonic() - self._renewed >= self.renew_seconds:
            self.renew(self.in_flight.values())
            self._renewed = time.monotonic()

    def _close(self, seconds: float) -> None:
        """Record what ends within `seconds`, and leave the rest to other senders at once."""
        until = time.monotonic() + seconds
        while self.in_flight and (left := until - time.monotonic()) > 0:
            if self._try(self._keep):
                self._wait(min(left, 0.05))
            else:
                time.sleep(min(left, RETRY_SECONDS))
        self._try(lambda: self.release(self.in_flight.values()))

    def _keep(self) -> None:
        self._record()
        self._renew()
