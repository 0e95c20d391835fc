"""`migrate` as the owner of the tables; afterwards it grants the service's role its privileges."""

from typing import Any

from django.core.management.commands import migrate

from compliance.ops.privileges import granting
from compliance.stores.database_owner import as_owner


class Command(migrate.Command):
    help = f"{migrate.Command.help} Connects with DATABASE_OWNER_URL, and grants the service's privileges."

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        with as_owner(alias):
            super().handle(*args, **options)
            if options["plan"] or options["check_unapplied"]:
                return
            changed = granting.grant(alias)
            if changed and self.verbosity >= 1:
                self.stdout.write(f"  Corrected {len(changed)} privileges")
