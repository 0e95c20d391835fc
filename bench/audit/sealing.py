"""The time from an entry's commit to a signed checkpoint that covers it, while writers go on."""

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager

from bench.audit.run import AuditRun, Child
from bench.harness import machine
from bench.harness.report import number
from bench.harness.stats import percentile
from compliance.localdev.console import StepFailed, say

LOOK_SECONDS = 0.01
SEAL_SECONDS = 30.0
_NEWEST = "SELECT coalesce(max(size), 0) FROM auditlog_signedhead"
_RECORDED = "SELECT h.size + (SELECT count(*) FROM auditlog_pendingentry) FROM auditlog_treehead h"
_QUEUE = "INSERT INTO auditlog_pendingentry (entry_id) SELECT gen_random_uuid() FROM generate_series(1, %s)"


class Checkpoints:
    """When each checkpoint was first there; read by a thread of its own."""

    def __init__(self, run: AuditRun) -> None:
        self._run, self._stopped = run, threading.Event()
        self._times: list[float] = []
        self._sizes: list[int] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def covering(self, index: int) -> float | None:
        """Unix time of the first checkpoint that covers the leaf."""
        place = bisect_right(self._sizes, index)
        return self._times[place] if place < len(self._sizes) else None

    def wait_for(self, size: int) -> None:
        """Until a checkpoint covers so many leaves."""
        until = time.monotonic() + SEAL_SECONDS
        while not self._sizes or self._sizes[-1] < size:
            if time.monotonic() > until:
                raise StepFailed("entries were not sealed", hint="read .local/log/bench-worker.log")
            time.sleep(LOOK_SECONDS)

    def _watch(self) -> None:
        with self._run.connect() as connection:
            while not self._stopped.wait(LOOK_SECONDS):
                ((size,),) = connection.execute(_NEWEST).fetchall()
                if not self._sizes or size > self._sizes[-1]:
                    self._times.append(time.time())
                    self._sizes.append(size)


def lag(run: AuditRun) -> None:
    """At a steady rate: alone, then beside a transaction that has written an entry and stays open."""
    rate, seconds = run.options.rate, run.options.offered
    rows = [["commit to signed checkpoint", "rows/s", "p50 ms", "p99 ms", "worst ms", "checkpoints", "load"]]
    with run.child() as child, run.worker():
        _warm(run, child)
        rows.append(_measured(run, child, "seal_lag", "alone"))
        held = child.ask("hold")
        _leave_dead_rows(run)
        rows.append(_measured(run, child, "seal_lag_open", "beside an open transaction"))
        is_early = run.query("SELECT FROM auditlog_leaf WHERE entry_id = %s", [held])
        late = _released(run, child, held)
    run.figures["held_entry_seal_ms"] = late * 1e3
    if is_early:
        raise StepFailed("an uncommitted entry was sealed", hint="this is a defect")
    run.tell(
        f"{rate:,.0f} rows/s offered for {seconds:g} s by 8 writers; {run.options.dead:,} dead rows", rows
    )
    run.lines.append(f"The held entry had its checkpoint {late * 1e3:.0f} ms after its commit")


def _warm(run: AuditRun, child: Child) -> None:
    """Until the worker seals."""
    checkpoints = Checkpoints(run)
    child.ask("offer", 50.0, 2.0)
    with checkpoints.watched():
        checkpoints.wait_for(_recorded(run))


def _measured(run: AuditRun, child: Child, figure: str, name: str) -> list[str]:
    start, checkpoints = _recorded(run), Checkpoints(run)
    with checkpoints.watched():
        committed = child.ask("offer", run.options.rate, run.options.offered)
        checkpoints.wait_for(start + len(committed))
    times = [at for _, at in committed]
    rate = len(committed) / (max(times) - min(times))
    indexes = dict(run.query("SELECT entry_id::text, index FROM auditlog_leaf WHERE index >= %s", [start]))
    seen = [checkpoints.covering(indexes[entry]) for entry, _ in committed]
    waits = [then - at for then, at in zip(seen, times, strict=True) if then is not None]
    if len(waits) < len(committed):
        raise StepFailed("entries are under no checkpoint", hint="this is a defect")
    p50, p99 = run.tell_milliseconds(figure, waits)
    say(f"  … {name}: p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    signed = run.query("SELECT count(*) FROM auditlog_signedhead WHERE size > %s", [start])[0][0]
    worst = percentile(sorted(waits), 1.0) * 1e3
    load = f"{machine.load_average():.1f}"
    return [name, *map(number, (rate, p50, p99, worst)), str(signed), load]


def _released(run: AuditRun, child: Child, held: str) -> float:
    """Commit the held entry; seconds until it is under a checkpoint."""
    checkpoints = Checkpoints(run)
    with checkpoints.watched():
        committed: float = child.ask("release")
        checkpoints.wait_for(_recorded(run))
    ((index,),) = run.query("SELECT index FROM auditlog_leaf WHERE entry_id = %s", [held])
    seen = checkpoints.covering(index)
    return (seen or time.time()) - committed


def _recorded(run: AuditRun) -> int:
    """Committed entries, sealed or waiting."""
    return int(run.query(_RECORDED)[0][0])


def _leave_dead_rows(run: AuditRun) -> None:
    """What sealing leaves in the queue while the transaction keeps it from being cleared up."""
    run.query(_QUEUE, [run.options.dead])
    run.query(
        "DELETE FROM auditlog_pendingentry p WHERE NOT EXISTS"
        " (SELECT FROM auditlog_auditentry e WHERE e.id = p.entry_id)"
    )
