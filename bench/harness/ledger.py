"""Every acknowledged event is looked for in the table, once and only once."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

EVENTS = "events_behaviorevent"
CLOCK_SECONDS = 5.0
"""How far the server's clock may be behind ours."""


@dataclass(frozen=True)
class Account:
    """What became of a part's acknowledged events. `unanswered`: stored, though nobody was told."""

    part: str
    acknowledged: int
    stored: int
    lost: int
    doubled: int

    @property
    def unanswered(self) -> int:
        return self.stored - self.acknowledged + self.lost

    @property
    def holds(self) -> bool:
        return self.lost == 0 and self.doubled == 0

    @property
    def words(self) -> str:
        """As a line of the report has it."""
        counted = f"{self.acknowledged:,} acknowledged, {self.lost} lost, {self.doubled} doubled"
        return f"{counted}, {self.unanswered} stored unanswered{'' if self.holds else '   ← WRONG'}"


@dataclass
class Ledger:
    """Asks the database at `url` about events whose session ids begin with `mark`."""

    url: str
    mark: str
    accounts: list[Account] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    def check(self, part: str, ids: Sequence[bytes], *, since: float, session: str) -> Account:
        """Compare ids acknowledged since that Unix time with the rows received since then.

        `session` is below the session ids of all these events and above those of earlier ones.
        """
        with psycopg.connect(self.url) as connection:
            connection.execute("CREATE TEMPORARY TABLE acknowledged (id uuid) ON COMMIT DROP")
            with connection.cursor().copy("COPY acknowledged FROM STDIN") as copy:
                copy.write(b"".join(event_id + b"\n" for event_id in ids))
            given = {"floor": floor_id(since - CLOCK_SECONDS), "mark": f"{self.mark}%", "session": session}
            connection.execute(
                f"CREATE TEMPORARY TABLE stored ON COMMIT DROP AS SELECT id, session_id FROM {EVENTS} "
                "WHERE id >= %(floor)s AND session_id LIKE %(mark)s AND session_id > %(session)s",
                given,
            )
            found = connection.execute(
                "SELECT (SELECT count(*) FROM stored), "
                "(SELECT count(DISTINCT id) FROM acknowledged WHERE NOT EXISTS "
                "(SELECT 1 FROM stored WHERE stored.id = acknowledged.id)), "
                "(SELECT count(*) - count(DISTINCT session_id) FROM stored), "
                "(SELECT count(*) - count(DISTINCT id) FROM acknowledged)"
            ).fetchone()
        stored, lost, doubled, repeated = map(int, found or (0, 0, 0, 0))
        account = Account(part, len(ids), stored, lost, doubled + repeated)
        self.accounts.append(account)
        return account

    def bands(self) -> str:
        """How the run's events scored, in words; they are meant to be ordinary."""
        with psycopg.connect(self.url) as connection:
            found = connection.execute(
                f"SELECT risk_band, count(*) FROM {EVENTS} WHERE id >= %s AND session_id LIKE %s "
                "GROUP BY risk_band ORDER BY count(*) DESC",
                [floor_id(self.began), f"{self.mark}%"],
            ).fetchall()
        total = sum(int(count) for _, count in found)
        return ", ".join(f"{band} {int(count) / total:.1%}" for band, count in found) or "none"

    @property
    def holds(self) -> bool:
        return all(account.holds for account in self.accounts)


def floor_id(moment: float) -> str:
    """The smallest UUIDv7 of a Unix time."""
    digits = f"{round(moment * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-000000000000"


def now() -> float:
    """Unix time, as the ids have it."""
    return time.time()
