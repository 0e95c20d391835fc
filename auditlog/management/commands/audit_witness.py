"""`audit_witness`: witness transparency logs, those of other organisations too."""

from argparse import ArgumentParser
from contextlib import suppress
from datetime import datetime
from typing import Any

from auditlog.tlog.errors import TlogError
from auditlog.witness.running import DESCRIPTION, add_arguments, run
from auditlog.witness.state import WitnessUnusable
from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid


class Command(ServiceCommand):
    help = DESCRIPTION + " Uses neither databases nor HSM."
    requires_system_checks = []

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def run(self, *, now: datetime, **options: Any) -> None:
        try:
            with suppress(KeyboardInterrupt):
                run(options, self._say)
        except (WitnessUnusable, TlogError, OSError) as error:
            raise Invalid(str(error)) from error

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
