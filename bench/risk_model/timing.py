"""What scoring and learning an event takes: `python -m bench.risk_model.timing DIR` prints microseconds.

A program of its own, so that `COMPILED=0` times the scorer as Python beside the compiled one. Times are of
the thread alone, without what other programs took of the processor meanwhile.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import thread_time_ns

from bench.risk_model import regimes
from bench.risk_model.regimes import Stream
from compliance.localdev.layout import ROOT
from compliance.serving.garbage_collection import spare_garbage_collection
from events.risk import scoring
from events.risk.compiling import runs_compiled
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import fold

TURNS = 5
SHARES = (0.5, 0.99)
Timed = Callable[[AgentState, Event, Context], object]


def timed_streams(folder: Path) -> list[Stream]:
    """The streams whose events are timed: tool calls in both spellings, and payments."""
    streams = regimes.load(folder)
    return [*streams.suites.values(), *streams.verbatim.values(), streams.payments]


def replayed(streams: Sequence[Stream], timed: Timed) -> list[int]:
    """Nanoseconds of each event; each agent's next one meets what the scorer learned from those before."""
    spare_garbage_collection()
    return [cost for stream in streams for cost in _once(stream, timed)]


def quantiles(replays: list[list[int]]) -> list[float]:
    """Microseconds at the median and the 99th percentile: of each replay, and then the median of those."""
    return [median(sorted(replay)[int(len(replay) * share)] for replay in replays) / 1000 for share in SHARES]


def undisturbed(replays: list[list[int]]) -> list[int]:
    """Nanoseconds of each event in its quickest replay: the same work, least held up by other programs.

    What shares the processor empties its caches, which a replay's 99th percentile shows before anything else.
    """
    return [min(costs) for costs in zip(*replays, strict=True)]


def measured(folder: Path) -> dict[str, list[float]]:
    """Microseconds at both quantiles, and undisturbed at the latter, of the scorer compiled and as Python."""
    return {name: _asked(folder, compiled) for name, compiled in (("compiled", "1"), ("Python", "0"))}


def _asked(folder: Path, compiled: str) -> list[float]:
    answered = subprocess.run(
        [sys.executable, "-m", "bench.risk_model.timing", str(folder)],
        env=os.environ | {"COMPILED": compiled},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: list[float] = json.loads(answered.stdout)
    return found


def _once(stream: Stream, timed: Timed) -> list[int]:
    costs: list[int] = []
    states: dict[str, AgentState] = {}
    nothing = Context()
    for row in stream.rows:
        state, event = states.setdefault(row.agent, AgentState()), row.event
        context = stream.agents.contexts.get(row.agent, nothing)
        start = thread_time_ns()
        timed(state, event, context)
        costs.append(thread_time_ns() - start)
        if timed is not fold:
            fold(state, event, context)
    return costs


def main(arguments: Sequence[str]) -> int:
    """Time the scorer as this process runs it; nothing where it should be compiled and isn't."""
    if os.environ.get("COMPILED") != "0" and not runs_compiled(scoring.__path__):
        json.dump([], sys.stdout)
        return 0
    streams = timed_streams(Path(arguments[0]))
    replays = [replayed(streams, fold) for _ in range(TURNS)]
    json.dump([*quantiles(replays), quantiles([undisturbed(replays)])[-1]], sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
