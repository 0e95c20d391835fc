"""A scheduler for `celery beat` that sends while it holds the lease, and goes on where the last one ended."""

import logging
from datetime import UTC, datetime
from typing import Any, Final

from celery.beat import ScheduleEntry, Scheduler

from compliance.ops.scheduling.lease import LastRuns, Lease

log = logging.getLogger(__name__)

STANDBY_SECONDS: Final = 0.5
"""How often a scheduler without the lease looks whether it is free."""
MAX_SECONDS: Final = 0.5
"""The longest pause between two looks at the schedule: the lease is extended in between."""


class LeasedScheduler(Scheduler):
    """Celery's scheduler under a lease. Any number may run; one sends, and another follows within seconds."""

    def __init__(self, app: Any, **options: Any) -> None:
        self._lease = Lease()
        self._sent: dict[str, float] = {}
        self._was_held = False
        super().__init__(app, **{**options, "max_interval": MAX_SECONDS})

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, one task a call; return the seconds until the next call."""
        if self._lease.is_due or not self._lease.is_held:
            self._renew()
        if not self._lease.is_held:
            self._was_held = False
            return STANDBY_SECONDS
        delay: float = super().tick(*args, **kwargs)
        return delay

    def reserve(self, entry: ScheduleEntry) -> Any:
        """Note when an entry's message is sent, which is next."""
        self._sent[str(entry.name)] = datetime.now(UTC).timestamp()
        return super().reserve(entry)

    def close(self) -> None:
        """Give the lease up: the next scheduler need not wait for its end."""
        if self._was_held:
            self._lease.give_up(self._sent)
            self._was_held = False
        super().close()

    def _renew(self) -> None:
        found = self._lease.hold(self._sent)
        if found is None:
            return
        self._sent.clear()
        if not self._was_held:
            log.info("this scheduler sends the tasks from now on")
            self._go_on_from(found)
        self._was_held = True
        self._take_back_the_future()

    def _take_back_the_future(self) -> None:
        """Let no entry wait for a time that a clock has told too early: it was ahead, and was set back."""
        moment = datetime.now(UTC)
        early = [
            entry for entry in self.schedule.values() if entry.last_run_at and entry.last_run_at > moment
        ]
        for entry in early:
            entry.last_run_at = moment
        if early:
            self._heap = None

    def _go_on_from(self, last_runs: LastRuns) -> None:
        """Take each entry's last run from what the former holder sent."""
        for name, entry in self.schedule.items():
            if name in last_runs:
                entry.last_run_at = datetime.fromtimestamp(last_runs[name], UTC)
        self._heap = None
