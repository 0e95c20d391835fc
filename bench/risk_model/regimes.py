"""The ways in which agents meet a stream: without a past, at a task they never did, at tasks they know.

A run's name tells its task: `model|suite|task|clean` or `model|suite|task|…|inj`. Clean runs are what an
agent did before; an agent that knows the task has done it clean, one at an unseen task has done all others.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from events.risk.evaluation.backtest import (
    NOBODY,
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


class Stream(NamedTuple):
    """Events in order of time, and what is known of the agents that they are of."""

    rows: list[StreamEvent]
    agents: Agents


class Streams(NamedTuple):
    """The public streams: tool calls by suite, two suites again as `{tool, args}`, and the others."""

    suites: dict[str, Stream]
    verbatim: dict[str, Stream]
    payments: Stream
    tools: Stream
    real_time: Stream


def load(folder: Path) -> Streams:
    """The streams in a folder; `real_time` has no labels."""
    dojo = read_agents((folder / "agentdojo_dev_agents.json").read_bytes())
    dyn = read_agents((folder / "agentdyn_dev_agents.json").read_bytes())
    tools = read_agents((folder / "asb_agents.json").read_bytes())
    return Streams(
        by_suite(_rows(folder / "agentdojo_dev.jsonl"), dojo)
        | by_suite(_rows(folder / "agentdyn_dev.jsonl"), dyn),
        by_suite(_rows(folder / "agentdyn_dev_verbatim.jsonl"), dyn),
        Stream(_rows(folder / "txn_fraudhandbook_dev.jsonl"), NOBODY),
        Stream(_rows(folder / "asb_assebench_security.jsonl"), tools),
        Stream(_rows(folder / "realtime_unlabelled.jsonl"), NOBODY),
    )


def _rows(path: Path) -> list[StreamEvent]:
    with path.open("rb") as lines:
        return read_stream(lines)


def by_suite(rows: list[StreamEvent], agents: Agents) -> dict[str, Stream]:
    """A stream of each suite; no agent belongs to two."""
    suites: defaultdict[str, list[StreamEvent]] = defaultdict(list)
    for row in rows:
        suites[suite_of(row)].append(row)
    return {suite: Stream(found, agents) for suite, found in sorted(suites.items())}


def task_of(row: StreamEvent) -> str:
    """The suite and number of the task that a run was about."""
    return "|".join(row.run.split("|")[1:3])


def suite_of(row: StreamEvent) -> str:
    """The suite of a run's task."""
    return row.run.split("|")[1]


def is_clean(row: StreamEvent) -> bool:
    """Whether the row is from a run without an injection."""
    return row.run.endswith("|clean")


class Part(NamedTuple):
    """Runs to judge, the ordinary events of their agents before them, and what was learned from those."""

    history: list[StreamEvent]
    learned: Learned
    runs: list[StreamEvent]


class Way(NamedTuple):
    """A way to meet a stream; with `apart` each run by itself, from what was learned before it."""

    parts: Callable[[Stream], list[Part]]
    apart: bool


def cold(stream: Stream) -> list[Part]:
    """One stream, every agent without a past."""
    return [Part([], NOTHING, stream.rows)]


def unseen_task(stream: Stream) -> list[Part]:
    """The runs of each task, after clean runs of all other tasks."""
    return [_part(stream, history, runs) for history, runs in by_task(stream.rows)]


def mature(stream: Stream) -> list[Part]:
    """Runs with an injection, after all clean runs."""
    history = [row for row in stream.rows if is_clean(row)]
    return [_part(stream, history, [row for row in stream.rows if not is_clean(row)])]


WAYS = {
    "unseen task": Way(unseen_task, apart=True), "mature": Way(mature, apart=True),
    "cold": Way(cold, apart=False),
    "mature, one stream": Way(mature, apart=False),
}  # fmt: skip


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


def _part(stream: Stream, history: list[StreamEvent], runs: list[StreamEvent]) -> Part:
    before = min(row.event.received_at for row in runs)
    return Part(history, taught(history, stream.agents, before=before), runs)
