"""The database backend (`ENGINE`): Django's own, but for how it checks a connection that was kept open."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Asks an idle connection whether it lives only where there is something to hear from it.

    A server that ends, or ends a connection, closes the socket, which can be seen without a round trip;
    Django sends `SELECT 1` at the start of every request.
    """

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        if self.errors_occurred or _has_news(self.connection.fileno()):
            return bool(super().is_usable())
        return True


def _has_news(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
