"""`migrate`, as the owner of the tables, and then the privileges of the service's role."""

from typing import Any

from django.core.management.commands import migrate

from compliance.database_owner import as_owner
from compliance.wiring import granting


class Command(migrate.Command):
    help = f"{migrate.Command.help} Works over DATABASE_OWNER_URL, and grants what the service's role needs."

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        with as_owner(alias):
            super().handle(*args, **options)
            if options["plan"] or options["check_unapplied"]:
                return
            changed = granting.grant(alias)
            if changed and self.verbosity >= 1:
                self.stdout.write(f"  Corrected {len(changed)} privileges")
