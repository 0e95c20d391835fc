"""Live and test: which environment the running code acts in, and its database.

Every row of the service lives in the database of its environment; Django's own tables (users,
sessions, admin log) and what hangs on them live in `default`, the live database. The environment is
carried by a context variable: code that touches a row outside `use()` fails loudly. A row that was read
belongs to the database it came from: what is read of it later (a deferred column, a relation) comes from
there, whatever the environment is by then, and it is written only inside its own environment.

Django's bare `transaction.atomic()` and `on_commit()` ignore routers and act on `default`; use
`atomic()` and `on_commit()` of this module instead.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

from django.db import connections, transaction
from django.db.models import Model

ALWAYS_LIVE_APPS = frozenset({"auth", "contenttypes", "sessions", "admin"})
ALWAYS_LIVE_MODELS = frozenset({("tenancy", "membership")})


class Environment(StrEnum):
    """The two worlds; the value is what the API shows and what key prefixes carry."""

    LIVE = "live"
    TEST = "test"

    @property
    def alias(self) -> str:
        """The key of this environment's database in `DATABASES`."""
        return "default" if self is Environment.LIVE else "test"


class EnvironmentNotSet(RuntimeError):
    """A row was touched outside `use()`; a defect of the calling code."""


class WrongEnvironment(RuntimeError):
    """A row of one environment was about to be written in the other; a defect of the calling code."""


_current: ContextVar[Environment | None] = ContextVar("environment", default=None)


def current() -> Environment:
    """The environment the calling code acts in; raises `EnvironmentNotSet` outside `use()`."""
    environment = _current.get()
    if environment is None:
        raise EnvironmentNotSet("Choose an environment first: environments.use(Environment.LIVE)")
    return environment


def current_or_none() -> Environment | None:
    """As `current()`, but None outside `use()`; for logs and labels."""
    return _current.get()


def leave() -> None:
    """Act in no environment until the end of the enclosing `use()`: what touches a row must choose one."""
    _current.set(None)


@contextmanager
def use(environment: Environment) -> Iterator[Environment]:
    """Act in `environment` inside the block."""
    token = _current.set(environment)
    try:
        yield environment
    finally:
        _current.reset(token)


def atomic(*, savepoint: bool = True, durable: bool = False) -> AbstractContextManager[None]:
    """A transaction on the current environment's database."""
    return transaction.Atomic(current().alias, savepoint, durable)


def in_transaction() -> bool:
    """Whether the calling thread is inside a transaction on the current environment's database."""
    return connections[current().alias].in_atomic_block


def on_commit(callback: Callable[[], Any], *, robust: bool = False) -> None:
    """Call `callback` once the current environment's transaction has committed."""
    transaction.on_commit(callback, using=current().alias, robust=robust)


@contextmanager
def snapshot(*, timeout_seconds: int) -> Iterator[None]:
    """Reads that belong together and may take their time: one REPEATABLE READ, READ ONLY transaction.

    Inside another transaction it is that one, with its own isolation. `timeout_seconds` bounds each query.
    """
    connection = connections[current().alias]
    is_outermost = not connection.in_atomic_block
    with atomic(), connection.cursor() as cursor:
        if is_outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL statement_timeout = %s", [f"{timeout_seconds}s"])
        yield


class EnvironmentRouter:
    """Sends every model to the database of the current environment (see the module's docstring).

    Django's hint `instance` is the row that is read on, followed to another, or written.
    """

    def db_for_read(self, model: type[Model], *, instance: Model | None = None, **hints: Any) -> str:
        return "default" if _is_always_live(model) else _origin(instance) or current().alias

    def db_for_write(self, model: type[Model], *, instance: Model | None = None, **hints: Any) -> str:
        if _is_always_live(model):
            return "default"
        alias, origin = current().alias, _origin(instance)
        if origin is not None and origin != alias:
            raise WrongEnvironment(f"{model._meta.label} of database {origin} written in {alias}")
        return alias

    def allow_relation(self, obj1: Model, obj2: Model, **hints: Any) -> bool:
        return obj1._state.db == obj2._state.db

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool:
        always_live = app_label in ALWAYS_LIVE_APPS or (app_label, model_name) in ALWAYS_LIVE_MODELS
        return db == "default" or not always_live


def _is_always_live(model: type[Model]) -> bool:
    label, name = model._meta.app_label, model._meta.model_name
    return label in ALWAYS_LIVE_APPS or (label, name) in ALWAYS_LIVE_MODELS


def _origin(row: Model | None) -> str | None:
    """The database that a row was read from or written to; None for one that no database has yet."""
    return None if row is None else row._state.db
