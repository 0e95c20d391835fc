"""Jobs of many rows, done in portions: a killed process leaves whole portions, and another one goes on."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from django.db import OperationalError
from django.db.models import Model, Q, QuerySet

from compliance.core import environments
from compliance.core.errors import Unavailable
from compliance.core.tasks import enqueue, enqueue_on_commit
from compliance.stores import sql
from compliance.stores.rows import TenantRows
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

Job = TypeVar("Job", bound=Model)

PATIENCE: Final = timedelta(seconds=5)
"""How long a portion may take before another process goes on with the job."""


class JobRows(TenantRows[Job]):
    """Jobs of the current environment; `worked_at` is when a portion was last done.

    A model without it has an `idle` of its own.
    """

    is_unfinished: ClassVar[Q]

    def unfinished(self) -> Self:
        return self.filter(self.is_unfinished)

    def idle(self, now: datetime) -> Self:
        """Filter by the unfinished jobs on which no process works."""
        return self.unfinished().filter(worked_at__lte=now - PATIENCE).order_by("worked_at", "id")


@dataclass(frozen=True)
class JobPhase(Generic[Job]):
    """The rows of a job that are `due`, and the `work` on at most `portion` of them in one transaction.

    Rows that another process has locked are left for later. If the transaction fails, each row gets one of
    its own; `give_up` gets the id of a row that fails again, makes it due no more and returns 1. Where `work`
    is done `alone`, it gets one row outside of any transaction, in the order of `due`, and returns 1, or 0 if
    the row has to wait.
    """

    due: Callable[[Job, datetime], QuerySet[Any]]
    work: Callable[[Job, list[Any], datetime], int | None]
    portion: int
    give_up: Callable[[Job, Any, datetime], int]
    alone: bool = False

    def advance(self, job: Job, now: datetime) -> int:
        """Work on a portion of the due rows; return how many are done or given up."""
        due = self.due(job, now)
        if not self.alone:
            due = due.order_by("id")
            try:
                return self._work_on(due, job, now)
            except Unavailable:
                raise
            except Exception as error:
                if isinstance(error, OperationalError) and not sql.is_of_lock(error):
                    raise
                # A row must not hold up the others.
                log.error("a portion of %s failed, its rows follow singly: %s", job.pk, sql.error_name(error))
        failed: list[Any] = []
        ids = due.values_list("id", flat=True)[: self.portion]
        done = each(ids, lambda row_id: self._singly(due.filter(id=row_id), job, now), postpone=failed.append)
        return done + sum(self.give_up(job, row_id, now) for row_id in failed)

    def _singly(self, row: QuerySet[Any], job: Job, now: datetime) -> int:
        try:
            return self._work_on(row, job, now)
        except OperationalError as error:
            if not sql.is_of_lock(error):
                raise
        return 0

    def _work_on(self, due: QuerySet[Any], job: Job, now: datetime) -> int:
        if self.alone:
            rows = list(due)
            return (self.work(job, rows, now) or 0) if rows else 0
        with environments.atomic():
            free = due.select_for_update(skip_locked=True, of=("self",), no_key=True)
            rows = list(free[: self.portion])
            if rows:
                self.work(job, rows, now)
        return len(rows)


@dataclass(frozen=True)
class Jobs(Generic[Job]):
    """The jobs of a kind; the manager of `model` is one of `JobRows`.

    `task` names the task that works on a portion. The request itself does a job of at most `at_once` rows.
    """

    model: type[Job]
    task: str
    at_once: int
    phases: Callable[[Job], Sequence[JobPhase[Job]]]
    finish: Callable[[Job, datetime], object]

    def advance(self, *, job_id: Any, now: datetime) -> bool:
        """Work on a portion of a job, or finish it; return whether to go on at once. Safe to run twice.

        Raises: Unavailable, and OperationalError if the database is away or a lock is not had in time.
        """
        jobs: Any = self.model._default_manager
        job = jobs.unfinished().filter(id=job_id).first()
        if job is None:
            return False
        for phase in self.phases(job):
            if phase.due(job, now).exists():
                return phase.advance(job, now) > 0
        self.finish(job, now)
        return False

    def start(self, job: Job, rows: int, now: datetime) -> Job:
        """Work off a job of few rows, have the task work on a larger one; the sweep does what fails."""
        if rows > self.at_once:
            enqueue_on_commit(self.task, job_id=str(job.pk))
        else:
            self.work_off(job_id=job.pk, now=now)
            job.refresh_from_db()
        return job

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
        jobs: Any = self.model._default_manager
        return sum(enqueue(self.task, job_id=str(one.pk)) for one in jobs.idle(now).only("id"))
