"""PgBouncer before the benchmark's databases, if BENCH_POOLER is `pgbouncer`: what a pooler costs."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import sql

from bench.harness.place import Place
from compliance.localdev.servers.pgbouncer import PgBouncer, keeps_prepared_statements, pgbouncer_program
from compliance.localdev.servers.postgres import DatabaseRole
from compliance.localdev.testing import SESSION

VARIABLE = "BENCH_POOLER"
URLS = ("DATABASE", "TEST_DATABASE")


@contextmanager
def pooled(place: Place, environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment of the service by way of a pooler, or as it is. Raises StepFailed."""
    program = pgbouncer_program()
    if os.environ.get(VARIABLE, "") != "pgbouncer" or program is None:
        yield dict(environment)
        return
    server = urlsplit(environment["DATABASE_URL"])
    role = DatabaseRole(unquote(server.username or ""), unquote(server.password or ""))
    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as connection:
        for name, value in SESSION.items():
            statement = sql.SQL("ALTER ROLE CURRENT_USER SET {} = {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Literal(value)))
    local = place.servers.layout.local
    pooler = PgBouncer(local / "pgbouncer", local / "pgbouncer-ports.json", server.port or 5432, [role])
    pooler.start()
    try:
        own = {"DATABASE_PREPARED_STATEMENTS": str(keeps_prepared_statements(program)).lower()}
        for name in URLS:
            url = environment[f"{name}_URL"]
            own |= {f"{name}_URL": pooler.url(url), f"{name}_DIRECT_URL": url}
        yield {**environment, **own}
    finally:
        pooler.stop()
