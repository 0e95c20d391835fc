"""The role that owns the tables, for what the service's own role may not do: migrations and grants."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections


@contextmanager
def as_owner(alias: str) -> Iterator[None]:
    """Connect this thread to the database `alias` as its owner inside the block.

    Without DATABASE_OWNER_URL the connection stays as it is: DATABASE_URL's role is then the owner.
    """
    credentials = settings.DATABASE_OWNERS[alias]
    if not credentials:
        yield
        return
    service = connections[alias]
    owner = service.copy()
    owner.settings_dict.update(credentials)
    connections[alias] = owner
    try:
        yield
    finally:
        owner.close()
        connections[alias] = service
