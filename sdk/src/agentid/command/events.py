"""`events tail`: follow what agents do."""

import argparse
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from agentid.client.generated.results import BehaviorEvent
from agentid.client.service import Client
from agentid.command.accounts import client_for
from agentid.command.output import Output

REMEMBERED: Final = 2000  # events that one look goes back for new ones


def register(commands: Any) -> None:
    events = commands.add_parser("events", help="events of agents").add_subparsers(required=True)
    tail = events.add_parser("tail", help="write events as they come, oldest first")
    tail.add_argument("--agent-id")
    tail.add_argument("--lines", type=_count, default=10, help="older events to begin with")
    tail.add_argument("--count", type=_count, help="end after this many")
    tail.add_argument("--interval", type=_seconds, default=2.0, help="seconds between looks")
    tail.set_defaults(run=run)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError("a number from 0")
    return int(text)


def _seconds(text: str) -> float:
    if not 0 <= (found := float(text)) <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError("seconds from 0")
    return found


def run(given: argparse.Namespace, output: Output) -> None:
    with client_for(given) as client:
        for event in islice(follow(client, given), given.count):
            output.row(
                occurred_at=event.occurred_at.isoformat(),
                agent_id=event.agent_id,
                action_type=event.action_type,
                risk_score=event.risk_score,
                risk_band=event.risk_band,
                id=event.id,
            )


def follow(client: Client, given: argparse.Namespace) -> Iterator[BehaviorEvent]:
    """Events without end: the last ones, then each new one once.

    One that comes late is found among the newest hundred.
    """
    seen: dict[str, None] = {}
    newest = islice(client.events.list(agent_id=given.agent_id, limit=100), given.lines)
    while True:
        batch = []
        for number, event in enumerate(newest):
            if event.id not in seen:
                batch.append(event)
            elif number >= 100:
                break
        for event in reversed(batch):
            seen[event.id] = None
            yield event
        for old in list(seen)[:-REMEMBERED]:
            del seen[old]
        time.sleep(given.interval)
        newest = islice(client.events.list(agent_id=given.agent_id, limit=100), REMEMBERED)
