"""`./run bench ingest`: how many events the service takes, beside FastAPI, plain DRF and PostgreSQL alone.

Works in databases of its own on the stack's PostgreSQL and prints one table. Exit code 1 when an acknowledged
event was lost or stored twice, 6 when a soak was not flat, 0 otherwise. docs/benchmarks.md tells what each
figure means.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from bench.data.ledger import Ledger
from bench.harness import answers, machine, web
from bench.harness.command import ended
from bench.harness.load import Load
from bench.harness.place import Place, find_place
from bench.harness.traffic import Traffic
from bench.harness.web import WebServer
from bench.ingest.growth import growth
from bench.ingest.kill import kill
from bench.ingest.observing import observing
from bench.ingest.offered import offered
from bench.ingest.rates import batch, single
from bench.ingest.run import IngestOptions, IngestRun
from bench.ingest.soak import in_words, memory, soak
from bench.rulers import tables
from bench.rulers.pgbench import BATCH, BATCHES, PgBench
from bench.rulers.rows import StoredRow, mean_size, newest
from compliance.localdev.console import StepFailed, say, step

PARTS = {
    "single": single,
    "offered": offered,
    "batch": batch,
    "growth": growth,
    "soak": soak,
    "kill": kill,
    "observability": observing,
}
USUAL = ("single", "offered", "batch", "growth")
PEERED = frozenset({"single", "offered", "batch"})
POOL_SIZES = (4, 8, 16)
TRIAL_SECONDS = 2.0
OWN_COST_SECONDS = 2.0
SAMPLE_SECONDS = 60.0
SOAK_MINUTES = 30.0
NOT_FLAT = 6


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    parsed = _parser().parse_args(arguments)
    options = _options(parsed)
    return ended(lambda: _run(options, fresh=parsed.fresh, keep=parsed.keep))


def _run(options: IngestOptions, *, fresh: bool, keep: bool) -> int:
    place = find_place()
    with place.prepared(options.agents, fresh=fresh, keep=keep), _started(place, options) as run:
        held = memory(run)
        for name, part in PARTS.items():
            if options.wants(name):
                say(f"  … {name}")
                part(run)
        _conclude(run, held)
    sys.stdout.write("\n" + run.report.text())
    if options.json is not None:
        run.report.write_json(options.json)
    if not run.ledger.holds:
        return 1
    return 0 if run.is_flat else NOT_FLAT


@contextmanager
def _started(place: Place, options: IngestOptions) -> Iterator[IngestRun]:
    """The servers that the wanted parts need, warm, and the rulers at their best settings."""
    web.clear_leftovers(place)
    with ExitStack() as stack:
        with psycopg.connect(place.live_url, autocommit=True) as connection:
            tables.make(connection)
            version = connection.info.server_version // 10_000
        traffic = Traffic(place.agents(options.agents))
        with step("the service's web server"):
            service = stack.enter_context(web.service(place))
        is_peered = bool(options.only & PEERED) and not options.alone
        run = IngestRun(
            options=options,
            place=place,
            traffic=traffic,
            ledger=Ledger(place.live_url, traffic.mark),
            service=service,
        )
        _describe(run, version)
        if is_peered:
            rows = _stored_rows(place, traffic, service)
            run.pgbench = PgBench(place.live_url, version, rows)
            with step("rulers: FastAPI, plain DRF, pgbench"):
                pool = _best_pool(run)
                run.fastapi = stack.enter_context(web.fastapi(place, pool=pool))
                run.drf = stack.enter_context(web.plain_drf(place))
                run.clients = run.pgbench.best_clients(TRIAL_SECONDS)
            run.report.footer.append(
                f"Rulers: FastAPI with {pool} connections a worker; pgbench with {run.clients.single} "
                f"clients singly, {run.clients.batch} in batches; its rows are the service's, "
                f"{mean_size(rows):.0f} bytes of text each"
            )
        yield run


def _stored_rows(place: Place, traffic: Traffic, service: WebServer) -> list[StoredRow]:
    """What the service makes of the first batches, for the rulers to store as well."""
    with step("rows for the rulers"):
        source = traffic.batch(BATCH, key=place.api_key)
        load = Load(service.port, source, connections=2, ids=answers.all_ids)
        load.closed(SAMPLE_SECONDS, until=BATCHES)
        rows = newest(place.live_url, BATCHES * BATCH)
    if len(rows) < BATCH:
        raise StepFailed("the service stored no batches", hint="read its log, bench-service.log")
    return rows


def _best_pool(run: IngestRun) -> int:
    """The size of FastAPI's pool with which it is fastest here."""
    rates = {}
    for size in POOL_SIZES:
        with web.fastapi(run.place, pool=size) as server:
            run.single(server, TRIAL_SECONDS / 2)
            rates[size] = run.single(server, TRIAL_SECONDS).rate
    return max(rates, key=rates.__getitem__)


def _describe(run: IngestRun, version: int) -> None:
    loops = machine.loops_per_second() / 1e6
    settings = run.place.environment()
    run.report.header += [
        f"Machine     {machine.processor()}, {machine.cores()} cores, "
        f"load {machine.load_average():.1f} at the start",
        f"            one core does {loops:.1f} million loops a second (plain Python); compare runs by it",
        f"PostgreSQL  {version}",
        f"Service     {settings['WEB_WORKERS']} web workers of {settings['WEB_THREADS']} threads, "
        f"{run.options.agents:,} certified agents",
    ]


def _conclude(run: IngestRun, held: list[float]) -> None:
    """The lines below the table."""
    footer = run.report.footer
    footer.append(
        f"Memory of the web workers: {in_words(held)} at the start, {in_words(memory(run))} at the end"
    )
    footer += [f"Ledger, {account.part}: {account.words}" for account in run.ledger.accounts]
    footer.append(f"Bands of the events: {run.ledger.bands()}")
    with web.nothing(run.place) as server:
        done = Load(server.port, run.traffic.single(key=run.key), connections=64).closed(OWN_COST_SECONDS)
    cost = done.own_seconds / done.good * 1e6 if done.good else float("nan")
    footer.append(f"The load generator itself costs {cost:.0f} µs of processor time a request")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run bench ingest", description=__doc__)
    parser.add_argument(
        "--only", default=",".join(USUAL), help=f"parts, of: {', '.join(PARTS)} (%(default)s)"
    )
    parser.add_argument("--agents", type=int, default=1_000, help="certified agents (%(default)s)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement (%(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each, in turns (%(default)s)")
    parser.add_argument("--rate", type=float, default=1_000.0, help="events a second, offered (%(default)s)")
    parser.add_argument("--offered-seconds", type=float, default=60.0, help="for so long (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=1_000, help="events in a batch (%(default)s)")
    parser.add_argument("--batch-connections", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--growth", default="1", help="million rows, as 1,10,30 (%(default)s)")
    parser.add_argument(
        "--soak", type=float, metavar="MINUTES", help="also offer --rate for so long; 30 with --only soak"
    )
    parser.add_argument("--soak-window", type=float, default=60.0, help="seconds of its parts (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--alone", action="store_true", help="the service without its rulers")
    parser.add_argument("--keep", action="store_true", help="leave the run's databases in place")
    parser.add_argument("--fresh", action="store_true", help="make the agents anew")
    return parser


def _options(parsed: argparse.Namespace) -> IngestOptions:
    only = frozenset(parsed.only.split(",")) | ({"soak"} if parsed.soak else frozenset())
    unknown = only - PARTS.keys()
    if unknown:
        _parser().error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return IngestOptions(
        agents=parsed.agents,
        seconds=parsed.seconds,
        repetitions=parsed.repetitions,
        offered_rate=parsed.rate,
        offered_seconds=parsed.offered_seconds,
        batch_size=parsed.batch_size,
        batch_connections=parsed.batch_connections,
        growth=tuple(float(text) for text in parsed.growth.split(",")),
        soak=parsed.soak or SOAK_MINUTES,
        soak_window=parsed.soak_window,
        only=only,
        alone=parsed.alone,
        json=parsed.json,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
