"""The statements from plain tables to distributed ones, derived from what the database's catalogue holds now.

Each commits by itself, and what is done is not done again, so that a run that broke off can be repeated.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from django.db import connections
from psycopg import sql as psql

from compliance.core.errors import ServiceError
from compliance.stores import sql
from ops.distribution.placements import COLUMN, DISTRIBUTED, MANAGED, REFERENCE

_NODES: Final = "SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards"
_EXTENSION: Final = "SELECT FROM pg_extension WHERE extname = 'citus'"
# Divided by hash, or copied to each node; the others in the list are on the coordinator.
_PLACED: Final = (
    "SELECT logicalrelid::regclass::text FROM pg_dist_partition"
    " WHERE partmethod = 'h' OR partmethod = 'n' AND repmodel = 't'"
)
_MANAGED: Final = "SELECT logicalrelid::regclass::text FROM pg_dist_partition WHERE partmethod = 'n'"
# Also of local tables that refer to placed ones: Citus would manage those tables too.
_FOREIGN_KEYS: Final = """
SELECT conrelid::regclass::text, conname::text FROM pg_constraint
WHERE contype = 'f' AND conparentid = 0
AND (conrelid::regclass::text = ANY(%(tables)s) OR confrelid::regclass::text = ANY(%(tables)s))
ORDER BY 1, 2
"""
# Unique indexes without the column by which the table is distributed; a constraint's has its kind.
_UNIQUE: Final = """
SELECT i.indrelid::regclass::text, c.relname::text, coalesce(k.contype::text, ''), i.indnullsnotdistinct,
    ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true) FROM generate_series(1, i.indnkeyatts) AS key (n)),
    coalesce(pg_get_expr(i.indpred, i.indrelid), '')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')
WHERE i.indisunique AND i.indrelid::regclass::text = ANY(%(tables)s)
AND NOT EXISTS (SELECT FROM pg_attribute a
    WHERE a.attrelid = i.indrelid AND a.attname = %(column)s AND a.attnum = ANY(i.indkey))
ORDER BY 1, 2
"""


class NotCitus(ServiceError):
    """The database has no extension `citus`, or no worker."""

    status = 409
    message = "The database is no Citus coordinator with workers"


def lay(alias: str) -> Iterator[psql.Composable]:
    """Carry out what is missing, over a connection of the owner's; yield each statement before it runs.

    Raises: NotCitus.
    """
    statements = missing(alias)
    with connections[alias].cursor() as cursor:
        # Our triggers refuse changes of the row at hand: they ask no other node.
        cursor.execute("SET citus.enable_unsafe_triggers = on")
        # DDL of several tables that refer to each other.
        cursor.execute("SET citus.multi_shard_modify_mode = 'sequential'")
        cursor.execute("SET statement_timeout = 0")
    for statement in statements:
        yield statement
        with connections[alias].cursor() as cursor:
            cursor.execute(statement)


def missing(alias: str) -> list[psql.Composable]:
    """Return the statements that are missing, in order. Raises: NotCitus."""
    if not sql.query(_EXTENSION, alias=alias) or not sql.query(_NODES, alias=alias)[0][0]:
        raise NotCitus()
    placed = {table for (table,) in sql.query(_PLACED, alias=alias)}
    divided = [table for table in DISTRIBUTED if table not in placed]
    copied = [table for table in REFERENCE if table not in placed]
    known = {table for (table,) in sql.query(_MANAGED, alias=alias)}
    managed = [table for table in MANAGED if table not in known]
    first = DISTRIBUTED[0]
    divide = psql.SQL("SELECT create_distributed_table({}, {}, colocate_with => {})")
    copy = psql.SQL("SELECT create_reference_table({})")
    manage = psql.SQL("SELECT citus_add_local_table_to_metadata({})")
    return [
        *prepare(alias, divided=divided, copied=copied),
        *(copy.format(psql.Literal(table)) for table in copied),
        *(
            divide.format(*map(psql.Literal, (table, COLUMN, "default" if table == first else first)))
            for table in divided
        ),
        *(manage.format(psql.Literal(table)) for table in managed),
    ]


def prepare(alias: str, *, divided: Sequence[str], copied: Sequence[str]) -> list[psql.Composable]:
    """Return the statements after which the tables can be placed; PostgreSQL takes them without Citus too."""
    referring = sql.query(_FOREIGN_KEYS, {"tables": [*divided, *copied]}, alias=alias)
    dropped = [_statement("ALTER TABLE {} DROP CONSTRAINT {}", table, name) for table, name in referring]
    return [*dropped, *_keys(alias, [*divided])]


def _keys(alias: str, tables: list[str]) -> Iterator[psql.Composable]:
    """Put the column behind those of each unique index, which then finds rows without a tenant as before."""
    found = sql.query(_UNIQUE, {"tables": tables, "column": COLUMN}, alias=alias)
    for table, name, kind, nulls_not_distinct, columns, predicate in found:
        listed = psql.SQL(", ").join([*map(psql.SQL, columns), psql.Identifier(COLUMN)])
        nulls = psql.SQL(" NULLS NOT DISTINCT" if nulls_not_distinct else "")
        if kind:
            words = psql.SQL("PRIMARY KEY" if kind == "p" else "UNIQUE")
            yield _statement(
                "ALTER TABLE {} DROP CONSTRAINT {}, ADD CONSTRAINT {} {}{} ({})",
                *(table, name, name, words, nulls, listed),
            )
            continue
        where = psql.SQL(f" WHERE {predicate}" if predicate else "")
        yield _statement(
            "DROP INDEX {}; CREATE UNIQUE INDEX {} ON {} ({}){}{}", name, name, table, listed, nulls, where
        )


def _statement(words: str, *parts: str | psql.Composable) -> psql.Composable:
    named = (psql.Identifier(one) if isinstance(one, str) else one for one in parts)
    return psql.SQL(words).format(*named)
