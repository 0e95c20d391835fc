"""`./run bench risk --data DIR`: how well the scorer tells attacks, and what an event costs.

Beside river's HalfSpaceTrees and scikit-learn's IsolationForest, which are given the scorer's own columns.
docs/risk-model.md tells what each figure means.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

from bench.harness.report import table as aligned
from bench.risk_model import regimes
from bench.risk_model.columns import table
from bench.risk_model.regimes import Part
from compliance.localdev.console import say
from compliance.localdev.layout import ROOT, find_layout
from events.scoring import AgentState, Context, Verdict, fold
from events.scoring.backtest import Row, Scored, report

MEASURES = {
    "non_read_roc_auc": "non-read AUC",
    "event_average_precision": "AP",
    "event_recall_at_1_percent_fpr": "recall at 1 % FPR",
    "sequence_roc_auc": "sequence AUC",
    "benign_share_high": "ordinary at 0.85",
    "agents_revoked_wrongly": "revoked wrongly",
}
OURS_ALONE = ("benign_share_high", "agents_revoked_wrongly")
SERVICE = "service"
TIMED = ("cold", "transactions")
"""Whose events are timed, each by the fastest of REPETITIONS replays: the machine may have other work."""
REPETITIONS = 3


class Regime(NamedTuple):
    """One way to meet a stream."""

    parts: list[Part]
    agents: dict[str, Context]
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
    costs: Costs = {SERVICE: [cost for name in TIMED for cost in _fastest(met[name])]}
    if not parsed.alone:
        _add_peers(met, figures, costs)
    say("\n".join([*aligned(_lines(figures)), "", *aligned(_cost_lines(costs))]))
    if parsed.json:
        parsed.json.write_text(json.dumps({"figures": figures, "microseconds": _quantiles(costs)}, indent=2))
    return 0


def _regimes(folder: Path) -> dict[str, Regime]:
    streams = regimes.load(folder)
    tasks, agents = streams.tasks, streams.task_agents
    return {
        "cold": Regime(regimes.cold(tasks), agents, apart=False),
        "unseen task": Regime(regimes.unseen_task(tasks), agents, apart=True),
        "mature": Regime(regimes.mature(tasks), agents, apart=True),
        "mature, one stream": Regime(regimes.mature(tasks), agents, apart=False),
        "transactions": Regime(regimes.cold(streams.payments), {}, apart=False),
        "tools, with scope": Regime(regimes.cold(streams.tools), streams.tool_agents, apart=False),
        "tools, no scope": Regime(regimes.cold(streams.tools), {}, apart=False),
    }


Figures = dict[str, dict[str, dict[str, Any]]]
Costs = dict[str, list[int]]
"""Nanoseconds of each timed event, scoring and learning together."""


def _service(met: dict[str, Regime]) -> Figures:
    figures: Figures = {}
    for name, regime in met.items():
        say(f"  … {name}")
        found = regimes.judged(regime.parts, regime.agents, apart=regime.apart)
        figures[name] = {SERVICE: report(found)}
    return figures


def _fastest(regime: Regime) -> list[int]:
    return [min(costs) for costs in zip(*(_once(regime) for _ in range(REPETITIONS)), strict=True)]


def _once(regime: Regime) -> list[int]:
    costs: list[int] = []
    nothing = Context()
    gc.collect()
    for part in regime.parts:
        states: dict[str, AgentState] = {}
        for row in part.runs:
            state, event = states.setdefault(row.agent, AgentState()), row.event
            context = regime.agents.get(row.agent, nothing)
            start = perf_counter_ns()
            fold(state, event, context)
            costs.append(perf_counter_ns() - start)
    return costs


def _add_peers(met: dict[str, Regime], figures: Figures, costs: Costs) -> None:
    say("  … HalfSpaceTrees and IsolationForest on the same columns")
    tables = {name: table(regime.parts, regime.agents, apart=regime.apart) for name, regime in met.items()}
    python = find_layout().bench_venv / "bin/python"
    answered = subprocess.run(
        [python, ROOT / "bench/risk_model/peers.py"],
        input=json.dumps({name: (each.events, name in TIMED) for name, each in tables.items()}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for name, peers in json.loads(answered.stdout).items():
        for peer, answer in peers.items():
            found = [
                _as_scored(row, score) for row, score in zip(tables[name].rows, answer["scores"], strict=True)
            ]
            figures[name][peer] = {
                measure: None if measure in OURS_ALONE else figure
                for measure, figure in report(found).items()
            }
            costs.setdefault(peer, []).extend(answer["costs"])


def _as_scored(row: Row, score: float) -> Scored:
    return Scored(row, row.event, Verdict(score, "low", (), ""))


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


def _quantiles(costs: Costs) -> dict[str, dict[str, float]]:
    return {
        name: {share: sorted(each)[int(len(each) * float(share))] / 1000 for share in ("0.5", "0.99")}
        for name, each in costs.items()
        if each
    }


def _cost_lines(costs: Costs) -> list[list[str]]:
    return [["µs an event", "p50", "p99"]] + [
        [name, f"{shares['0.5']:.1f}", f"{shares['0.99']:.1f}"] for name, shares in _quantiles(costs).items()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
