"""Group commit: events that reach a process together share one insert and one commit."""

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from compliance.clock import now
from compliance.environments import Environment
from compliance.groups import Groups, Sizes
from events import memory, standing
from events.ingestion import ALONE, Outcome, Submission, ingest_together

log = logging.getLogger(__name__)

LARGEST_GROUP = 200
WORTH_STORING = 16
LONGEST_GATHERING = 0.010
"""How many seconds at most the first of a group after one of several waits for so many others, or for as
many as that had: each group costs four round trips and some two milliseconds of processor time, whatever its
size. A lone caller's events never wait."""
NOBODY = str(UUID(int=0))
LONGEST_QUEUE = 1_000
"""Events of one environment that may wait in a process, less than half a second's; more are turned away."""

Committer = Groups[Submission, Outcome | Exception]
"""An event's outcome is its row, its refusal, `ALONE`, or the exception that its whole group met."""


def committer(environment: Environment) -> Committer:
    """One environment's thread that stores groups."""
    sizes = Sizes(LARGEST_GROUP, LONGEST_QUEUE, WORTH_STORING, LONGEST_GATHERING)
    return Groups(environment, settle, name="group-commit", sizes=sizes)


def rehearse() -> None:
    """Look for an agent that nobody has, as a group begins: the thread is then connected to what it asks."""
    moment = now()
    try:
        standing.of_agents([NOBODY], now=moment)
    except (DatabaseError, InterfaceError) as error:
        log.info("database not reached at the start: %s", type(error).__name__)
    memory.recall([NOBODY], at=moment.timestamp())


def settle(group: Sequence[Submission]) -> Sequence[Outcome | Exception]:
    """Store a group in the current environment; an exception settles all of it.

    Its look at the agents finds a connection that died meanwhile, and opens another.
    """
    try:
        return ingest_together(group)
    except (DatabaseError, InterfaceError) as error:
        log.warning("a group of %d events was not stored: %s", len(group), type(error).__name__)
        return [error] * len(group)
    except Exception:
        # Each event is tried alone and fails, or not, by itself.
        log.exception("a group of %d events met a defect", len(group))
        return [ALONE] * len(group)
