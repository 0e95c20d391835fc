"""Jobs of many rows, done in portions: a killed process leaves whole portions, and another one goes on."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypeVar

from django.db import OperationalError
from django.db.models import Model, QuerySet

from compliance.core import environments
from compliance.core.errors import Unavailable
from compliance.core.tasks import enqueue
from compliance.stores import sql
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

Job = TypeVar("Job", bound=Model)


@dataclass(frozen=True)
class JobPhase(Generic[Job]):
    """The rows of a job that are `due`, and the work on at most `portion` of them.

    It gets rows locked in one transaction, and each in one of its own if that fails; where it is `alone`, one
    row outside of any, in the order of `due`, and returns 1 to go on. `give_up` gets the id of a row at which
    that fails too, and makes it due no more. A row that another process has locked is left for later.
    """

    due: Callable[[Job, datetime], QuerySet[Any]]
    work: Callable[[Job, list[Any], datetime], int | None]
    portion: int
    give_up: Callable[[Job, Any, datetime], object] | None = None
    alone: bool = False

    def advance(self, job: Job, now: datetime) -> int | None:
        """Work on a portion but rows locked by others; return how many are done, None if none was due."""
        due = self.due(job, now)
        if not self.alone:
            due = due.order_by("id")
        ids = list(due.values_list("id", flat=True)[: self.portion])
        if not ids:
            return None
        if not self.alone:
            try:
                return self._together(job, due, now)
            except Unavailable:
                raise
            except Exception as error:
                if isinstance(error, OperationalError) and not sql.is_of_lock(error):
                    raise
                # A row must not hold up the others.
                log.error("a portion of %s failed, its rows follow singly: %s", job.pk, sql.error_name(error))
        given_up: list[Any] = []

        def give_up(row_id: Any) -> None:
            if self.give_up is not None:
                self.give_up(job, row_id, now)
                given_up.append(row_id)

        return each(ids, partial(self._singly, job, due, now), postpone=give_up) + len(given_up)

    def _together(self, job: Job, due: QuerySet[Any], now: datetime) -> int:
        with environments.atomic():
            free = due.select_for_update(skip_locked=True, of=("self",), no_key=True)
            rows = list(free[: self.portion])
            if rows:
                self.work(job, rows, now)
        return len(rows)

    def _singly(self, job: Job, due: QuerySet[Any], now: datetime, row_id: Any) -> int:
        row = due.filter(id=row_id)
        try:
            if not self.alone:
                return self._together(job, row, now)
            rows = list(row)
            return self.work(job, rows, now) or 0 if rows else 0
        except OperationalError as error:
            if not sql.is_of_lock(error):
                raise
        return 0


@dataclass(frozen=True)
class Jobs(Generic[Job]):
    """The jobs of a kind. Their manager has `unfinished()`, and `idle(now)`: those that nobody works on."""

    model: type[Job]
    task: str
    phases: Callable[[Job], Sequence[JobPhase[Job]]]
    finish: Callable[[Job, datetime], object]

    @property
    def _jobs(self) -> Any:
        return self.model._default_manager

    def advance(self, *, job_id: Any, now: datetime) -> bool:
        """Work on a portion of a job, or finish it; return whether to go on at once. Safe to run twice.

        Raises: Unavailable, and OperationalError if the database is away or a lock is not had in time.
        """
        job = self._jobs.unfinished().filter(id=job_id).first()
        if job is None:
            return False
        for phase in self.phases(job):
            done = phase.advance(job, now)
            if done is not None:
                return done > 0
        self.finish(job, now)
        return False

    def work_off(self, *, job_id: Any, now: datetime) -> None:
        """Do a small job at once; what fails is left to the sweep."""
        try:
            while self.advance(job_id=job_id, now=now):
                pass
        except OperationalError as error:
            log.warning("%s of %s is left to the sweep: %s", self.task, job_id, sql.error_name(error))

    def run(self, *, job_id: str, now: datetime) -> None:
        """Work on a portion in the task; the next one waits its turn behind other tasks."""
        try:
            if self.advance(job_id=job_id, now=now):
                enqueue(self.task, job_id=job_id)
        except Unavailable as error:
            log.warning("%s of %s waits: %s", self.task, job_id, error.message)

    def sweep(self, *, now: datetime) -> int:
        """Have idle jobs gone on with, whose process died or which wait; return how many."""
        return sum(
            enqueue(self.task, job_id=str(one)) for one in self._jobs.idle(now).values_list("id", flat=True)
        )
