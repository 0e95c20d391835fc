"""kill -9 in the middle of a burst: nothing that was acknowledged may be lost, nothing stored twice."""

import signal
import threading
import time
from collections.abc import Callable

import psycopg

from bench.harness.load import Outcome
from bench.harness.stats import longest_gap
from bench.ingest.run import CONNECTIONS, IngestRun, failures_of
from compliance.localdev.console import say
from compliance.localdev.servers import processes

BEFORE_SECONDS = 3.0
AFTER_SECONDS = 20.0
RECOVERY_SECONDS = 180.0


def kill(run: IngestRun) -> None:
    """One victim after the other, each in a burst of its own; a killed database first makes a checkpoint."""
    run.single(run.service, BEFORE_SECONDS)
    _drill(run, "a web worker", lambda: _kill_worker(run))
    servers = run.place.servers
    if servers.given.databases is not None or servers.layout.supervisor.running() is not None:
        run.report.footer.append(
            "PostgreSQL was not killed: it isn't the stack's own, or `./run` is up and uses it (`./run stop`)"
        )
        return
    _checkpoint(run)
    _drill(run, "a PostgreSQL backend", lambda: _kill_backend(run))
    _checkpoint(run)
    _drill(run, "the postmaster", lambda: _kill_postmaster(run))


def _drill(run: IngestRun, victim: str, strike: Callable[[], None]) -> None:
    struck: list[float] = []
    started = time.perf_counter()

    def tick() -> None:
        if not struck and time.perf_counter() - started > BEFORE_SECONDS:
            struck.append(time.perf_counter())
            strike()

    found: list[Outcome] = []

    def measure() -> list[Outcome]:
        load = run.load(run.service, connections=CONNECTIONS)
        found.append(load.closed(BEFORE_SECONDS + AFTER_SECONDS, tick=tick))
        processes.wait_until(lambda: _database_answers(run), seconds=RECOVERY_SECONDS)
        return found

    account = run.checked(f"kill -9 of {victim}", measure)
    outcome = found[0]
    end = started + BEFORE_SECONDS + AFTER_SECONDS
    gap = longest_gap(list(outcome.times), after=struck[0], until=end) if struck else float("nan")
    answered = (
        f"no good answer for {gap:.2f} s"
        if outcome.times and outcome.times[-1] > end - 2
        else "NOT ANSWERING"
    )
    run.report.footer.append(
        f"kill -9 of {victim}: {account.words}; {answered}; failed: {failures_of(outcome) or 'none'}"
    )


def _kill_worker(run: IngestRun) -> None:
    processes.send(run.service.workers()[0], signal.SIGKILL)


def _kill_backend(run: IngestRun) -> None:
    """A session of the service in the benchmark's own database; PostgreSQL then restarts all sessions."""
    with psycopg.connect(run.place.live_url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' ORDER BY state_change DESC LIMIT 1"
        ).fetchone()
    if row is None:
        say("  ! the service has no session to kill")
        return
    processes.send(int(row[0]), signal.SIGKILL)


def _kill_postmaster(run: IngestRun) -> None:
    """Kill the whole server, and start it again at once, as a process supervisor does."""
    postgres = run.place.servers.postgres
    postgres.stop(((signal.SIGKILL, 5.0),))
    threading.Thread(target=postgres.start, daemon=True).start()


def _checkpoint(run: IngestRun) -> None:
    """Leave PostgreSQL no more to recover than an ordinary day would, whatever was written before."""
    with psycopg.connect(run.place.live_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def _database_answers(run: IngestRun) -> bool:
    try:
        psycopg.connect(run.place.live_url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
