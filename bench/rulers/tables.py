"""A table of the events table's shape for the ruler: the same columns, indexes and constraints.

It is not vacuumed: what one measurement stored would be tidied up in the middle of another, at a fifth of
a processor. The service's own is, as everywhere.
"""

import psycopg
from psycopg import sql

NAME = "ruler_fastapi"
EVENTS = "events_behaviorevent"


def make(connection: psycopg.Connection) -> None:
    """An empty one, in the place of the one there was."""
    table = sql.Identifier(NAME)
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    form = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
    connection.execute(form.format(table, sql.Identifier(EVENTS)))
    connection.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(table))
