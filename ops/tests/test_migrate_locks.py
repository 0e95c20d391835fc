"""`migrate` beside transactions that hold locks."""

import io
import threading
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.db.migrations.migration import Migration

from ops.management.commands import migrate

pytestmark = pytest.mark.usefixtures("committed")


class Holder:
    """A transaction of another connection that holds a table from every other until it is released."""

    def __init__(self) -> None:
        self.held, self.released = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        connection = connections["default"].copy()
        connection.settings_dict.update(settings.DATABASE_OWNERS["default"])
        try:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("LOCK TABLE django_migrations IN ACCESS EXCLUSIVE MODE")
                self.held.set()
                self.released.wait(120)
                cursor.execute("ROLLBACK")
        finally:
            connection.close()


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Holder]:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr(migrate, "RETRY_DELAYS", (0,) * 3)
    found = Holder()
    found.thread.start()
    assert found.held.wait(60)
    yield found
    found.released.set()
    found.thread.join()


class ReleasesAtFirstRetry(io.StringIO):
    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self.holder = holder

    def write(self, text: str) -> int:
        self.holder.released.set()
        self.holder.thread.join()
        return super().write(text)


def test_migration_lets_others_go_first_and_goes_on(holder: Holder) -> None:
    said = ReleasesAtFirstRetry(holder)

    call_command("migrate", verbosity=0, interactive=False, stderr=said)

    assert said.getvalue().count("A lock is held by another transaction") == 1


def test_migration_gives_up_in_the_end(holder: Holder) -> None:
    said = io.StringIO()

    with pytest.raises(OperationalError, match="lock timeout"):
        call_command("migrate", verbosity=0, interactive=False, stderr=said)

    assert said.getvalue().count("A lock is held by another transaction") == 3


def test_each_migration_begins_with_a_limit_below_that_of_requests() -> None:
    command = migrate.Command()
    command.verbosity, command._alias = 0, "default"
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")  # as the migration before may have left it

        command.migration_progress_callback("apply_start", Migration("0002_next", "events"))

        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("300ms",)
        cursor.execute("RESET lock_timeout")
