"""`./run bench ingest`: how many events the service takes, beside FastAPI.

Works in databases of its own on the stack's PostgreSQL and prints one table. Exit code 1 when an acknowledged
event was lost or stored twice, 0 otherwise. docs/benchmarks.md says what each figure means.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from bench.harness import machine, web
from bench.harness.command import ended
from bench.harness.ledger import Ledger
from bench.harness.place import Place, find_place
from bench.harness.traffic import Traffic
from bench.ingest.kill import kill
from bench.ingest.rates import batch, single
from bench.ingest.run import IngestRun
from bench.rulers import tables
from compliance.localdev.console import say, step

PARTS = {"single": single, "batch": batch, "kill": kill}
PEERED = frozenset({"single", "batch"})
POOL_SIZES = (4, 8, 16)
TRIAL_SECONDS = 2.0


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _options(arguments)
    return ended(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    place = find_place()
    with place.prepared(options.agents, fresh=options.fresh), _started(place, options) as run:
        for name, part in PARTS.items():
            if name in options.only:
                say(f"  … {name}")
                part(run)
        _conclude(run)
    sys.stdout.write("\n" + run.report.text())
    if options.json is not None:
        run.report.write_json(options.json)
    return 0 if run.ledger.holds else 1


@contextmanager
def _started(place: Place, options: argparse.Namespace) -> Iterator[IngestRun]:
    """The servers that the wanted parts need, and FastAPI with its best pool."""
    web.clear_leftovers(place)
    with ExitStack() as stack:
        with psycopg.connect(place.live_url, autocommit=True) as connection:
            tables.make(connection)
        traffic = Traffic(place.agents(options.agents))
        with step("the service's web server"):
            service = stack.enter_context(web.service(place))
        run = IngestRun(options, place, traffic, Ledger(place.live_url, traffic.mark), service)
        settings = place.environment()
        run.report.header += [
            machine.described(),
            f"{settings['WEB_WORKERS']} web workers, {options.agents:,} certified agents",
        ]
        if PEERED.intersection(options.only):
            with step("ruler: FastAPI"):
                pool = _best_pool(run)
                run.fastapi = stack.enter_context(web.fastapi(place, pool=pool))
            run.report.footer.append(f"FastAPI with {pool} connections a worker")
        yield run


def _best_pool(run: IngestRun) -> int:
    """The size of FastAPI's pool with which it is fastest here."""
    rates = {}
    for size in POOL_SIZES:
        with web.fastapi(run.place, pool=size) as server:
            run.single(server, TRIAL_SECONDS / 2)
            rates[size] = run.single(server, TRIAL_SECONDS).rate
    return max(rates, key=rates.__getitem__)


def _conclude(run: IngestRun) -> None:
    """The lines below the table."""
    footer = run.report.footer
    footer += [f"Ledger, {account.part}: {account.words}" for account in run.ledger.accounts]
    footer.append(f"Bands of the events: {run.ledger.bands()}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench ingest", description=__doc__)
    parser.add_argument("--only", default="single,batch", help=f"parts, of: {', '.join(PARTS)}")
    parser.add_argument("--agents", type=int, default=1_000, help="certified agents (%(default)s)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement (%(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each, in turns (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    if unknown := set(options.only) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
