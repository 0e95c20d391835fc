"""`backtest_risk`: replay past events of a file, or of the database, through the scorer or another policy."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import msgspec
from django.utils.dateparse import parse_datetime

from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid
from compliance.core.identifiers import parse_id
from compliance.tenancy.errors import TenantNotFound
from compliance.tenancy.models import Tenant
from events.risk.evaluation import checkpoints
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
from events.risk.evaluation.findings import Fate, ReplayFindings, findings
from events.risk.evaluation.replay import Order, Replay, Stop
from events.risk.evaluation.simulations import order_of

FILES = {
    "events": "JSON Lines, one event each",
    "agents": "JSON: scope, domain and tenant of each agent",
    "warmup": "earlier events, known to be ordinary",
    "output": "write each event's score as JSON Lines",
}
DATABASE_FILES = {
    "candidate": "JSON: what the candidate changes of the live policy",
    "checkpoint": "where to keep how far the replay is",
}
BAR = 30
STEPS = 100
MOST_SHOWN = 50


class Command(ServiceCommand):
    help = (
        "Replay events of a file through the risk scorer, or a tenant's stored ones through another policy."
    )
    takes_environment = True
    requires_system_checks = []

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        for name, use in (FILES | DATABASE_FILES).items():
            parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=use)
        parser.add_argument(
            "--runs-apart",
            action="store_true",
            help="start every run (`seq`) from the state after the warm-up instead of one after another",
        )
        parser.add_argument("--from-database", action="store_true", help="replay the events of --tenant")
        parser.add_argument("--tenant", metavar="ID", help="whose stored events to replay")
        for name in ("since", "until"):
            parser.add_argument(f"--{name}", metavar="TIME", help="bound of the period, as 2026-11-01T00:00Z")
        parser.add_argument("--resume", action="store_true", help="go on from --checkpoint")

    def run(self, *, now: datetime, **options: Any) -> Any:
        try:
            return self._simulated(options, now) if options["from_database"] else self._backtested(options)
        except (StreamUnreadable, OSError) as error:
            raise Invalid(str(error)) from error

    def _backtested(self, options: dict[str, Any]) -> Any:
        if options["events"] is None:
            raise Invalid("give --events FILE or --from-database")
        found = self._scored(options)
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

    def _simulated(self, options: dict[str, Any], now: datetime) -> Any:
        order, file = _order(options, now), options["checkpoint"]
        any_end = options["until"] is None
        under_way = checkpoints.begun(order, file, resume=options["resume"], any_end=any_end)
        checkpoints.finish(under_way, file, tell=self._tell)
        found = findings(under_way, now=now)
        return msgspec.to_builtins(found) if options["json"] else _shown(found)

    def _tell(self, under_way: Replay) -> None:
        share = under_way.progress
        end = "\n" if under_way.is_done or not sys.stderr.isatty() else "\r"
        self.stderr.write(f"{_bar(share)} {share:.0%}, {under_way.events:,} events", ending=end)


def _order(options: dict[str, Any], now: datetime) -> Order:
    tenant_id = parse_id(options["tenant"])
    if tenant_id is None:
        raise Invalid("--from-database needs --tenant ID")
    if not Tenant.objects.filter(id=tenant_id).exists():
        raise TenantNotFound()
    changes = options["candidate"].read_bytes() if options["candidate"] else b"{}"
    since, until = (_moment(name, options[name]) for name in ("since", "until"))
    return order_of(tenant_id=tenant_id, changes=changes, since=since, until=until, now=now)


def _moment(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise Invalid(f"--{name} is no date and time: {text}")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shown(found: ReplayFindings) -> list[dict[str, Any] | str]:
    """Return the findings as lines: the check, the counts, then an agent a line."""
    lines: list[dict[str, Any] | str] = [
        {"events": found.events},
        f"revocations reproduced: {found.reproduced} of {found.recorded}",
        *(f"not reproduced: {one.agent_id} {one.at:%Y-%m-%d %H:%M:%S}: {one.reason}"
          for one in found.not_reproduced),
        {"live_stops": found.live_stops, "not_made_by_the_service": found.unrecorded},
        {"candidate_stops": found.candidate_stops},
    ]  # fmt: skip
    if found.order.candidate.rescored:
        lines.append(f"stored scores met again: {found.equal_scores:,} of {found.comparable_scores:,}")
    lines += [{"fate": fate, **counts} for fate, counts in found.counts.items()]
    return lines + [_row(one) for one in found.agents[:MOST_SHOWN]]


def _row(one: Fate) -> dict[str, Any]:
    return {
        "agent": one.agent_id,
        "fate": one.fate,
        "verdict": one.verdict,
        "stopped": f"{one.stopped_at:%Y-%m-%d %H:%M:%S}" if one.stopped_at else "never",
        "live": _when(one.live),
        "candidate": _when(one.candidate),
        "why": ", ".join(dict.fromkeys(name for name in _why(one.candidate or one.live))) or "-",
    }


def _when(stop: Stop | None) -> str:
    return f"{stop.at:%Y-%m-%d %H:%M:%S}" if stop else "never"


def _why(stop: Stop | None) -> Iterator[str]:
    for strike in stop.strikes if stop else ():
        yield from strike.reasons


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
            terminal.write(f"\r{_bar(number / len(rows))} {number:,} of {len(rows):,} events")
            terminal.flush()
    terminal.write("\n")


def _bar(share: float) -> str:
    filled = int(BAR * share)
    return f"[{'#' * filled}{'.' * (BAR - filled)}]"


def _line(one: ReplayedEvent) -> bytes:
    row, verdict = one.row, one.verdict
    stated = {"agent": row.agent, "t": row.t, "seq": row.seq, "action_type": row.action_type}
    given = {"score": verdict.score, "band": verdict.band, "reasons": verdict.reasons}
    return msgspec.json.encode({**stated, **given, "label_event": row.label_event}) + b"\n"
