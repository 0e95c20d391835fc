"""`backtest_risk`: replay past events of a file through the scorer."""

from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

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


class Command(ServiceCommand):
    help = "Replay events of a file through the risk scorer."
    requires_system_checks = []

    arguments: ClassVar = {
        **{
            f"--{name}": {"type": Path, "metavar": "FILE", "help": use, "required": name == "events"}
            for name, use in FILES.items()
        },
        "--runs-apart": {
            "action": "store_true",
            "help": "start every run (`seq`) from the state after the warm-up instead of one after another",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> Any:
        try:
            found = _scored(options)
            if options["output"]:
                options["output"].write_bytes(b"".join(map(_line, found)))
        except (StreamUnreadable, OSError) as error:
            raise Invalid(str(error)) from error
        return report(found)


def _scored(options: dict[str, Any]) -> list[ReplayedEvent]:
    agents = read_agents(options["agents"].read_bytes()) if options["agents"] else NOBODY
    rows = _stream(options["events"])
    if not rows:
        raise StreamUnreadable(f"{options['events']}: no events")
    history = _stream(options["warmup"]) if options["warmup"] else []
    learned = taught(history, agents, before=rows[0].event.received_at)
    return list(scored(rows, agents, learned, runs_apart=options["runs_apart"]))


def _stream(path: Path) -> list[StreamEvent]:
    with path.open("rb") as lines:
        try:
            return read_stream(lines)
        except StreamUnreadable as error:
            raise StreamUnreadable(f"{path}: {error}") from error


def _line(one: ReplayedEvent) -> bytes:
    row, verdict = one.row, one.verdict
    stated = {"agent": row.agent, "t": row.t, "seq": row.seq, "action_type": row.action_type}
    given = {"score": verdict.score, "band": verdict.band, "reasons": verdict.reasons}
    return msgspec.json.encode({**stated, **given, "label_event": row.label_event}) + b"\n"
