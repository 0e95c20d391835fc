"""Issuing and revocation lists in a process of their own, beside django-ca's."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql

from bench.data.certifying import take_over_pool
from bench.data.revoked import Crowd
from bench.harness.place import Place
from bench.harness.report import ALONE, number
from bench.pki.run import PkiRun
from compliance.localdev.console import StepFailed, say, step

ISSUED = 100
Figures = dict[str, float]


class Peer:
    """django-ca on a database of its own; the benchmarks' Python runs it."""

    def __init__(self, place: Place, database: str, folder: str, seconds: float) -> None:
        self._place, self._seconds = place, seconds
        self._own = {"DJANGO_CA_FOLDER": folder, "DJANGO_CA_DATABASE": place.url(database)}

    def ask(self, *arguments: str) -> Figures | None:
        """What it measured; None when it took longer than it may."""
        python = str(self._place.servers.layout.bench_venv / "bin/python")
        command = [python, "-m", "bench.rulers.django_ca_alone", *arguments]
        return ask(self._place, command, self._own, self._seconds)


@contextmanager
def peer(place: Place, seconds: float) -> Iterator[Peer]:
    """A fresh django-ca."""
    database = f"{place.name}_bench_peer"
    name = sql.Identifier(database)
    with psycopg.connect(place.url("postgres"), autocommit=True) as admin, TemporaryDirectory() as folder:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            made = Peer(place, database, folder, seconds)
            with step("django-ca"):
                made.ask("make")
            yield made
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def service(place: Place, *arguments: str) -> Figures:
    """What a process of the service measured."""
    found = ask(place, [sys.executable, "-m", "bench.pki.list_child", *arguments], {}, None)
    return found or {}


def issuing(run: PkiRun) -> None:
    """Certificates issued one after the other by one process, without HTTP."""
    with step(f"{ISSUED + 1} keys in the pool"):
        take_over_pool(run.place, ISSUED + 1)
    mine = service(run.place, "issue", run.place.tenant_id, str(ISSUED))
    limit = service(run.place, "sign")["rate"]
    with peer(run.place, run.options.peer_seconds) as other:
        theirs = other.ask("issue", str(ISSUED))
    rows = [["issuing, one process", "1/s", "p50 ms", "to django-ca", "of the limit"]]
    peers = ISSUED / theirs["seconds"] if theirs else 0.0
    for name, found in (("service", mine), ("django-ca, its key in a file", theirs)):
        if found:
            rate = ISSUED / found["seconds"]
            ratio = f"{rate / peers:.2f}" if peers else ALONE
            rows.append([name, number(rate), number(found["p50_ms"]), ratio, f"{rate / limit:.0%}"])
    rows.append(["RSA-3072 signatures of cryptography", number(limit), ALONE, ALONE, "100%"])
    run.tell(f"Issuing {ISSUED} certificates, keys waiting in the pool", rows)


def revocation_lists(run: PkiRun) -> None:
    """A full list, its delta and one shard, made anew with one more revocation on them."""
    rows = [
        [
            "revoked",
            "s",
            "peak MB",
            "list MB",
            "django-ca s",
            "its peak MB",
            "times as fast",
            "reading and hashing s",
        ]
    ]
    crowd, is_late = Crowd(run.place), False
    with peer(run.place, run.options.peer_seconds) as other:
        for size in run.options.lists:
            with step(f"{size:,} revoked certificates"):
                crowd.revoke_up_to(size)
            mine = service(run.place, "publish")
            if int(mine["entries"]) != size:
                raise StepFailed(f"the list has {mine['entries']:,.0f} entries", hint="this is a defect")
            limit = service(run.place, "read")["seconds"]
            theirs = None if is_late else other.ask("list", str(size))
            is_late = theirs is None
            rows.append(_row(size, mine, theirs, limit, run.options.peer_seconds))
            say(f"  … {size:,} entries")
    run.tell("Revocation lists, a process each, from the first query to the last commit", rows)


def _row(size: int, mine: Figures, theirs: Figures | None, limit: float, patience: float) -> list[str]:
    own = [number(mine[name]) for name in ("seconds", "peak_mb", "size_mb")]
    if theirs is None:
        others = [f"over {patience:.0f}", ALONE, f"over {patience / mine['seconds']:.0f}"]
    else:
        ratio = theirs["seconds"] / mine["seconds"]
        others = [number(theirs["seconds"]), number(theirs["peak_mb"]), number(ratio)]
    return [f"{size:,}", *own, *others, number(limit)]


def ask(place: Place, command: Sequence[str], own: dict[str, str], seconds: float | None) -> Figures | None:
    try:
        done = subprocess.run(
            command,
            env=place.environment() | {"LOG_LEVEL": "WARNING"} | own,
            cwd=place.servers.layout.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise StepFailed(f"{command[2]} {command[3]} failed: {last}", hint="run it by hand to see more")
    return dict(json.loads(done.stdout))
