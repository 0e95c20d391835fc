"""`backtest_risk --events FILE.jsonl --agents FILE.json`: what the scorer would have said of past events."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import msgspec

from compliance.commands import ServiceCommand
from compliance.errors import Invalid
from events.scoring.backtest import (
    NOBODY,
    Row,
    Scored,
    StreamUnreadable,
    read_agents,
    read_stream,
    report,
    scored,
    taught,
)

BAR = 30
STEPS = 100


class Command(ServiceCommand):
    help = "Replay a stream of events through the risk scorer and say how far it would have been right."
    requires_system_checks = []

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--events", type=Path, required=True, metavar="FILE", help="JSON Lines, one event each"
        )
        parser.add_argument(
            "--agents", type=Path, metavar="FILE", help="JSON: scope, domain and tenant of each agent"
        )
        parser.add_argument(
            "--warmup", type=Path, metavar="FILE", help="earlier events, known to be ordinary"
        )
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="write each event's score as JSON Lines"
        )
        parser.add_argument(
            "--runs-apart",
            action="store_true",
            help="start every run (`seq`) from the state after the warm-up instead of one after another",
        )

    def run(self, *, now: datetime, **options: Any) -> Any:
        try:
            found = self._scored(options)
        except (StreamUnreadable, OSError) as error:
            raise Invalid(str(error)) from error
        if options["output"]:
            options["output"].write_bytes(b"".join(_line(one) for one in found))
        figures = report(found)
        return figures if options["json"] else [{name: figure} for name, figure in figures.items()]

    def _scored(self, options: dict[str, Any]) -> list[Scored]:
        agents = read_agents(options["agents"].read_bytes()) if options["agents"] else NOBODY
        rows = _stream(options["events"])
        if not rows:
            raise StreamUnreadable(f"{options['events']}: no events")
        history = _stream(options["warmup"]) if options["warmup"] else []
        learned = taught(history, agents, before=rows[0].event.received_at)
        replayed = watched(rows, sys.stderr) if sys.stderr.isatty() else iter(rows)
        return list(scored(replayed, agents, learned, runs_apart=options["runs_apart"]))


def _stream(path: Path) -> list[Row]:
    with path.open("rb") as lines:
        try:
            return read_stream(lines)
        except StreamUnreadable as error:
            raise StreamUnreadable(f"{path}: {error}") from error


def watched(rows: list[Row], terminal: TextIO) -> Iterator[Row]:
    """The rows, with a bar on the terminal that says how far they have been read."""
    every = max(len(rows) // STEPS, 1)
    for number, row in enumerate(rows, 1):
        yield row
        if number % every == 0 or number == len(rows):
            filled = BAR * number // len(rows)
            terminal.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {number:,} of {len(rows):,} events")
            terminal.flush()
    terminal.write("\n")


def _line(one: Scored) -> bytes:
    row, verdict = one.row, one.verdict
    return (
        msgspec.json.encode(
            {
                "agent": row.agent,
                "t": row.t,
                "seq": row.seq,
                "action_type": row.action_type,
                "score": verdict.score,
                "band": verdict.band,
                "reasons": verdict.reasons,
                "label_event": row.label_event,
            }
        )
        + b"\n"
    )
