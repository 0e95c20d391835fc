"""`./run bench console`: every page of the console over a full database, as each role sees it.

Fills a database of its own, opens each address once to count its statements, then requests all over HTTP.
Targets, of every address: median of 300 ms, 95th percentile of its page 800 ms, 20 queries. Exit code 6 when
one is not held, 1 when a run failed.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.console import filling
from bench.console.asking import Timed, ask_all
from bench.console.filling import Sizes
from bench.console.table import HEADINGS, page_rows
from bench.harness import machine, web
from bench.harness.command import ended
from bench.harness.place import Place, find_place
from bench.harness.report import table
from bench.harness.stats import median, percentile
from compliance.localdev.console import StepFailed, step

PEOPLE = ("operator", "officer", "auditor", "developer")
MISSED = 6


@dataclass(frozen=True)
class PageOptions:
    """What the person asked for."""

    sizes: Sizes
    people: tuple[str, ...]
    only: str
    rounds: int
    keep: bool
    filled: bool
    json: Path | None


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    options = _options(arguments)
    return ended(lambda: _run(options))


def _run(options: PageOptions) -> int:
    place, header = find_place(), machine.described()
    with place.prepared(1, fresh=False, keep=options.keep, copy=not options.filled):
        web.clear_leftovers(place)
        timed, plain = _measured(place, options)
    return _told(header, timed, plain, options)


def _measured(place: Place, options: PageOptions) -> tuple[list[Timed], dict[str, float]]:
    """Fill, look at every address, and request them; return each with its times, and the peer's."""
    if not options.filled:
        with _child(place) as child:
            actors = _asked(child, "people", place.tenant_id)
        filling.fill(place, options.sizes, actors)
        with _child(place) as child, step("memberships, sealing and daily figures"):
            _asked(child, "settle", place.tenant_id)
        filling.settle(place)
    timed, sessions = [], {}
    with _child(place) as child:
        for who in options.people:
            with step(f"each address of the {who}, and its statements"):
                seen = _asked(child, "look", who, options.only)
            sessions[who] = seen["session"]
            timed += [Timed(who, page) for page in seen["pages"] if page["is_page"] or page["status"] >= 500]
        with step("Django's own lists of the same rows"):
            plain = _asked(child, "plain", options.only)
    shown = [one for one in timed if one.page["is_page"]]
    with web.service(place) as server, step(f"{len(shown)} addresses over HTTP, {options.rounds} times each"):
        ask_all(shown, sessions, port=server.port, rounds=options.rounds)
    return timed, plain


def _told(header: str, timed: list[Timed], plain: dict[str, float], options: PageOptions) -> int:
    """Print the table and what is over the targets; return the exit code."""
    failed = [one for one in timed if not one.page["is_page"]]
    rows = page_rows([one for one in timed if one.page["is_page"]], plain)
    every = sorted(seconds for one in timed for seconds in one.seconds)
    problems = [problem for row in rows for problem in row.problems()]
    problems += [f"{one.who} {one.page['url']}: {one.page['status']}" for one in failed]
    lines = [
        *("", header, f"load {machine.load_average():.1f} at the end; milliseconds", ""),
        *table([HEADINGS, *(row.cells() for row in rows)]),
        "",
        f"All {len(timed)} addresses: median {median(every) * 1e3:.0f} ms, "
        f"p95 {percentile(every, 0.95) * 1e3:.0f} ms",
        *(f"OVER: {problem}" for problem in problems),
        "" if problems else "Every address holds the targets.",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    if options.json is not None:
        found = [{"who": one.who, **one.page, "times": one.seconds} for one in timed]
        options.json.write_text(json.dumps({"pages": found, "plain": plain, "over": problems}) + "\n")
    return MISSED if problems else 0


@contextmanager
def _child(place: Place) -> Iterator["subprocess.Popen[str]"]:
    """A process of the service that is asked a command at a time; ended with the block."""
    log = place.servers.layout.log / "bench-console-child.log"
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "bench.console.child"],
            env=place.environment() | {"LOG_LEVEL": "WARNING"},
            cwd=place.servers.layout.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            assert process.stdin is not None  # noqa: S101
            process.stdin.close()


def _asked(child: "subprocess.Popen[str]", *command: object) -> Any:
    assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018
    child.stdin.write(json.dumps(command) + "\n")
    child.stdin.flush()
    line = child.stdout.readline()
    if not line:
        raise StepFailed("a process of the benchmark died", hint="read .local/log/bench-console-child.log")
    return json.loads(line)


def _options(arguments: Sequence[str]) -> PageOptions:
    parser = argparse.ArgumentParser(prog="./run bench console", description=__doc__)
    parser.add_argument("--agents", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--events", type=float, default=5.0, help="millions (%(default)s)")
    parser.add_argument("--entries", type=int, default=100_000, help="of the audit log (%(default)s)")
    parser.add_argument(
        "--tenants", type=int, default=8, help="the first has seven agents in ten (%(default)s)"
    )
    parser.add_argument("--small", action="store_true", help="a fiftieth of everything: a minute in all")
    parser.add_argument("--people", default=",".join(PEOPLE), help="who looks (%(default)s)")
    parser.add_argument(
        "--only", default="", help="beginnings of names of routes, as events_,console_overview"
    )
    parser.add_argument("--rounds", type=int, default=5, help="requests of each address (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the database")
    parser.add_argument("--filled", action="store_true", help="use the database that --keep kept")
    parser.add_argument("--json", type=Path, help="write figures to this file, too")
    parsed = parser.parse_args(arguments)
    people = tuple(parsed.people.split(","))
    if set(people) - set(PEOPLE):
        parser.error(f"people are of {', '.join(PEOPLE)}")
    sizes = Sizes(parsed.agents, round(parsed.events * 1e6), parsed.entries, parsed.tenants)
    if parsed.small:
        sizes = replace(sizes, agents=200, events=100_000, entries=2_000)
    return PageOptions(
        sizes=sizes,
        people=people,
        only=parsed.only,
        rounds=parsed.rounds,
        keep=parsed.keep,
        filled=parsed.filled,
        json=parsed.json,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
