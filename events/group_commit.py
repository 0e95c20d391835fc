"""Group commit: events that reach a process together share one insert and one commit.

While a group is being stored the next one gathers, so groups grow with the load by themselves: a lone event
waits for nobody, and a thousand a second cost some tens of commits.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Condition, Thread

from django.db import DatabaseError, InterfaceError, connections

from compliance import environments
from compliance.environments import Environment
from events.ingestion import ALONE, Outcome, Submission, ingest_together

log = logging.getLogger(__name__)

LARGEST_GROUP = 200
WORTH_STORING = 16
GATHERING_SECONDS = 0.004
"""How long a group after one of several waits for so many, or for as many as that had: each costs four round
trips and some two milliseconds of processor time, whatever its size. A lone caller's events never wait."""
LONGEST_QUEUE = 1_000
"""Events of one environment that may wait in a process, less than half a second's; more are turned away."""

Settled = Sequence[tuple[Submission, Outcome | Exception]]
Deliver = Callable[[Settled], object]


class QueueFull(Exception):
    """More events wait than can be stored in good time."""


class GroupCommitter:
    """One environment's thread that stores groups, and hands each back through `deliver`, called in it.

    An event's outcome is its row, its refusal, `ALONE`, or the exception that its whole group met.
    """

    def __init__(self, environment: Environment, deliver: Deliver) -> None:
        self._environment = environment
        self._deliver = deliver
        self._waiting: list[Submission] = []
        self._changed = Condition()
        self._is_closing = False
        self._last_size = 0
        self._thread: Thread | None = None

    def submit(self, submission: Submission) -> None:
        """Let the event be stored with the next group; raises `QueueFull`."""
        with self._changed:
            if len(self._waiting) >= LONGEST_QUEUE or self._is_closing:
                raise QueueFull
            self._waiting.append(submission)
            if self._thread is None:
                self._thread = Thread(
                    target=self._run, name=f"group-commit-{self._environment.value}", daemon=True
                )
                self._thread.start()
            elif len(self._waiting) in (1, self._wanted()):
                self._changed.notify()

    def close(self) -> None:
        """Store what waits, then end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        with environments.use(self._environment):
            while group := self._next_group():
                self._deliver(settle(group))
        connections.close_all()

    def _next_group(self) -> list[Submission]:
        with self._changed:
            while not self._waiting and not self._is_closing:
                self._changed.wait()
            if self._last_size > 1 and not self._is_closing:
                self._changed.wait_for(lambda: len(self._waiting) >= self._wanted(), GATHERING_SECONDS)
            group, self._waiting = self._waiting[:LARGEST_GROUP], self._waiting[LARGEST_GROUP:]
            self._last_size = len(group)
            return group

    def _wanted(self) -> int:
        """How many events make a group that waits for no more."""
        return max(self._last_size, WORTH_STORING)


def settle(group: Sequence[Submission]) -> Settled:
    """Store a group in the current environment; an exception settles all of it."""
    connection = connections[environments.current().alias]
    connection.close_if_unusable_or_obsolete()
    try:
        outcomes: Sequence[Outcome | Exception] = ingest_together(group)
    except (DatabaseError, InterfaceError) as error:
        log.warning("a group of %d events was not stored: %s", len(group), type(error).__name__)
        outcomes = [error] * len(group)
    except Exception:
        # Whatever it is, it must not end the thread; each event is tried alone and fails, or not, by itself.
        log.exception("a group of %d events met a defect", len(group))
        outcomes = [ALONE] * len(group)
    return list(zip(group, outcomes, strict=True))
