"""The base of the service's commands: environment, JSON output, exit codes.

Exit codes: 0 done, 1 failure, 2 usage, 3 not found, 4 conflict, 5 a dependency is down, 6 a check found
problems. Data goes to stdout, progress and errors to stderr.
"""

import sys
from argparse import ArgumentParser
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError
from redis.exceptions import RedisError

from compliance.api.rest.renderers import dumps
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError

EXIT_FAILURE, EXIT_UNAVAILABLE, EXIT_FINDINGS = 1, 5, 6
_EXIT_OF_STATUS = {400: 2, 404: 3, 409: 4, 422: 4, 503: EXIT_UNAVAILABLE}


class ServiceCommand(BaseCommand):
    """A command that calls one service; takes `--json`, and `--environment` where that matters."""

    takes_environment = False
    requires_environment = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
        if self.takes_environment:
            parser.add_argument(
                "--environment",
                choices=[environment.value for environment in Environment],
                required=self.requires_environment,
                default=Environment.LIVE.value,
                help="which environment to act in",
            )
        self.add_own_arguments(parser)

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments of the command itself."""

    def run(self, *, now: datetime, **options: Any) -> Any:
        """Do the work, and return what to print: a dict, a list or text."""
        raise TypeError(f"{type(self).__name__} has no run()")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with environments.use(Environment(options.get("environment") or Environment.LIVE)):
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


def fields(row: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of `row` to print; `entries="entry_count"` prints one under another name."""
    paths = {**{name: name for name in names}, **renamed}
    return {name: attrgetter(path)(row) for name, path in paths.items()}


class CheckCommand(ServiceCommand):
    """A command that exits with 6 if a row it returns has `findings`."""

    def _show(self, result: Any, *, as_json: bool) -> None:
        super()._show(result, as_json=as_json)
        if any(row["findings"] for row in result):
            sys.exit(EXIT_FINDINGS)
