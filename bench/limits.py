"""`./run bench limits`: whether the service holds the limits of its speed, beside peers in the same run.

Runs the parts of `./run bench ingest`, `pki` and `gateway` that measure them, and prints one table. Exit code
6 when a limit is not held, 1 when a run failed.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.harness.report import number, table


class Limit(NamedTuple):
    """A figure that must be at least `least` or at most `most`."""

    name: str
    figure: str
    least: float = 0.0
    most: float = float("inf")

    def row(self, value: float) -> list[str]:
        """The limit beside what was measured."""
        wanted = f">= {number(self.least)}" if self.least else f"<= {number(self.most)}"
        return [self.name, number(value), wanted, "held" if self.is_held(value) else "NOT HELD"]

    def is_held(self, value: float) -> bool:
        return self.least <= value <= self.most


LIMITS = (
    Limit("single events, to FastAPI", "single events", least=2.2),
    Limit("batched events, to FastAPI's unchecked unnest", "batched events", least=0.45),
    Limit("acknowledged events lost over kill -9", "lost", most=0),
    Limit("verify, to a plain Django view", "verify_to_plain_view", least=5.0),
    Limit("verify at 1,000/s, p99 ms", "verify_p99_ms", most=5.0),
    Limit("register and certify, warm pool, 2 clients, p99 ms", "certify_2_clients_p99_ms", most=60.0),
    Limit("gateway's addition by serial number, p99 ms", "gateway by serial number, added p99 ms", most=6.0),
    Limit("evaluation at 300/s, p99 ms", "evaluation p99 ms", most=15.0),
    Limit("evaluations a second", "evaluations 1/s", least=1_500.0),
)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return the exit code. `arguments` go to the ingest benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        ingest, pki, gateway = (Path(folder) / f"{name}.json" for name in ("ingest", "pki", "gateway"))
        is_whole = _ran("ingest", "--only", "single,batch,kill", "--json", str(ingest), *arguments)
        if not ingest.exists():  # it was asked for help, or wrongly
            return 0 if is_whole else 1
        others = _ran("pki", "--only", "verify,certify", "--json", str(pki))
        others = _ran("gateway", "--json", str(gateway)) and others
        if not others:
            return 1
        figures = {**_ratios(json.loads(ingest.read_text())), **json.loads(pki.read_text())}
        figures |= json.loads(gateway.read_text())
    figures["lost"] = 0 if is_whole else 1
    rows = [["limit", "measured", "wanted", ""], *(limit.row(figures[limit.figure]) for limit in LIMITS)]
    sys.stdout.write("\n".join(["", *table(rows), ""]) + "\n")
    return 0 if all(limit.is_held(figures[limit.figure]) for limit in LIMITS) else 6


def _ran(name: str, *arguments: str) -> bool:
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments], check=False).returncode == 0


def _ratios(report: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    return {
        str(row["name"]): row["service"] / row["fastapi"]
        for row in report["rows"]
        if row["service"] and row["fastapi"] and not row["less_is_better"]
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
