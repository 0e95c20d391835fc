"""The database backend (`ENGINE`): Django's own, but for how it checks a connection and assumes a role."""

import logging
import select
from typing import Any, Final

from django.db.backends.postgresql import base

log = logging.getLogger(__name__)

# For as long as the connection lasts.
_ASSUME: Final = (
    "SELECT set_config('role', rolname, false) FROM pg_roles"
    " WHERE rolname = %s AND pg_has_role(current_user, oid, 'MEMBER')"
    " AND has_schema_privilege(oid, current_schema(), 'USAGE')"
)


class DatabaseWrapper(base.DatabaseWrapper):
    """Asks an idle connection whether it lives only where there is something to hear from it.

    A server that ends, or ends a connection, closes the socket, which can be seen without a round trip;
    Django sends `SELECT 1` at the start of every request. The option `assume_role` counts only where the
    role exists, may be assumed and has its privileges; until an operator sees to that, the service goes on.
    """

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        if self.errors_occurred or _has_news(self.connection.fileno()):
            return bool(super().is_usable())
        return True

    def _configure_role(self, connection: Any) -> bool:
        role = self.settings_dict["OPTIONS"].get("assume_role")
        if not role:
            return False
        with connection.cursor() as cursor:
            if not cursor.execute(_ASSUME, [role]).rowcount:
                log.warning("database role %s cannot be assumed: run manage.py doctor", role)
        return True


def _has_news(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
