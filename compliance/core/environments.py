"""Live and test: the environment in which the running code acts, and its database.

Each environment has a database of its own; Django's tables (users, sessions, admin log) and the memberships
are in `default`, the live one. A context variable carries the environment: code that touches a row outside
`use()` fails. A row's deferred columns and relations are read from the database it came from, and the row is
written only in its own environment. Each database has a second connection, of a role that may only read the
audit log: inside `auditing()` everything is read over it.

Django's bare `transaction.atomic()` and `on_commit()` act on `default`: use those of this module instead.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import partial
from typing import Any, Final

from django.db import connections, transaction
from django.db.models import Model

ALWAYS_LIVE_APPS = frozenset(
    {"auth", "contenttypes", "sessions", "admin", "people", "account", "mfa", "usersessions", "django_cache"}
)
ALWAYS_LIVE_MODELS = frozenset({("tenancy", "membership")})


class Environment(StrEnum):
    """The two environments; API and key prefixes show the value."""

    LIVE = "live"
    TEST = "test"

    @property
    def alias(self) -> str:
        """The key of this environment's database in `DATABASES`."""
        return "default" if self is Environment.LIVE else "test"

    @property
    def auditor_alias(self) -> str:
        """The key in `DATABASES` of the same database as the auditor's role may read it."""
        return f"{self.alias}_auditor"


AUDITOR_ALIASES = frozenset(environment.auditor_alias for environment in Environment)


class EnvironmentNotSet(RuntimeError):
    """A row was touched outside `use()`; a defect of the calling code."""


class WrongEnvironment(RuntimeError):
    """A row of one environment was about to be written in the other; a defect of the calling code."""


_current: ContextVar[Environment | None] = ContextVar("environment", default=None)
BEYOND_SECONDS: Final = 5.0
"""So much longer than the server's own `statement_timeout`; a server that has not answered by then hangs."""
SERVING_SECONDS: Final = 30.0 + BEYOND_SECONDS
"""Of processes that serve requests."""

_is_auditing: ContextVar[bool] = ContextVar("is_auditing", default=False)
_limit_here: ContextVar[float | None] = ContextVar("answer_limit", default=None)


def current() -> Environment:
    """The environment the calling code acts in; raises `EnvironmentNotSet` outside `use()`."""
    environment = _current.get()
    if environment is None:
        raise EnvironmentNotSet("Choose an environment first: environments.use(Environment.LIVE)")
    return environment


def current_or_none() -> Environment | None:
    """As `current()`, but None outside `use()`; for logs."""
    return _current.get()


def alias() -> str:
    """The key of the connection in use: the current environment's, or its auditor's inside `auditing()`."""
    environment = current()
    return environment.auditor_alias if _is_auditing.get() else environment.alias


def is_auditing() -> bool:
    """Return whether the calling code is inside `auditing()`."""
    return _is_auditing.get()


def leave() -> None:
    """Act in no environment until the end of the enclosing `use()`."""
    _current.set(None)


@contextmanager
def _holding(variable: ContextVar[Any], value: Any = True) -> Iterator[Any]:
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


use: Callable[[Environment], AbstractContextManager[Environment]] = partial(_holding, _current)
"""Act in an environment inside the block."""
auditing: Callable[..., AbstractContextManager[bool]] = partial(_holding, _is_auditing)
"""Use the auditor's connection inside the block; after `auditing(False)`, the environment's own."""
limit_answers: Callable[[float], AbstractContextManager[float]] = partial(_holding, _limit_here)
"""Wait so many seconds for each answer inside the block."""


def atomic() -> AbstractContextManager[None]:
    """A transaction on the current environment's database."""
    return transaction.atomic(using=alias())


def in_transaction() -> bool:
    """Return whether the calling thread is inside a transaction on the current environment's database."""
    return connections[alias()].in_atomic_block


def on_commit(callback: Callable[[], Any], *, robust: bool = False) -> None:
    """Call `callback` once the current environment's transaction has committed."""
    transaction.on_commit(callback, using=alias(), robust=robust)


class AnswerLimit:
    """How long each answer is waited for in this process; None is for as long as it takes."""

    of_process: float | None = None


def answer_limit() -> float | None:
    """Return the seconds that an answer is waited for; None is without an end."""
    here = _limit_here.get()
    return AnswerLimit.of_process if here is None else here


@contextmanager
def snapshot(*, timeout_seconds: int) -> Iterator[None]:
    """A REPEATABLE READ, READ ONLY transaction; inside another one, that one as it is.

    `timeout_seconds` bounds each query.
    """
    is_outermost = not in_transaction()
    with patient(timeout_seconds=timeout_seconds):
        if is_outermost:
            with connections[alias()].cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def patient(*, timeout_seconds: int) -> Iterator[None]:
    """A transaction each query of which may take so long; inside another one, that one as it is."""
    is_outermost = not in_transaction()
    longest = limit_answers(timeout_seconds + BEYOND_SECONDS)
    with longest, atomic(), connections[alias()].cursor() as cursor:
        if is_outermost:
            cursor.execute("SET LOCAL statement_timeout = %s", [f"{timeout_seconds}s"])
        yield


class EnvironmentRouter:
    """Send every model to the database of the current environment.

    Django's hint `instance` is the row that is read, followed to another, or written.
    """

    def db_for_read(self, model: type[Model], *, instance: Model | None = None, **hints: Any) -> str:
        if _is_always_live(model._meta.app_label, model._meta.model_name):
            return "default"
        origin = None if instance is None else instance._state.db  # None of a new row
        return origin or alias()

    def db_for_write(self, model: type[Model], *, instance: Model | None = None, **hints: Any) -> str:
        if _is_always_live(model._meta.app_label, model._meta.model_name):
            return "default"
        used, origin = alias(), None if instance is None else instance._state.db
        if origin is not None and origin != used:
            raise WrongEnvironment(f"{model._meta.label} of database {origin} written in {used}")
        return used

    def allow_relation(self, obj1: Model, obj2: Model, **hints: Any) -> bool:
        return obj1._state.db == obj2._state.db

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool:
        if db in AUDITOR_ALIASES:
            return False
        return db == "default" or not _is_always_live(app_label, model_name)


def _is_always_live(app_label: str, model_name: str | None) -> bool:
    return app_label in ALWAYS_LIVE_APPS or (app_label, model_name) in ALWAYS_LIVE_MODELS
