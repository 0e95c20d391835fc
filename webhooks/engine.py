"""The sender of one environment: a clerk who keeps the books, and threads that only send.

The clerk's single connection does all there is to do in the database, many deliveries to a transaction:
results in, leases renewed, due deliveries out. The threads that send touch no database, so no number of
endpoints that hang holds a connection. Redis wakes the clerk sooner; without it he looks for himself.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, SimpleQueue
from uuid import UUID

from django.conf import settings
from django.db import DataError, Error, IntegrityError, connections

from compliance import environments
from compliance.clock import now
from compliance.environments import Environment
from webhooks import claims, doorbell, results
from webhooks.claims import Room
from webhooks.delivering import Parcel, Report, send
from webhooks.models import SLOW_AFTER, Pace
from webhooks.sender import Outcome

log = logging.getLogger(__name__)

# A request out for longer no longer counts among the young, which may hold half the threads.
YOUNG_SECONDS = 0.5
RENEW_SECONDS = claims.LEASE.total_seconds() / 4
TIDY_SECONDS = 1.0
# How long results and bells gather before one transaction takes them all, while there is much to do.
GATHER_SECONDS = 0.015
RETRY_SECONDS = 0.5
CLOSING_SECONDS = 5.0
STAND_IN_LIMIT = 8
STAND_IN_LEASE_MARGIN = timedelta(seconds=15)
DEFECT = "The sender failed; its operator's log says why"


@dataclass
class Flight:
    """A parcel being sent, since a moment of the monotonic clock."""

    parcel: Parcel
    since: float


class Crew:
    """Daemon threads, started when needed, that each send one parcel after the other."""

    def __init__(self, name: str, size: int, work: Callable[[Parcel], None]) -> None:
        self._name, self._size, self._work = name, size, work
        self._waiting: SimpleQueue[Parcel] = SimpleQueue()
        self._threads = 0
        self._idle = threading.Semaphore(0)

    def hand(self, parcel: Parcel) -> None:
        """Have the parcel sent soon; called by one thread only."""
        if not self._idle.acquire(blocking=False) and self._threads < self._size:
            self._threads += 1
            name = f"webhooks-{self._name}-{self._threads}"
            threading.Thread(target=self._run, name=name, daemon=True).start()
        self._waiting.put(parcel)

    def _run(self) -> None:
        while True:
            self._work(self._waiting.get())
            self._idle.release()


class Engine:
    """Sends what is due in `environment` until it is told to stop."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._size = settings.WEBHOOK_SENDER_THREADS
        self._crew = Crew(environment.value, self._size, self._send)
        self._flying: dict[UUID, Flight] = {}
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self._unwritten: list[Report] = []
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._renewed = self._tidied = 0.0

    def wake(self) -> None:
        """There is something to do."""
        self._woken.set()

    def stop(self) -> None:
        """Take nothing more; `run` returns once what is out has come back, or its time is over."""
        self._stopping.set()
        self._woken.set()

    def run(self) -> None:
        """Work until `stop`; what the database refuses is tried again, results first."""
        with environments.use(self.environment):
            while not self._stopping.is_set():
                began = time.monotonic()
                self._work(self.turn)
                self._woken.wait(settings.WEBHOOK_POLL_SECONDS)
                self._woken.clear()
                if not self._stopping.is_set():
                    time.sleep(max(0.0, began + GATHER_SECONDS - time.monotonic()))
            self._close()

    def turn(self) -> None:
        """Results in, leases renewed, due deliveries out."""
        self._settle()
        self._look_after_flights()
        self._take()

    def _work(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Error as error:
            # The transaction came to nothing, or its end is unknown: leases and states tell, next time.
            log.warning("%s: the database refused: %s", self.environment.value, type(error).__name__)
            connections[self.environment.alias].close()
            self._stopping.wait(RETRY_SECONDS)

    def _settle(self) -> None:
        while True:
            try:
                self._unwritten.append(self._reports.get_nowait())
            except Empty:
                break
        if not self._unwritten:
            return
        held_up = self._write_down(self._unwritten)
        for report in self._unwritten:
            self._flying.pop(report.parcel.lease, None)
        self._unwritten = held_up
        for report in held_up:
            self._flying[report.parcel.lease] = Flight(report.parcel, time.monotonic())

    def _write_down(self, reports: list[Report]) -> list[Report]:
        """`results.settle`; a result that the database can't take keeps no other waiting."""
        try:
            return results.settle(reports, now=now())
        except (DataError, IntegrityError):
            if len(reports) == 1:
                # Its lease runs out, and the attempt is made up for.
                log.exception("the result of delivery %s was refused", reports[0].parcel.delivery_id)
                return []
            return [held_up for report in reports for held_up in self._write_down([report])]

    def _look_after_flights(self) -> None:
        moment = time.monotonic()
        if moment - self._renewed >= RENEW_SECONDS:
            claims.renew(parcels=[flight.parcel for flight in self._flying.values()], now=now())
            doorbell.show_alive()
            self._renewed = moment
        if moment - self._tidied >= TIDY_SECONDS:
            overdue = moment - SLOW_AFTER.total_seconds()
            slow = {
                flight.parcel.webhook_id
                for flight in self._flying.values()
                if flight.since <= overdue and flight.parcel.pace != Pace.SLOW
            }
            if slow:
                claims.call_slow(slow)
            claims.tidy(now=now())
            self._tidied = moment

    def _take(self) -> None:
        room = self._room()
        if room.total <= 0:
            return
        moment = time.monotonic()
        taken = claims.claim(room=room, now=now(), awaited=self._awaited(moment - YOUNG_SECONDS))
        for parcel in taken:
            self._flying[parcel.lease] = Flight(parcel, moment)
            self._crew.hand(parcel)
        if len(taken) == room.total:
            self._woken.set()

    def _awaited(self, since: float) -> set[UUID]:
        """The webhooks that have owed an answer since that moment: they get no more until they give it.

        So a hundred quick endpoints that hang from one moment to the next hold a few threads each, not all.
        """
        return {flight.parcel.webhook_id for flight in self._flying.values() if flight.since <= since}

    def _room(self) -> Room:
        """Free threads: half for requests that are young yet, a quarter of all never for the unproven.

        A quarter is kept from retries too, so that a first attempt does not wait for them.
        """
        youngest = time.monotonic() - YOUNG_SECONDS
        young = sum(flight.since > youngest for flight in self._flying.values())
        free = self._size - len(self._flying)
        kept = self._size // 4
        return Room(total=min(free, self._size // 2 - young), unproven=free - kept, retries=free - kept)

    def _send(self, parcel: Parcel) -> None:
        with environments.use(self.environment):
            try:
                outcome = send(parcel=parcel)
            except Exception:
                # Whatever it is, the clerk must hear of it: the parcel would stay out for ever.
                log.exception("delivery %s could not be sent", parcel.delivery_id)
                outcome = Outcome(timedelta(), error=DEFECT)
            self._reports.put(Report(parcel, outcome, now()))
            self._woken.set()

    def _close(self) -> None:
        """Wait a little for what is out, write it down, and leave the rest to other senders at once."""
        until = time.monotonic() + CLOSING_SECONDS
        while self._flying and time.monotonic() < until:
            self._work(self._settle)
            self._woken.wait(0.05)
            self._woken.clear()
        self._work(self._release)
        connections[self.environment.alias].close()

    def _release(self) -> None:
        claims.release(parcels=[flight.parcel for flight in self._flying.values()], now=now())


def stand_in() -> int:
    """Send some of what is due, for senders that are not there; how many attempts were made.

    The lease is long, as nobody renews it.
    """
    moment = now()
    lease = timedelta(seconds=settings.WEBHOOK_TIMEOUT_SECONDS) + STAND_IN_LEASE_MARGIN
    claims.tidy(now=moment)
    parcels = claims.claim(room=Room.for_any(STAND_IN_LIMIT), now=moment, lease=lease)
    if not parcels:
        return 0
    environment = environments.current()

    def deliver(parcel: Parcel) -> Report:
        with environments.use(environment):
            return Report(parcel, send(parcel=parcel), now())

    with ThreadPoolExecutor(len(parcels)) as pool:
        reports = list(pool.map(deliver, parcels))
    while reports := results.settle(reports, now=now()):
        time.sleep(0.05)
    return len(parcels)
