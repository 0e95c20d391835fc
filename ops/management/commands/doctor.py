"""`doctor`: check the service, and say how to mend what is wrong."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from compliance.core.environments import Environment
from ops.doctor import examine
from ops.management.commands._findings import FindingsCommand


class Command(FindingsCommand):
    help = (
        "Check databases, migrations, Redis, HSM, CAs, revocation lists, key pool, partitions, workers and "
        "keys, in both environments; safe beside a running service. Exit code 5 if a dependency is down, 6 "
        "if anything else is wrong."
    )

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--environment", choices=list(map(str, Environment)), help="check only this one")
        parser.add_argument(
            "--fix", action="store_true", help="repair what is safe to repair; destroy agents' orphan keys"
        )

    def run(self, *, now: datetime, **options: Any) -> None:
        chosen = [Environment(options["environment"])] if options["environment"] else list(Environment)
        findings = examine(chosen=chosen, fix=options["fix"], now=now)
        self._tell(findings, as_json=options["json"])
