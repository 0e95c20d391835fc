"""`backtest_risk --events FILE.jsonl --agents FILE.json`: replay past events through the scorer."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import msgspec

from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid
from events.risk.evaluation.backtest import (
    NOBODY,
    ReplayedEvent,
    StreamEvent,
    StreamUnreadable,
    read_agents,
    read_stream,
    report,
    scored,
    taught,
)

FILES = {
    "events": "JSON Lines, one event each",
    "agents": "JSON: scope, domain and tenant of each agent",
    "warmup": "earlier events, known to be ordinary",
    "output": "write each event's score as JSON Lines",
}
BAR = 30
STEPS = 100


class Command(ServiceCommand):
    help = "Replay a stream of events through the risk scorer and measure its verdicts."
    requires_system_checks = []

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        for name, use in FILES.items():
            required = name == "events"
            parser.add_argument(f"--{name}", type=Path, required=required, metavar="FILE", help=use)
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

    def _scored(self, options: dict[str, Any]) -> list[ReplayedEvent]:
        agents = read_agents(options["agents"].read_bytes()) if options["agents"] else NOBODY
        rows = _stream(options["events"])
        if not rows:
            raise StreamUnreadable(f"{options['events']}: no events")
        history = _stream(options["warmup"]) if options["warmup"] else []
        learned = taught(history, agents, before=rows[0].event.received_at)
        replayed = watched(rows, sys.stderr) if sys.stderr.isatty() else iter(rows)
        return list(scored(replayed, agents, learned, runs_apart=options["runs_apart"]))


def _stream(path: Path) -> list[StreamEvent]:
    with path.open("rb") as lines:
        try:
            return read_stream(lines)
        except StreamUnreadable as error:
            raise StreamUnreadable(f"{path}: {error}") from error


def watched(rows: list[StreamEvent], terminal: TextIO) -> Iterator[StreamEvent]:
    """Yield the rows and show a progress bar on the terminal."""
    every = max(len(rows) // STEPS, 1)
    for number, row in enumerate(rows, 1):
        yield row
        if number % every == 0 or number == len(rows):
            filled = BAR * number // len(rows)
            terminal.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {number:,} of {len(rows):,} events")
            terminal.flush()
    terminal.write("\n")


def _line(one: ReplayedEvent) -> bytes:
    row, verdict = one.row, one.verdict
    stated = {"agent": row.agent, "t": row.t, "seq": row.seq, "action_type": row.action_type}
    given = {"score": verdict.score, "band": verdict.band, "reasons": verdict.reasons}
    return msgspec.json.encode({**stated, **given, "label_event": row.label_event}) + b"\n"
