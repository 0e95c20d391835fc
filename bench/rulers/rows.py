"""Events as the service stored them, which the rulers store again: no fewer bytes for PostgreSQL."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import psycopg


@dataclass(frozen=True)
class StoredRow:
    """What an event's row holds besides its id and its times, as PostgreSQL's text."""

    tenant_id: str
    agent_id: str
    action_type: str
    risk_score: str
    risk_band: str
    details: str
    session_id: str
    reasons: str
    model_version: str


COLUMNS = tuple(StoredRow.__dataclass_fields__)
ALL_COLUMNS = ", ".join(("id", "occurred_at", "received_at", *COLUMNS))


def newest(url: str, count: int) -> list[StoredRow]:
    """The last `count` events that were stored."""
    wanted = ", ".join(f"{column}::text" for column in COLUMNS)
    statement = f"SELECT {wanted} FROM events_behaviorevent ORDER BY id DESC LIMIT {count}"
    with psycopg.connect(url) as connection:
        return [StoredRow(*row) for row in connection.execute(statement.encode())]


def literals(row: StoredRow) -> str:
    """Its values as they stand in a statement."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in astuple(row))


def mean_size(rows: Sequence[StoredRow]) -> float:
    """Bytes of text in a row."""
    return sum(len(text) for row in rows for text in astuple(row)) / len(rows)
