"""Beat, of which several may run: one at a time sends the tasks that are due, each at its own times."""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import floor
from typing import Any, Final
from uuid import uuid4

from celery.beat import Scheduler
from celery.schedules import schedstate, schedule
from django.db import Error, connections

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from ops.models import SchedulerLease

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 10.0
RENEW_SECONDS: Final = 3.0
"""The longest pause between two looks at the lease."""
_NEVER: Final = datetime.fromtimestamp(0, UTC)
_TABLE: Final = SchedulerLease._meta.db_table
_HOLD: Final = f"""
INSERT INTO {_TABLE} AS held (name, holder, held_until)
VALUES ('beat', %(me)s, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE held.holder = excluded.holder OR held.held_until < clock_timestamp()
"""  # noqa: S608  (only a table's name is put into the text)
_GIVE_UP: Final = f"UPDATE {_TABLE} SET held_until = clock_timestamp() WHERE holder = %(me)s"  # noqa: S608


class Staggered(schedule):
    """Due at the Unix times `offset`, `offset + period` and so on (seconds), however late the last was."""

    def __init__(self, period: float, offset: float) -> None:
        super().__init__(period)
        self.offset = offset

    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """Return the time until the next run is due; zero or less when it is."""
        now = self.maybe_make_aware(self.now()).timestamp()
        # A clock that was ahead and is set back may have told a time to come.
        last = min(self.maybe_make_aware(last_run_at).timestamp(), now)
        runs = floor((last - self.offset) / self.seconds) + 1
        return timedelta(seconds=self.offset + runs * self.seconds - now)

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Return whether it is due, and the seconds until it is to be asked again."""
        remaining = self.remaining_estimate(last_run_at).total_seconds()
        if remaining > 0:
            return schedstate(is_due=False, next=remaining)
        return schedstate(is_due=True, next=self.remaining_estimate(self.now()).total_seconds())


def staggered(periods: Mapping[str, float]) -> dict[str, Staggered]:
    """Return a schedule for each name and its seconds; those of one period spread evenly over it."""
    alike: dict[float, list[str]] = {}
    for name, period in sorted(periods.items()):
        alike.setdefault(period, []).append(name)
    return {
        name: Staggered(period, (place + 0.5) / len(names) * period)
        for period, names in alike.items()
        for place, name in enumerate(names)
    }


class LeasedScheduler(Scheduler):
    """Celery's scheduler under a lease, a row of the live database.

    Any number may run; one sends, another follows within seconds. A new holder first sends each task once,
    since it does not know what the former one has sent; each is safe to run twice. The lease's times are
    PostgreSQL's, but the holder trusts it only for as long as its own clock says, from before it asked.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        self._me = uuid4()
        self._renewed_at = self._valid_until = float("-inf")
        self._was_held = False
        self._looked_at = 0.0
        super().__init__(app, **{**options, "max_interval": RENEW_SECONDS})

    @property
    def is_held(self) -> bool:
        """Return whether no other process can have the lease now."""
        return time.monotonic() < self._valid_until

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, one task a call; return the seconds until the next call."""
        if not self.is_held or time.monotonic() >= self._renewed_at + RENEW_SECONDS:
            self._renew()
        if not self.is_held:
            self._was_held = False
            return RENEW_SECONDS
        if (wall := time.time()) < self._looked_at:
            self._heap = None  # its times are the clock's, which was set back
        self._looked_at = wall
        delay: float = super().tick(*args, **kwargs)
        return min(delay, max(0.0, self._renewed_at + RENEW_SECONDS - time.monotonic()))

    def close(self) -> None:
        """Give the lease up: the next scheduler need not wait for its end."""
        if self._was_held:
            self._was_held, self._valid_until = False, float("-inf")
            self._ask(_GIVE_UP)
        super().close()

    def _renew(self) -> None:
        """Take or extend the lease; while PostgreSQL is away it holds until it runs out."""
        asked_at = self._renewed_at = time.monotonic()
        found = self._ask(_HOLD)
        if found is None:
            return
        self._valid_until = asked_at + LEASE_SECONDS if found else float("-inf")
        if found and not self._was_held:
            log.info("this scheduler sends the tasks from now on")
            for entry in self.schedule.values():
                entry.last_run_at = _NEVER
            self._heap = None
        self._was_held = bool(found)

    def _ask(self, statement: str) -> int | None:
        """Return how many rows a statement wrote; None if PostgreSQL does not answer."""
        try:
            with environments.use(Environment.LIVE):
                return sql.execute(statement, {"me": self._me, "seconds": LEASE_SECONDS})
        except Error as error:
            log.warning("the scheduler's lease: %s", type(error).__name__)
            connections[Environment.LIVE.alias].close()
            return None
