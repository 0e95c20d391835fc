"""`./run bench risk --data DIR`: how well the scorer tells attacks, and what an event costs.

Beside river's HalfSpaceTrees and scikit-learn's IsolationForest, which are given the scorer's own columns.
docs/risk-model.md tells what each figure means.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple

from bench.harness.report import table as aligned
from bench.risk_model import regimes
from bench.risk_model.columns import table
from bench.risk_model.regimes import Part
from compliance.localdev.console import say
from compliance.localdev.layout import ROOT, find_layout
from compliance.serving.garbage_collection import spare_garbage_collection
from events.risk.evaluation.backtest import NOBODY, Agents, ReplayedEvent, StreamEvent, report
from events.risk.scoring.contract import Context, Event, RiskVerdict
from events.risk.scoring.features import signals
from events.risk.scoring.habits.comparison import compare
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import fold

MEASURES = {
    "non_read_roc_auc": "non-read AUC",
    "event_average_precision": "AP",
    "event_recall_at_1_percent_fpr": "recall at 1 % FPR",
    "sequence_roc_auc": "sequence AUC",
    "benign_share_high": "ordinary at 0.85",
    "agents_revoked_wrongly": "revoked wrongly",
}
OURS_ALONE = ("benign_share_high", "agents_revoked_wrongly")
SERVICE, IN_PLACE, TREES = "service", "service, without a copy of the state", "HalfSpaceTrees"
WITH_COLUMNS = "HalfSpaceTrees, columns made"
SHARES = ("0.5", "0.99")
TIMED = ("cold", "transactions")
"""Whose events are timed, in turns: the scorer, then HalfSpaceTrees, each time over all of them."""
TURNS = 5


class Regime(NamedTuple):
    """One way to meet a stream."""

    parts: list[Part]
    agents: Agents
    apart: bool


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./run bench risk", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the streams are")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures for programs too")
    parsed = parser.parse_args(arguments)
    met = _regimes(parsed.data)
    figures = _service(met)
    if parsed.alone:
        costs: Costs = {SERVICE: [_replayed(met, _fold_copy) for _ in range(TURNS)]}
    else:
        costs = _beside_peers(met, figures)
    say("\n".join([*aligned(_lines(figures)), "", *aligned(_cost_lines(costs))]))
    if parsed.json:
        measured = {name: quantiles(replays) for name, replays in costs.items()}
        parsed.json.write_text(json.dumps({"figures": figures, "microseconds": measured}, indent=2))
    return 0


def _regimes(folder: Path) -> dict[str, Regime]:
    streams = regimes.load(folder)
    tasks, agents = streams.tasks, streams.task_agents
    return {
        "cold": Regime(regimes.cold(tasks), agents, apart=False),
        "unseen task": Regime(regimes.unseen_task(tasks, agents), agents, apart=True),
        "mature": Regime(regimes.mature(tasks, agents), agents, apart=True),
        "mature, one stream": Regime(regimes.mature(tasks, agents), agents, apart=False),
        "transactions": Regime(regimes.cold(streams.payments), NOBODY, apart=False),
        "tools, with scope": Regime(regimes.cold(streams.tools), streams.tool_agents, apart=False),
        "tools, no scope": Regime(regimes.cold(streams.tools), NOBODY, apart=False),
    }


Figures = dict[str, dict[str, dict[str, Any]]]
Timed = Callable[[AgentState, Event, Context], object]
Costs = dict[str, list[list[int]]]
"""By scorer, for each turn the nanoseconds of each timed event, scoring and learning together."""


def _service(met: dict[str, Regime]) -> Figures:
    figures: Figures = {}
    for name, regime in met.items():
        say(f"  … {name}")
        found = regimes.judged(regime.parts, regime.agents, apart=regime.apart)
        figures[name] = {SERVICE: report(found)}
    return figures


def _fold_copy(state: AgentState, event: Event, context: Context) -> AgentState:
    """Score the event and return the state after it; `state` stays as it was."""
    after = state.changeable()
    fold(after, event, context)
    return after


def _replayed(met: dict[str, Regime], timed: Timed) -> list[int]:
    return [cost for name in TIMED for cost in _once(met[name], timed)]


def _differences(state: AgentState, event: Event, context: Context) -> None:
    """What an event has to go through before there are columns: reading, and comparing with habits."""
    signals(compare(state, event), context)


def _once(regime: Regime, timed: Timed) -> list[int]:
    """Nanoseconds of each event; each agent's next one meets what the scorer learned from those before."""
    costs: list[int] = []
    nothing = Context()
    spare_garbage_collection()
    for part in regime.parts:
        states: dict[str, AgentState] = {}
        for row in part.runs:
            state, event = states.setdefault(row.agent, AgentState()), row.event
            context = regime.agents.contexts.get(row.agent, nothing)
            start = perf_counter_ns()
            result = timed(state, event, context)
            costs.append(perf_counter_ns() - start)
            if isinstance(result, AgentState):
                states[row.agent] = result
            elif timed is not fold:
                fold(state, event, context)
    return costs


def _beside_peers(met: dict[str, Regime], figures: Figures) -> Costs:
    """Add the peers' figures to `figures`, and tell what the scorer and its online peer cost in turns."""
    say("  … HalfSpaceTrees and IsolationForest on the same columns")
    tables = {name: table(regime.parts, regime.agents, apart=regime.apart) for name, regime in met.items()}
    for name, peers in _ask("figures", {name: each.events for name, each in tables.items()}).items():
        for peer, scores in peers.items():
            found = [_as_scored(row, score) for row, score in zip(tables[name].rows, scores, strict=True)]
            figures[name][peer] = {
                measure: None if measure in OURS_ALONE else figure
                for measure, figure in report(found).items()
            }
    costs: Costs = {SERVICE: [], IN_PLACE: [], TREES: [], WITH_COLUMNS: []}
    for turn in range(TURNS):
        say(f"  … costs, turn {turn + 1} of {TURNS}")
        costs[SERVICE].append(_replayed(met, _fold_copy))
        costs[IN_PLACE].append(_replayed(met, fold))
        trees = _ask("costs", {name: tables[name].events for name in TIMED})
        making = _replayed(met, _differences)
        costs[TREES].append(trees)
        costs[WITH_COLUMNS].append([sum(pair) for pair in zip(making, trees, strict=True)])
    return costs


def _ask(what: str, tables: dict[str, list[list[float]]]) -> Any:
    """The peers' answer; they run in the benchmarks' own Python."""
    answered = subprocess.run(
        [find_layout().bench_venv / "bin/python", ROOT / "bench/risk_model/peers.py", what],
        input=json.dumps(tables),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(answered.stdout)


def _as_scored(row: StreamEvent, score: float) -> ReplayedEvent:
    return ReplayedEvent(row, row.event, RiskVerdict(score, "low", (), ""))


def _lines(figures: Figures) -> list[list[str]]:
    return [["", "", *MEASURES.values()]] + [
        [name, scorer, *(_cell(measures[measure]) for measure in MEASURES)]
        for name, scorers in figures.items()
        for scorer, measures in scorers.items()
    ]


def _cell(figure: float | None) -> str:
    if figure is None:
        return "-"
    return str(figure) if isinstance(figure, int) else f"{figure:.4f}"


def quantiles(replays: list[list[int]]) -> dict[str, float]:
    """Microseconds at the median and the 99th percentile: of each replay, and then the median of those."""
    return {
        share: median(sorted(replay)[int(len(replay) * float(share))] for replay in replays) / 1000
        for share in SHARES
    }


def _cost_lines(costs: Costs) -> list[list[str]]:
    return [["µs an event", "p50", "p99"]] + [
        [name, *(f"{figure:.1f}" for figure in quantiles(replays).values())]
        for name, replays in costs.items()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
