"""The base of the service's commands: environments, JSON on stdout, exit codes that scripts can read.

Exit codes: 0 done, 1 failure, 2 usage, 3 not found, 4 conflict, 5 a dependency is down, 6 a check found
problems. Data goes to stdout, progress and errors to stderr.
"""

import sys
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError
from redis.exceptions import RedisError

from compliance import environments
from compliance.api.renderers import dumps
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import ServiceError

EXIT_FAILURE, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_CONFLICT, EXIT_UNAVAILABLE, EXIT_FINDINGS = range(1, 7)
_EXIT_OF_STATUS = {
    400: EXIT_USAGE,
    404: EXIT_NOT_FOUND,
    409: EXIT_CONFLICT,
    422: EXIT_CONFLICT,
    503: EXIT_UNAVAILABLE,
}


class ServiceCommand(BaseCommand):
    """A command that calls one service; `--json` is understood by all, `--environment` where it matters."""

    takes_environment = False
    requires_environment = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
        if self.takes_environment:
            parser.add_argument(
                "--environment",
                choices=[environment.value for environment in Environment],
                required=self.requires_environment,
                default=None if self.requires_environment else Environment.LIVE.value,
                help="which environment to act in",
            )
        self.add_own_arguments(parser)

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        """The command's own arguments."""

    def run(self, *, now: datetime, **options: Any) -> Any:
        """Do it, and return what to print: a dict or list for `--json`, shown as lines otherwise."""
        raise TypeError(f"{type(self).__name__} has no run()")

    def handle(self, *args: Any, **options: Any) -> None:
        environment = Environment(options.get("environment") or Environment.LIVE)
        try:
            with environments.use(environment):
                result = self.run(now=now(), **options)
        except ServiceError as error:
            self._fail(error.message, _EXIT_OF_STATUS.get(error.status, EXIT_FAILURE))
        except (OperationalError, RedisError) as error:
            self._fail(f"A dependency is down: {error}", EXIT_UNAVAILABLE)
        else:
            self._show(result, as_json=options["json"])

    def _fail(self, message: str, code: int) -> None:
        self.stderr.write(message)
        sys.exit(code)

    def _show(self, result: Any, *, as_json: bool) -> None:
        if result is None:
            return
        if as_json:
            self.stdout.write(dumps(result).decode())
            return
        for row in result if isinstance(result, list) else [result]:
            cells = row.items() if isinstance(row, dict) else [("", row)]
            self.stdout.write("  ".join(f"{name}={value}" if name else str(value) for name, value in cells))


class CheckCommand(ServiceCommand):
    """A command that judges: exit code 6 when a row it returns has `findings`."""

    def _show(self, result: Any, *, as_json: bool) -> None:
        super()._show(result, as_json=as_json)
        if any(row["findings"] for row in result):
            sys.exit(EXIT_FINDINGS)
