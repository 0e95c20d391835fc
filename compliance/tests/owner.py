"""What tests do as the owner of the tables, beside the service's own connections."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

from compliance import environments
from compliance.database_owner import as_owner


def execute_as_owner(*statements: str) -> None:
    """Run each, and commit it, in the current environment's database."""
    alias = environments.current().alias
    with as_owner(alias), connections[alias].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def service_role() -> str:
    """The role that the tests, as the service, connect as; quoted."""
    return '"{}"'.format(connections[environments.current().alias].settings_dict["USER"])


@contextmanager
def locked_table(lock: str) -> Iterator[None]:
    """A table under a lock, as `LOCK TABLE` takes it, in a transaction of the owner's."""
    alias = environments.current().alias
    with as_owner(alias):
        owner = connections[alias]
        with environments.atomic(), owner.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {lock}")
            yield
