"""`./run bench risk_worlds --data DIR`: what the scorer's figures owe to the open suites and their agents.

The tool calls are changed, one way at a time, into what other suites, tenants and models might have made of
them (`risk_model/worlds.py`), and met in four ways: without a past, at an unseen task, with half of the tasks
unseen at once, and mature. `--without` leaves out one difference from habit after another instead.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.harness.report import table as aligned
from bench.risk_model import regimes
from bench.risk_model.regimes import Part
from bench.risk_model.worlds import World, worlds
from compliance.localdev.console import say
from events.risk.evaluation.backtest import Agents, report
from events.risk.scoring import weights

MEASURES = ("non_read_roc_auc", "event_average_precision", "event_recall_at_1_percent_fpr")
WAYS = ("cold", "unseen task", "unseen half", "mature")
Ways = dict[str, tuple[list[Part], Agents, bool]]
"""Parts, their agents, and whether each run is met by itself."""


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./run bench risk_worlds", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--without", action="store_true", help="leave out one weight at a time")
    parsed = parser.parse_args(arguments)
    streams = regimes.load(parsed.data)
    open_world = World(streams.tasks, streams.task_agents)
    lines = [["", *(f"{way}: AUC / AP / recall" for way in WAYS)]]
    if parsed.without:
        lines += _without(open_world)
    else:
        for name, world in worlds(*open_world).items():
            lines.append([name, *_figures(_met(world))])
            say(f"  … {name}")
    say("\n".join(aligned(lines)))
    return 0


def _without(world: World) -> Iterator[list[str]]:
    met = _met(world)
    yield ["all", *_figures(met)]
    for name in [name for name in vars(weights) if name.isupper()]:
        with _left_out(name):
            yield [f"without {name}", *_figures(met)]


@contextmanager
def _left_out(name: str) -> Iterator[None]:
    present = getattr(weights, name)
    setattr(weights, name, 0.0)
    try:
        yield
    finally:
        setattr(weights, name, present)


def _met(world: World) -> Ways:
    rows, agents = world
    return {
        "cold": (regimes.cold(rows), agents, False),
        "unseen task": (regimes.unseen_task(rows, agents), agents, True),
        "unseen half": (regimes.unseen_half(rows, agents), agents, False),
        "mature": (regimes.mature(rows, agents), agents, True),
    }


def _figures(met: Ways) -> list[str]:
    cells = []
    for parts, agents, apart in met.values():
        measured = report(regimes.judged(parts, agents, apart=apart))
        cells.append(" / ".join(f"{measured[measure]:.3f}" for measure in MEASURES))
    return cells


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
