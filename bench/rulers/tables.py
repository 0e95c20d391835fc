"""Tables of the events table's shape for the rulers: the same columns, indexes and constraints.

They are not vacuumed: what one measurement stored would be tidied up in the middle of another, at a fifth of
a processor. The service's own table is, as everywhere.
"""

import psycopg
from psycopg import sql

NAMES = ("ruler_fastapi", "ruler_drf")
EVENTS = "events_behaviorevent"


def make(connection: psycopg.Connection) -> None:
    """Empty ones, in the place of those there were."""
    for name in NAMES:
        table = sql.Identifier(name)
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
        form = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
        connection.execute(form.format(table, sql.Identifier(EVENTS)))
        connection.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(table))
