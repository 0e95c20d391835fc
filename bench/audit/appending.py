"""Appends beside a plain insert into a like table, and beside what the disk makes durable."""

import os
import tempfile
import time
from statistics import median
from urllib.parse import urlsplit

from bench.audit import PLAIN, WRITERS
from bench.audit.run import AuditRun, Child
from bench.harness.report import number
from bench.harness.stats import percentile
from compliance.localdev.console import say

PAGE = 8192
PAGES = 2048
TURN = ["record", "plain", "plain", "record"]
SECONDS = 0.25
SYNC_SECONDS = 1.0


def appends(run: AuditRun) -> None:
    """`record()` and plain inserts in short turns, each in a transaction of its own."""
    _make_plain_table(run)
    rows = [["appends, 1/s", "record()", "plain insert", "of plain", "middle half", "fsyncs alone"]]
    with run.child() as child:
        rows += [_compared(run, child, writers) for writers in (1, WRITERS)]
    run.tell(f"Appends, one a transaction, medians of {run.options.turns} turns", rows)


def _compared(run: AuditRun, child: Child, writers: int) -> list[str]:
    # What the copying of the databases left to be written slows commits down for seconds.
    run.query("CHECKPOINT")
    child.ask("append", TURN * 2, writers, 1.0)
    synced_before = synced(run)
    rates = child.ask("append", TURN * run.options.turns, writers, SECONDS)
    fsyncs = (synced_before + synced(run)) / 2
    pairs = list(zip(rates[::4], rates[1::4], strict=True)) + list(zip(rates[3::4], rates[2::4], strict=True))
    ratios = sorted(ours / plain for ours, plain in pairs if plain)
    ours, plain = (median(found) for found in zip(*pairs, strict=True))
    ratio = median(ratios)
    say(f"  … {writers} writers: {ours:,.0f}/s, {ratio:.2f} of the plain insert")
    run.figures |= {
        f"append_{writers}_to_plain": ratio,
        f"append_{writers}_per_s": ours,
        f"append_{writers}_to_fsync": ours / fsyncs,
    }
    name = f"{writers} writer{'s'[: writers - 1]}"
    half = f"{percentile(ratios, 0.25):.2f} to {percentile(ratios, 0.75):.2f}"
    return [name, number(ours), number(plain), f"{ratio:.2f}", half, number(fsyncs)]


def synced(run: AuditRun) -> float:
    """Pages of 8 KiB a second that one process writes and makes durable, one after the other."""
    page = os.urandom(PAGE)
    with tempfile.NamedTemporaryFile(dir=run.place.servers.layout.local) as file:
        file.write(bytes(PAGE * PAGES))
        file.flush()
        os.fsync(file.fileno())
        began, count = time.perf_counter(), 0
        while time.perf_counter() < began + SYNC_SECONDS:
            os.pwrite(file.fileno(), page, count % PAGES * PAGE)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - began)


def _make_plain_table(run: AuditRun) -> None:
    role = urlsplit(run.place.environment()["DATABASE_URL"]).username
    run.query(f"DROP TABLE IF EXISTS {PLAIN}")
    run.query(f"CREATE TABLE {PLAIN} (LIKE auditlog_auditentry INCLUDING ALL)")
    run.query(f'GRANT INSERT, SELECT ON {PLAIN} TO "{role}"')
