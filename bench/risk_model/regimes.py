"""The ways in which agents meet a stream: without a past, at a task they never did, at tasks they know.

A run's name tells its task: `model|suite|task|clean` or `…|inj`. Clean runs are what an agent did before; an
agent that knows the task has done it clean, one at an unseen task has done all others.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from events.risk.evaluation.backtest import (
    NOTHING,
    Agents,
    Learned,
    ReplayedEvent,
    StreamEvent,
    read_agents,
    read_stream,
    scored,
    taught,
)


class Streams(NamedTuple):
    """The three public streams and what is known of their agents."""

    tasks: list[StreamEvent]
    task_agents: Agents
    payments: list[StreamEvent]
    tools: list[StreamEvent]
    tool_agents: Agents


def load(folder: Path) -> Streams:
    """The streams in a folder."""
    return Streams(
        _rows(folder / "agentdojo_dev.jsonl"),
        read_agents((folder / "agentdojo_dev_agents.json").read_bytes()),
        _rows(folder / "txn_fraudhandbook_dev.jsonl"),
        _rows(folder / "asb_assebench_security.jsonl"),
        read_agents((folder / "asb_agents.json").read_bytes()),
    )


def _rows(path: Path) -> list[StreamEvent]:
    with path.open("rb") as lines:
        return read_stream(lines)


def task_of(row: StreamEvent) -> str:
    """The suite and number of the task that a run was about."""
    return "|".join(row.run.split("|")[1:3])


def model_of(row: StreamEvent) -> str:
    """The model that a run was of."""
    return row.run.split("|")[0]


def suite_of(row: StreamEvent) -> str:
    """The suite of a run's task."""
    return row.run.split("|")[1]


def is_clean(row: StreamEvent) -> bool:
    """Whether the row is from a run without an injection."""
    return row.run.endswith("|clean")


class Part(NamedTuple):
    """Runs to judge, and what their agents learned before them from history known to be ordinary."""

    learned: Learned
    runs: list[StreamEvent]


def cold(rows: list[StreamEvent]) -> list[Part]:
    """One stream, every agent without a past."""
    return [Part(NOTHING, rows)]


def unseen_task(rows: list[StreamEvent], agents: Agents) -> list[Part]:
    """The runs of each task, after clean runs of all other tasks."""
    return [Part(_taught(history, agents, runs), runs) for history, runs in by_task(rows)]


def unseen_half(rows: list[StreamEvent], agents: Agents) -> list[Part]:
    """The runs of every other task in one stream, after clean runs of the rest; and the other way round."""
    parts = []
    for odd in (0, 1):
        runs = [row for row in rows if task_number(row) % 2 == odd]
        history = [row for row in rows if is_clean(row) and task_number(row) % 2 != odd]
        parts.append(Part(_taught(history, agents, runs), runs))
    return parts


def task_number(row: StreamEvent) -> int:
    """The number of a run's task within its suite."""
    return int(row.run.split("|")[2][1:])


def mature(rows: list[StreamEvent], agents: Agents) -> list[Part]:
    """Runs with an injection, after all clean runs."""
    runs = [row for row in rows if not is_clean(row)]
    return [Part(_taught([row for row in rows if is_clean(row)], agents, runs), runs)]


def judged(parts: Iterable[Part], agents: Agents, *, apart: bool) -> list[ReplayedEvent]:
    """The verdicts on all parts; with `apart` each run by itself, from what was learned before."""
    found: list[ReplayedEvent] = []
    for part in parts:
        found += scored(part.runs, agents, part.learned, runs_apart=apart)
    return found


def by_task(rows: list[StreamEvent]) -> Iterator[tuple[list[StreamEvent], list[StreamEvent]]]:
    """For each task the clean runs of all others, and its own runs."""
    for task in sorted({task_of(row) for row in rows}):
        suite = task.split("|", maxsplit=1)[0]
        yield (
            [row for row in rows if is_clean(row) and task_of(row) != task and suite_of(row) == suite],
            [row for row in rows if task_of(row) == task],
        )


def _taught(history: list[StreamEvent], agents: Agents, runs: list[StreamEvent]) -> Learned:
    return taught(history, agents, before=min(row.event.received_at for row in runs))
