"""The database backend (`ENGINE`): Django's own, but for how it checks a connection and assumes a role."""

import logging
import select
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from django.conf import settings
from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.asyncio import async_unsafe
from django.utils.functional import cached_property
from psycopg import IsolationLevel
from psycopg.errors import Diagnostic, ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus

from compliance.observing import metrics
from compliance.stores.postgresql.bounded import BoundedConnection

log = logging.getLogger(__name__)

# For as long as the connection lasts.
_ASSUME: Final = (
    "SELECT set_config('role', rolname, false) FROM pg_roles"
    " WHERE rolname = %s AND pg_has_role(current_user, oid, 'MEMBER')"
    " AND has_schema_privilege(oid, current_schema(), 'USAGE')"
)
# It changes no row. Citus commits at one worker first and then at the coordinator, which may die in between.
# Where it knows of a change at the coordinator, too, it prepares both; of tables that it does not manage, as
# those of the audit log, it knows nothing.
_MARK: Final = "UPDATE tenancy_commitmark SET id = id WHERE id = 0"
_HAS_MARK: Final = "SELECT to_regclass('tenancy_commitmark') IS NOT NULL"
# PostgreSQL has no SQLSTATE of its own for it (`SyncRepWaitForLSN()`).
_WAIT_ENDED: Final = "canceling wait for synchronous replication"


class DatabaseWrapper(base.DatabaseWrapper):
    """Asks an idle connection whether it lives only where there is something to hear from it.

    It waits for answers as a `BoundedConnection` does. A server that ends, or ends a connection, closes the
    socket, which can be seen without a round trip; Django sends `SELECT 1` at the start of every request. The
    option `assume_role` counts only where the role exists, may be assumed and has its privileges; until an
    operator sees to that, the service goes on.
    """

    is_standby = False
    """Whether the server refused a write since it is no primary any more; the connection is then replaced."""
    is_unreplicated = False
    """Whether the last commit is on the primary's disk alone, though a standby was to have it too."""
    marks_commits = False
    """Whether commits over the connection are to take two phases, where several nodes are written."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(_timed)

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed or self.is_standby:
            return False
        news = select.poll()
        news.register(self.connection.fileno(), select.POLLIN)
        return bool(super().is_usable()) if self.errors_occurred or news.poll(0) else True

    @async_unsafe
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self.is_standby = self.is_unreplicated = False
        name = metrics.environment()
        self.isolation_level = IsolationLevel.READ_COMMITTED
        with metrics.timed(metrics.DATABASE_SECONDS, metrics.DATABASE_ERRORS, name, "connect"):
            connection = BoundedConnection.connect(**conn_params)
        connection.add_notice_handler(self._note)
        if settings.DATABASE_CITUS:
            found = connection.execute(_HAS_MARK).fetchone()
            self.marks_commits = bool(found and found[0])
            connection.rollback()
        return connection

    def _commit(self) -> None:
        if self.marks_commits and self.connection.info.transaction_status == TransactionStatus.INTRANS:
            # A transaction that may write nothing fails here, and is rolled back by its COMMIT.
            with self.wrap_database_errors, suppress(ReadOnlySqlTransaction):
                self.connection.execute(_MARK)
        super()._commit()  # type: ignore[misc]

    @cached_property
    def wrap_database_errors(self) -> "FailoverErrorWrapper":
        return FailoverErrorWrapper(self)

    def _note(self, diagnostic: Diagnostic) -> None:
        if (diagnostic.message_primary or "").startswith(_WAIT_ENDED):
            self.is_unreplicated = True

    def _configure_role(self, connection: Any) -> bool:
        role = self.settings_dict["OPTIONS"].get("assume_role")
        if not role:
            return False
        with connection.cursor() as cursor:
            if not cursor.execute(_ASSUME, [role]).rowcount:
                log.warning("database role %s cannot be assumed: run manage.py doctor", role)
        return True


class FailoverErrorWrapper(DatabaseErrorWrapper):
    """Raises OperationalError (a 503) where the database's nodes change their roles.

    A primary that became a standby refuses writes (25006). A commit whose wait for its standby was cancelled
    counts for PostgreSQL as done, with a warning: it may be lost with the primary, and so must not be
    acknowledged.
    """

    wrapper: DatabaseWrapper

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        options = self.wrapper.settings_dict["OPTIONS"].get("options", "")
        is_by_choice = "default_transaction_read_only=on" in options
        if isinstance(exc_value, ReadOnlySqlTransaction) and not is_by_choice:
            self.wrapper.errors_occurred = self.wrapper.is_standby = True
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)
        if self.wrapper.is_unreplicated and exc_type is None:
            self.wrapper.is_unreplicated = False
            log.error("a commit was not replicated and is not acknowledged")
            raise OperationalError("The commit was not replicated; it may be lost")


def _timed(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Time a statement of the ORM; the text is not looked at."""
    name = metrics.environment()
    with metrics.timed(metrics.DATABASE_SECONDS, metrics.DATABASE_ERRORS, name, "orm"):
        return execute(sql, params, many, context)
