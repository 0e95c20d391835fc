"""`migrate` as the owner of the tables; afterwards it grants the service's role its privileges."""

import time
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError
from django.db.migrations.migration import Migration
from psycopg.errors import LockNotAvailable

from compliance.core.environments import AUDITOR_ALIASES
from compliance.stores import sql
from compliance.stores.database_owner import as_owner
from ops.privileges import granting

# A statement that waits for a lock makes all later ones on that table wait behind it: less than requests may.
LOCK_TIMEOUT = "300ms"
RETRY_DELAYS = (1, 2, 4, 8, 15, 30, 30, 30)  # seconds


class Command(migrate.Command):
    help = (
        f"{migrate.Command.help} Connects with DATABASE_OWNER_URL, and grants privileges. Waits at"
        f" most {LOCK_TIMEOUT} for a lock, lets others go first, and tries again {len(RETRY_DELAYS)} times."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        if alias in AUDITOR_ALIASES:
            raise CommandError(f"{alias} only reads: migrate the databases default and test")
        self._alias = alias
        with as_owner(alias):
            self._migrate(alias, *args, **options)
            if options["plan"] or options["check_unapplied"]:
                return
            changed = granting.grant(alias)
            if changed and self.verbosity >= 1:
                self.stdout.write(f"  Corrected {len(changed)} privileges")

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Limit each migration's waits: the one before may have changed or reset the limit."""
        if action == "apply_start":
            sql.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'", alias=self._alias)
        super().migration_progress_callback(action, migration, fake)

    def _migrate(self, alias: str, *args: Any, **options: Any) -> None:
        """Apply migrations, each in a transaction of its own, going on after one that met a lock."""
        delays = iter(RETRY_DELAYS)
        while True:
            try:
                sql.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'", alias=alias)
                super().handle(*args, **options)
            except OperationalError as error:
                delay = next(delays, None)
                if delay is None or not isinstance(error.__cause__, LockNotAvailable):
                    raise
                self.stderr.write(f"  A lock is held by another transaction; next try in {delay} s")
                time.sleep(delay)
            else:
                # Without an owner's role the connection is the service's, which goes on.
                sql.execute("RESET lock_timeout", alias=alias)
                return
