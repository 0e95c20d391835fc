"""PostgreSQL alone: pgbench with the same insert into a table of the same shape; the physical limit."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from compliance.localdev.binaries import postgres_bin
from compliance.localdev.console import StepFailed

CLIENTS = (8, 16, 32, 64)
BATCH_CLIENTS = (1, 2, 4)
BATCH = 1_000

# A UUIDv7 in SQL, which PostgreSQL has only from version 18 on.
NEW_ID = (
    "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || "
    "substr(r, 1, 3) || '8' || substr(r, 4, 15))::uuid"
)
COLUMNS = (
    "id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at, received_at, details, "
    "session_id, chain_id, reasons, model_version"
)
VALUES = (
    "'{tenant}'::uuid, lpad(to_hex({agent}), 32, '0')::uuid, 'data_access', 0.05, 'low', now(), now(), "
    '\'{{"tool":"search_orders","table":"positions","rows":17}}\'::jsonb, '
    "'bench-00000000-' || lpad({session}::text, 12, '0'), NULL, '[]'::jsonb, 'none'"
)


@dataclass(frozen=True)
class Timed:
    """What pgbench measured; latencies in seconds, ascending."""

    rate: float
    latencies: Sequence[float] = ()


@dataclass(frozen=True)
class PgBench:
    """The insert of one row, or of a thousand, as fast as so many clients can."""

    url: str
    tenant_id: str
    version: int

    def single(self, clients: int, seconds: float) -> Timed:
        """Rows a second, one row a transaction."""
        return self._run(self._single_script(), clients, seconds)

    def batch(self, clients: int, seconds: float) -> Timed:
        """Rows a second, a thousand rows a transaction."""
        done = self._run(self._batch_script(), clients, seconds)
        return Timed(done.rate * BATCH)

    def offered(self, rate: float, clients: int, seconds: float) -> Timed:
        """`rate` transactions a second, with each one's latency from its scheduled time."""
        with TemporaryDirectory() as folder:
            log = f"{folder}/log"
            done = self._run(
                self._single_script(), clients, seconds, f"--rate={rate}", "--log", f"--log-prefix={log}"
            )
            lines = [line for path in Path(folder).glob("log*") for line in path.read_text().splitlines()]
        return Timed(
            done.rate, sorted(int(line.split()[2]) / 1e6 for line in lines if line.split()[2].isdigit())
        )

    def best_clients(self, seconds: float) -> tuple[int, int]:
        """How many clients get the most done, singly and in batches."""
        single = max(CLIENTS, key=lambda clients: self.single(clients, seconds).rate)
        batch = max(BATCH_CLIENTS, key=lambda clients: self.batch(clients, seconds).rate)
        return single, batch

    def _single_script(self) -> str:
        values = VALUES.format(tenant=self.tenant_id, agent=":agent::int", session=":session::bigint")
        source = "" if self.version >= 18 else " FROM (SELECT md5(random()::text) AS r) AS chance"
        return (
            "\\set agent random(1, 1000)\n\\set session random(1, 999999999)\n"
            f"INSERT INTO ruler_pgbench ({COLUMNS}) SELECT {self._new_id()}, {values}{source};\n"
        )

    def _batch_script(self) -> str:
        values = VALUES.format(
            tenant=self.tenant_id, agent="(n * 7919 + :offset::int) % 1000 + 1", session="n"
        )
        numbers = f"generate_series(1, {BATCH}) AS n"
        source = (
            numbers
            if self.version >= 18
            else f"(SELECT n, md5(random()::text) AS r FROM {numbers}) AS chance"
        )
        return (
            "\\set offset random(1, 1000)\n"
            f"INSERT INTO ruler_pgbench ({COLUMNS}) SELECT {self._new_id()}, {values} FROM {source};\n"
        )

    def _new_id(self) -> str:
        return "uuidv7()" if self.version >= 18 else NEW_ID

    def _run(self, script: str, clients: int, seconds: float, *options: str) -> Timed:
        command = [
            *(str(postgres_bin() / "pgbench"), "--no-vacuum", "--protocol=prepared", "--file=-"),
            *(
                f"--client={clients}",
                f"--jobs={min(2, clients)}",
                f"--time={max(1, round(seconds))}",
                *options,
            ),
            self.url,
        ]
        done = subprocess.run(
            command, input=script, capture_output=True, text=True, check=False, env=os.environ
        )
        found = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
        if done.returncode != 0:
            raise StepFailed(f"pgbench failed: {done.stderr.strip()[-300:]}", hint="read PostgreSQL's log")
        # Where not one transaction was done in time, pgbench prints no rate.
        return Timed(float(found[1]) if found else 0.0)
