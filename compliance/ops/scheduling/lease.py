"""The scheduler's lease, a row of the live database: taken, extended and given up by single statements.

Times are PostgreSQL's, but the holder trusts its lease only for as long as its own clock says: it counts from
before it asked.
"""

import json
import logging
import time
from collections.abc import Mapping
from typing import Final
from uuid import UUID, uuid4

from django.db import Error, connections

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.ops.models import SchedulerLease
from compliance.stores import sql

log = logging.getLogger(__name__)

NAME: Final = "beat"
LEASE_SECONDS: Final = 4.0
RENEW_SECONDS: Final = 1.0
_TABLE: Final = SchedulerLease._meta.db_table

# What the former holder sent stays; who extends a lease says what it sent since. An entry's time never goes
# back: a process that lost the lease and has it again may know of older messages only. Nor is it later than
# now: after a clock that was ahead, the entries would not be due until then.
_LATEST: Final = """
held.last_runs || coalesce((
    SELECT jsonb_object_agg(key, at) FROM (
        SELECT key, least(value::float8, extract(epoch FROM clock_timestamp())::float8) AS at
        FROM jsonb_each(%(sent)s::jsonb)
    ) AS told
    WHERE at > coalesce((held.last_runs ->> key)::float8, '-infinity')
), '{}')
"""
_HOLD: Final = f"""
INSERT INTO {_TABLE} AS held (name, holder, held_until, last_runs)
VALUES (%(name)s, %(me)s, clock_timestamp() + make_interval(secs => %(seconds)s), %(sent)s)
ON CONFLICT (name) DO UPDATE SET
    holder = excluded.holder, held_until = excluded.held_until,
    last_runs = {_LATEST}
WHERE held.holder = excluded.holder OR held.held_until < clock_timestamp()
RETURNING last_runs
"""  # noqa: S608  (only a table's name is put into the text)
_GIVE_UP: Final = f"""
UPDATE {_TABLE} AS held SET held_until = clock_timestamp(), last_runs = {_LATEST}
WHERE name = %(name)s AND holder = %(me)s
"""  # noqa: S608  (only a table's name is put into the text)

LastRuns = Mapping[str, float]
"""The Unix time of each entry's last message."""


class Lease:
    """One process's hold on the lease; for one thread."""

    def __init__(self, name: str = NAME) -> None:
        self._name = name
        self._me: UUID = uuid4()
        self._renewed_at = self._valid_until = float("-inf")

    @property
    def is_held(self) -> bool:
        """Whether no other process can have the lease now."""
        return time.monotonic() < self._valid_until

    @property
    def is_due(self) -> bool:
        """Whether to ask for the lease, or to extend it."""
        return time.monotonic() >= self._renewed_at + RENEW_SECONDS

    def hold(self, sent: LastRuns) -> LastRuns | None:
        """Take or extend the lease and record what was sent; return all that was, None if another has it.

        While PostgreSQL is away the lease holds until it runs out, and the answer is None.
        """
        asked_at = self._renewed_at = time.monotonic()
        try:
            with environments.use(Environment.LIVE):
                rows = sql.query(_HOLD, {**self._asked(sent), "seconds": LEASE_SECONDS})
        except Error as error:
            log.warning("the scheduler's lease was not extended: %s", type(error).__name__)
            connections[Environment.LIVE.alias].close()
            return None
        if not rows:
            self._valid_until = float("-inf")
            return None
        self._valid_until = asked_at + LEASE_SECONDS
        found: LastRuns = json.loads(rows[0][0]) if isinstance(rows[0][0], str) else rows[0][0]
        return found

    def give_up(self, sent: LastRuns) -> None:
        """Leave the lease to others at once, if this process has it."""
        self._valid_until = float("-inf")
        try:
            with environments.use(Environment.LIVE):
                sql.execute(_GIVE_UP, self._asked(sent))
        except Error as error:
            log.warning("the scheduler's lease was not given up and runs out: %s", type(error).__name__)

    def _asked(self, sent: LastRuns) -> dict[str, object]:
        return {"name": self._name, "me": self._me, "sent": json.dumps(dict(sent))}
