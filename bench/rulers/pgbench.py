"""PostgreSQL alone: pgbench with the service's rows into a table of the same shape; the physical limit."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.rulers.rows import ALL_COLUMNS, StoredRow, literals
from compliance.localdev.console import StepFailed
from compliance.localdev.setup.binaries import postgres_bin

CLIENTS = (8, 16, 32, 64)
BATCH_CLIENTS = (1, 2, 4)
BATCH = 1_000
BATCHES = 8
"""Scripts of different rows that pgbench takes in turns; each holds a whole batch."""
SINGLES = 12
"""The same of single rows: every client prepares each of them once."""

# A UUIDv7 in SQL, which PostgreSQL has only from version 18 on.
NEW_ID = (
    "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || "
    "substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"
)
GENERATED = (
    "'{tenant}', lpad(to_hex((n * 7919 + :offset::int) % 1000 + 1), 32, '0')::uuid, 'data_access', 0.05, "
    '\'low\', \'{{"tool":"search_orders","table":"positions","rows":17}}\'::jsonb, '
    "'bench-00000000-' || lpad(n::text, 12, '0'), '[]'::jsonb, 'none'"
)
SINGLE = (
    ":tenant, lpad(to_hex(:agent::int), 32, '0')::uuid, :type{n}, :score{n}, :band{n}, :details{n}, "
    "'bench-00000000-' || lpad(:session::text, 12, '0'), :reasons{n}, :model{n}"
)


@dataclass(frozen=True)
class Timed:
    """What pgbench measured; latencies in seconds, ascending."""

    rate: float
    latencies: Sequence[float] = ()


@dataclass(frozen=True)
class Clients:
    """How many clients get the most done."""

    single: int
    batch: int
    generated: int


@dataclass(frozen=True)
class PgBench:
    """Inserts of one row, or of a thousand, as fast as so many clients can; `rows` are the service's."""

    url: str
    version: int
    rows: Sequence[StoredRow] = field(repr=False)

    @property
    def batches(self) -> list[Sequence[StoredRow]]:
        """The rows by the thousand."""
        found = [self.rows[start : start + BATCH] for start in range(0, len(self.rows), BATCH)]
        return [batch for batch in found if len(batch) == BATCH]

    def single(self, clients: int, seconds: float) -> Timed:
        """Rows a second, one row a transaction: prepared, its values sent as parameters."""
        return self._single(clients, seconds)

    def batch(self, clients: int, seconds: float) -> Timed:
        """Rows a second, a thousand rows a transaction, in one INSERT of as many VALUES.

        It is sent and parsed each time: prepared, its rows would cross the wire but once.
        """
        scripts = [self._inserting(batch) for batch in self.batches]
        return Timed(self._run(scripts, clients, seconds, "--protocol=simple").rate * BATCH)

    def generated(self, clients: int, seconds: float) -> Timed:
        """Rows a second, a thousand rows a transaction, smaller ones that the server makes up by itself."""
        values = GENERATED.format(tenant=self.rows[0].tenant_id)
        script = (
            "\\set offset random(1, 1000)\n"
            f"INSERT INTO ruler_pgbench ({ALL_COLUMNS}) SELECT {self._new_id}, now(), now(), {values} "
            f"FROM generate_series(1, {BATCH}) AS n;\n"
        )
        return Timed(self._run([script], clients, seconds, "--protocol=prepared").rate * BATCH)

    def offered(self, rate: float, clients: int, seconds: float) -> Timed:
        """`rate` transactions a second, with each one's latency from its scheduled time."""
        with TemporaryDirectory() as folder:
            log = f"{folder}/log"
            done = self._single(clients, seconds, f"--rate={rate}", "--log", f"--log-prefix={log}")
            lines = [line for path in Path(folder).glob("log*") for line in path.read_text().splitlines()]
        return Timed(
            done.rate, sorted(int(line.split()[2]) / 1e6 for line in lines if line.split()[2].isdigit())
        )

    def best_clients(self, seconds: float) -> Clients:
        """How many clients get the most done in each way."""
        return Clients(
            single=max(CLIENTS, key=lambda clients: self.single(clients, seconds).rate),
            batch=max(BATCH_CLIENTS, key=lambda clients: self.batch(clients, seconds).rate),
            generated=max(BATCH_CLIENTS, key=lambda clients: self.generated(clients, seconds).rate),
        )

    def _single(self, clients: int, seconds: float, *options: str) -> Timed:
        rows = self.rows[:SINGLES]
        scripts = [self._inserting_one(number) for number in range(len(rows))]
        given = [f"--define={name}={value}" for name, value in variables(rows).items()]
        return self._run(scripts, clients, seconds, "--protocol=prepared", *given, *options)

    def _inserting_one(self, number: int) -> str:
        return (
            "\\set agent random(1, 1000)\n\\set session random(1, 999999999)\n"
            f"INSERT INTO ruler_pgbench ({ALL_COLUMNS}) "
            f"VALUES ({self._new_id}, now(), now(), {SINGLE.format(n=number)});\n"
        )

    def _inserting(self, batch: Sequence[StoredRow]) -> str:
        values = ",\n".join(f"({self._new_id}, now(), now(), {literals(row)})" for row in batch)
        return f"INSERT INTO ruler_pgbench ({ALL_COLUMNS}) VALUES\n{values};\n"

    @property
    def _new_id(self) -> str:
        return "uuidv7()" if self.version >= 18 else NEW_ID

    def _run(self, scripts: Sequence[str], clients: int, seconds: float, *options: str) -> Timed:
        with _files(scripts) as files:
            command = [
                *(str(postgres_bin() / "pgbench"), "--no-vacuum", *(f"--file={path}" for path in files)),
                *(f"--client={clients}", f"--jobs={min(2, clients)}", f"--time={max(1, round(seconds))}"),
                *(*options, self.url),
            ]
            # As on the service's connections: a prepared statement is planned once, not at each use.
            environment = {**os.environ, "PGOPTIONS": "-c plan_cache_mode=force_generic_plan"}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        found = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
        if done.returncode != 0:
            raise StepFailed(f"pgbench failed: {done.stderr.strip()[-300:]}", hint="read PostgreSQL's log")
        # Where not one transaction was done in time, pgbench prints no rate.
        return Timed(float(found[1]) if found else 0.0)


def variables(rows: Sequence[StoredRow]) -> Mapping[str, str]:
    """pgbench's variables for statements of one row each, numbered."""
    found = {"tenant": rows[0].tenant_id}
    for number, row in enumerate(rows):
        found |= {
            f"type{number}": row.action_type,
            f"score{number}": row.risk_score,
            f"band{number}": row.risk_band,
            f"details{number}": row.details,
            f"reasons{number}": row.reasons,
            f"model{number}": row.model_version,
        }
    return found


@contextmanager
def _files(scripts: Sequence[str]) -> Iterator[list[Path]]:
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.sql" for number in range(len(scripts))]
        for path, script in zip(paths, scripts, strict=True):
            path.write_text(script)
        yield paths
