"""`migrate` as the owner of the tables; afterwards it grants the service's role its privileges."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from compliance.core.environments import AUDITOR_ALIASES
from compliance.ops.privileges import granting
from compliance.stores.database_owner import as_owner


class Command(migrate.Command):
    help = f"{migrate.Command.help} Connects with DATABASE_OWNER_URL, and grants the service's privileges."

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        if alias in AUDITOR_ALIASES:
            raise CommandError(f"{alias} only reads: migrate the databases default and test")
        with as_owner(alias):
            super().handle(*args, **options)
            if options["plan"] or options["check_unapplied"]:
                return
            changed = granting.grant(alias)
            if changed and self.verbosity >= 1:
                self.stdout.write(f"  Corrected {len(changed)} privileges")
