"""The base of the service's commands: environment, JSON output, exit codes.

Exit codes: 0 done, 1 failure, 2 usage, 3 not found, 4 conflict, 5 a dependency is down, 6 a check found
problems. Data goes to stdout, progress and errors to stderr.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, ClassVar

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


def between(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number within bounds."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"{text} is no whole number from {least} to {most}")
        return int(text)

    return read


class ServiceCommand(BaseCommand):
    """A command that calls one service; takes `--json`, and `--environment` where that matters.

    `arguments`: its own, each with argparse's options; `exactly_one`: those of which one is to be given.
    """

    takes_environment = False
    requires_environment = False
    is_check = False  # exits with 6 if a row it returns has `findings`
    arguments: ClassVar[Mapping[str, dict[str, Any]]] = {}
    exactly_one: Collection[str] = ()

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
        either = parser.add_mutually_exclusive_group(required=True) if self.exactly_one else parser
        for name, options in self.arguments.items():
            (either if name in self.exactly_one else parser).add_argument(name, **options)

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
            if self.is_check and any(row["findings"] for row in result):
                sys.exit(EXIT_FINDINGS)

    def _fail(self, message: str, code: int) -> None:
        self.stderr.write(message)
        sys.exit(code)

    def _show(self, result: Any, *, as_json: bool) -> None:
        if result is None:
            return
        if as_json:
            self.stdout.write(dumps(result).decode())
            return
        rows = result if isinstance(result, list) else [result]
        alike = all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows)
        if alike and rows and isinstance(result, list):
            table = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            for line in table:
                cells = (f"{cell:{width}}" for cell, width in zip(line, widths, strict=True))
                self.stdout.write("  ".join(cells).rstrip())
            return
        for row in rows:
            if not isinstance(row, dict):
                self.stdout.write(str(row))
                continue
            width = max(map(len, row), default=0)
            self.stdout.write("\n".join(f"{name:{width}}  {_cell(value)}" for name, value in row.items()))


def _cell(value: Any) -> str:
    """Return a value as an operator reads it: no Python notation, one line."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(_cell, value))
    return dumps(value).decode() if isinstance(value, dict) else " ".join(str(value).split())


def fields(row: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of `row` to print; `entries="entry_count"` prints one under another name."""
    paths = {**{name: name for name in names}, **renamed}
    return {name: attrgetter(path)(row) for name, path in paths.items()}
