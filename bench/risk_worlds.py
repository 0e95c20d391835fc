"""`./run bench risk_worlds --data DIR`: what the scorer's figures owe to the open suites and their agents.

The tool calls are changed, one way at a time, into what other suites, tenants and models might have made of
them (`risk_model/worlds.py`), and met in four ways: without a past, at an unseen task, with half of the tasks
unseen at once, and mature. `--without` leaves out one difference from habit after another instead.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.harness.report import table as aligned
from bench.risk_model import regimes
from bench.risk_model.columns import WEIGHTS, weighed
from bench.risk_model.regimes import WAYS, Part, Stream
from bench.risk_model.worlds import worlds
from compliance.localdev.console import say
from events.risk.evaluation.backtest import report

MEASURES = ("non_read_roc_auc", "event_average_precision", "event_recall_at_1_percent_fpr")
MET = ("cold", "unseen task", "unseen half", "mature")
Met = dict[str, list[Part]]


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./run bench risk_worlds", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--without", action="store_true", help="leave out one weight at a time")
    parsed = parser.parse_args(arguments)
    open_world = regimes.joined(regimes.load(parsed.data).suites.values())
    lines = [["", *(f"{way}: AUC / AP / recall" for way in MET)]]
    if parsed.without:
        lines += _without(open_world)
    else:
        for name, world in worlds(open_world).items():
            lines.append([name, *_figures(world, _met(world))])
            say(f"  … {name}")
    say("\n".join(aligned(lines)))
    return 0


def _without(world: Stream) -> Iterator[list[str]]:
    met = _met(world)
    yield ["all", *_figures(world, met)]
    for name in WEIGHTS:
        with weighed({name: 0.0}):
            yield [f"without {name}", *_figures(world, met)]


def _met(world: Stream) -> Met:
    return {name: WAYS[name].parts(world) for name in MET}


def _figures(world: Stream, met: Met) -> list[str]:
    cells = []
    for name, parts in met.items():
        measured = report(regimes.judged(parts, world.agents, apart=WAYS[name].apart))
        cells.append(" / ".join(f"{measured[measure]:.3f}" for measure in MEASURES))
    return cells


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
