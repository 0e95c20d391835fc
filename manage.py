#!/usr/bin/env python
"""The command line: the service's own commands, and those of Django that serve an installation."""

import os
import sys

from django.core.management import ManagementUtility, get_commands
from django.core.management.base import BaseCommand

OF_OTHERS = frozenset(
    {"check", "clearsessions", "collectstatic", "compilemessages", "dbshell", "makemigrations"}
    | {"sendtestemail", "shell", "showmigrations", "spectacular", "sqlmigrate", "squashmigrations"}
)
"""Commands of Django and of libraries. `flush`, `loaddata` and the like would destroy what must be kept."""
OWN_APPS = (
    *("agents", "auditlog", "certificates", "compliance", "delegation", "events", "gateway", "incidents"),
    *("ops", "people", "reports", "signals", "tenancy", "webhooks"),
)
USAGE = 2


class CommandLine(ManagementUtility):
    """Django's command line without the commands that do not belong to the service."""

    def main_help_text(self, commands_only: bool = False) -> str:
        names = sorted(self._known(), key=lambda name: (name in OF_OTHERS, name))
        if commands_only:
            return "\n".join(names)
        usage = f"Type '{self.prog_name} help <command>' for help on a command."
        return "\n    ".join([usage, "", *names])

    def fetch_command(self, subcommand: str) -> BaseCommand:
        if subcommand not in self._known():
            sys.stderr.write(f"Unknown command: {subcommand}. '{self.prog_name} help' lists the commands.\n")
            sys.exit(USAGE)
        return super().fetch_command(subcommand)

    def _known(self) -> set[str]:
        own = {name for name, app in get_commands().items() if str(app).partition(".")[0] in OWN_APPS}
        return own | (OF_OTHERS & get_commands().keys())


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
    CommandLine(sys.argv).execute()


if __name__ == "__main__":
    main()
