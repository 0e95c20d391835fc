"""What the parts share: the place, the options, processes of the service, tables of what was found."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.harness import web
from bench.harness.place import Place
from bench.harness.report import Tables
from bench.harness.stats import percentile
from compliance.localdev.console import StepFailed


@dataclass(frozen=True)
class AuditOptions:
    """What the person asked for."""

    only: frozenset[str]
    turns: int
    seconds: float
    rate: float
    offered: float
    dead: int
    sizes: tuple[int, ...]
    proofs: int
    json: Path | None


class Child:
    """`bench.audit.child`, asked a command at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, *command: object) -> Any:
        """Run the command and return its answer."""
        self.send(*command)
        return self.answer()

    def send(self, *command: object) -> None:
        """Start the command."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for what the command returns."""
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            raise StepFailed("a process of the benchmark died", hint="read .local/log/bench-audit-child.log")
        return json.loads(line)


@dataclass
class AuditRun(Tables):
    """One run, from its place to its tables."""

    options: AuditOptions
    place: Place

    def tell_milliseconds(self, name: str, seconds: list[float]) -> tuple[float, float]:
        """Keep p50 and p99 of the latencies as figures; return them in ms."""
        ordered = sorted(seconds)
        found = percentile(ordered, 0.5) * 1e3, percentile(ordered, 0.99) * 1e3
        self.figures |= {f"{name}_p50_ms": found[0], f"{name}_p99_ms": found[1]}
        return found

    def query(self, statement: str, values: object = None) -> list[tuple[Any, ...]]:
        """The rows of a statement on the live database, as its owner."""
        with self.connect() as connection:
            cursor = connection.execute(statement, values)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(self.place.live_url, autocommit=True)

    @contextmanager
    def child(self) -> Iterator[Child]:
        """A process of the service, ended with the block."""
        place = self.place
        command = [sys.executable, "-m", "bench.audit.child", place.tenant_id]
        log = place.servers.layout.log / "bench-audit-child.log"
        environment = place.environment() | {"LOG_LEVEL": "WARNING"}
        with (
            log.open("ab") as errors,
            subprocess.Popen(
                command,
                env=environment,
                cwd=place.servers.layout.root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                yield Child(process)
            finally:
                assert process.stdin is not None  # noqa: S101
                process.stdin.close()

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A Celery worker as `./run` starts it."""
        command = web.part("worker", self.place, port=0)
        with web.started("worker", command, self.place.environment(), self.place):
            yield
