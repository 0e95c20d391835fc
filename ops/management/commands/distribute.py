"""`distribute`: lay the tables over the nodes of a Citus cluster, as their owner."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from compliance.core.environments import Environment
from compliance.stores.database_owner import as_owner
from ops.distribution import laying
from ops.privileges import granting


class Command(BaseCommand):
    help = (
        "Distribute tables by tenant on Citus; run it after migrate, on the coordinator's databases. Connects"
        " with DATABASE_OWNER_URL. What is distributed stays as it is, so that it may be repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--database", choices=[each.alias for each in Environment], default=Environment.LIVE.alias
        )
        parser.add_argument("--dry-run", action="store_true", help="print the statements only")

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        with as_owner(alias):
            try:
                found = laying.missing(alias) if options["dry_run"] else laying.lay(alias)
                for statement in found:
                    if options["verbosity"] or options["dry_run"]:
                        self.stdout.write(f"{statement.as_string(connections[alias].connection)};")
            except laying.NotCitus as error:
                raise CommandError(str(error)) from error
            if not options["dry_run"]:
                granting.grant(alias)
