"""What scoring and learning an event takes: `python -m bench.risk_model.timing DIR STEP` replays once.

Each replay is a program of its own, so that nothing is known from an earlier one, and `COMPILED=0` times the
scorer as Python beside the compiled one. An event's cost is that of its quickest replay: what shares the
processor empties its caches, and that falls on other events each time, while what the scorer does for an
event is the same in all of them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple

from bench.risk_model import regimes
from bench.risk_model.regimes import Stream
from compliance.localdev.layout import ROOT
from compliance.serving.garbage_collection import spare_garbage_collection
from events.risk import scoring
from events.risk.compiling import runs_compiled
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.details import read
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import fold

TURNS = 7
SHARES = (0.5, 0.99)
AIMS = {"compiled": 25.0, "Python": 150.0}
"""The most microseconds of processor time that the 99th percentile may take."""
Timed = Callable[[AgentState, Event, Context], object]
Line = list[str]


def _read(_: AgentState, event: Event, __: Context) -> None:
    read(event.details)


STEPS: dict[str, Timed] = {"all": fold, "reading alone": _read}
"""What is timed: an event from its details to the learned state; and reading its details, the floor."""


class Replayed(NamedTuple):
    """Nanoseconds of each event in one replay: of the thread alone, and by the clock on the wall."""

    processor: list[int]
    wall: list[int]


class Times(NamedTuple):
    """Microseconds an event, at the median and the 99th percentile of all events.

    `least`: processor time of each event's quickest replay; `once` and `wall`: of one replay, by processor
    and wall. Shares of the events that take longer than the aim: `slow` in one replay, `always_slow` in all.
    """

    least: list[float]
    once: list[float]
    wall: list[float]
    slow: float
    always_slow: float


def timed_streams(folder: Path) -> list[Stream]:
    """The streams whose events are timed: tool calls in both spellings, and payments."""
    streams = regimes.load(folder)
    return [*streams.suites.values(), *streams.verbatim.values(), streams.payments]


def replayed(streams: Sequence[Stream], timed: Timed) -> Replayed:
    """Time each event; each agent's next one meets what the scorer learned from those before."""
    spare_garbage_collection()
    costs = [cost for stream in streams for cost in _once(stream, timed)]
    return Replayed([processor for processor, _ in costs], [wall for _, wall in costs])


def quantiles(replays: Sequence[Sequence[int]]) -> list[float]:
    """Microseconds at the median and the 99th percentile: of each replay, and then the median of those."""
    return [median(sorted(replay)[int(len(replay) * share)] for replay in replays) / 1000 for share in SHARES]


def undisturbed(replays: Sequence[Sequence[int]]) -> list[int]:
    """Nanoseconds of each event in its quickest replay: the same work, least held up by other programs."""
    return [min(costs) for costs in zip(*replays, strict=True)]


def times_of(replays: Sequence[Replayed], most: float) -> Times:
    """The figures of several replays; `most`: the aim, in microseconds."""
    processor = [replay.processor for replay in replays]
    least = undisturbed(processor)
    return Times(
        quantiles([least]),
        quantiles(processor),
        quantiles([replay.wall for replay in replays]),
        median(_share_above(replay, most) for replay in processor),
        _share_above(least, most),
    )


def measured(folder: Path) -> dict[tuple[str, str], Times]:
    """The times of each scorer and step; none of the compiled scorer where it is not compiled."""
    found = {}
    for name, most in AIMS.items():
        for step in STEPS:
            replays = [_asked(folder, step, name) for _ in range(TURNS)]
            if known := [replay for replay in replays if replay]:
                found[name, step] = times_of(known, most)
    return found


def lines(found: dict[tuple[str, str], Times]) -> list[Line]:
    """The table of the figures, the aim beside those that it is of."""
    heads = [f"µs an event, each event's quickest of {TURNS}", "p50", "p99", "aim"]
    table = [[*heads, "one replay: p50", "p99", "wall p50", "wall p99", "over the aim once", "always"]]
    for name, most in AIMS.items():
        for step in STEPS:
            if times := found.get((name, step)):
                aim = f"p99 ≤ {most:g}" if step == "all" else "-"
                costs = (*times.once, *times.wall)
                shares = (f"{share:.2%}" for share in (times.slow, times.always_slow))
                table.append([f"{name}: {step}", *_told(times.least), aim, *_told(costs), *shares])
            elif step == "all":
                table.append([f"{name}: not compiled", *["-"] * 9])
    return table


def _told(costs: Sequence[float]) -> list[str]:
    return [f"{cost:.1f}" for cost in costs]


def _share_above(costs: Sequence[int], most: float) -> float:
    return sum(cost > most * 1000 for cost in costs) / len(costs)


def _asked(folder: Path, step: str, name: str) -> Replayed | None:
    answered = subprocess.run(
        [sys.executable, "-m", "bench.risk_model.timing", str(folder), step],
        env=os.environ | {"COMPILED": str(int(name == "compiled"))},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    costs = json.loads(answered.stdout)
    return Replayed(*costs) if costs else None


def _once(stream: Stream, timed: Timed) -> Iterator[tuple[int, int]]:
    states: dict[str, AgentState] = {}
    nothing = Context()
    for row in stream.rows:
        state, event = states.setdefault(row.agent, AgentState()), row.event
        context = stream.agents.contexts.get(row.agent, nothing)
        wall, processor = perf_counter_ns(), thread_time_ns()
        timed(state, event, context)
        processor, wall = thread_time_ns() - processor, perf_counter_ns() - wall
        yield processor, wall
        if timed is not fold:
            fold(state, event, context)


def main(arguments: Sequence[str]) -> int:
    """Time one step of the scorer as this process runs it; nothing where it should be compiled and isn't."""
    folder, step = arguments
    if os.environ.get("COMPILED") != "0" and not runs_compiled(scoring.__path__):
        json.dump([], sys.stdout)
        return 0
    json.dump(replayed(timed_streams(Path(folder)), STEPS[step]), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
