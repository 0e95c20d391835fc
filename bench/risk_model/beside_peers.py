"""The scorer beside river's HalfSpaceTrees and scikit-learn's IsolationForest, which get its own columns."""

import json
import subprocess
from typing import Any

from bench.risk_model.columns import Table, table
from bench.risk_model.figures import LABELLED, Judged, Line, decimals
from bench.risk_model.judging import Key
from bench.risk_model.regimes import Stream, Way
from bench.risk_model.timing import quantiles, replayed
from compliance.localdev.layout import ROOT, find_layout
from events.risk.evaluation import metrics
from events.risk.evaluation.backtest import FEW_FALSE_ALARMS, PREPARATION, READ, StreamEvent
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.features.evidence import signals
from events.risk.scoring.habits.comparison import compare
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import fold

Asked = dict[Key, tuple[Stream, Way]]
TREES = "HalfSpaceTrees"
PEERS = (TREES, "IsolationForest")
TURNS = 3


def tables_of(asked: Asked) -> dict[Key, Table]:
    """The columns of every stream and way with labels, as the peers get them."""
    return {
        key: table(way.parts(stream), stream.agents, apart=way.apart)
        for key, (stream, way) in asked.items()
        if key[1] in LABELLED and any(row.is_attack for row in stream.rows)
    }


def figures(tables: dict[Key, Table], judged: Judged) -> list[Line]:
    """Non-read AUC, AP and recall at 1 % of the scorer and its peers."""
    answers = _ask("figures", {"|".join(key): each.events for key, each in tables.items()})
    lines = [["non-read AUC / AP / recall at 1 %", "service", *PEERS]]
    for key, peers in zip(tables, answers.values(), strict=True):
        own = judged[key]
        service = _cell(own.non_read.auc, own.all.precision, own.all.recall)
        lines.append([", ".join(key), service, *(_peer(peers[peer], tables[key].rows) for peer in PEERS)])
    return lines


def costs(columns: Table, payments: Stream) -> list[Line]:
    """Microseconds a payment: the scorer, and its online peer with and without making the columns."""
    found: dict[str, list[list[int]]] = {"service": [], TREES: [], f"{TREES}, columns made": []}
    for _ in range(TURNS):
        found["service"].append(replayed([payments], fold).processor)
        trees, making = (
            _ask("costs", {"payments": columns.events}),
            replayed([payments], _differences).processor,
        )
        found[TREES].append(trees)
        found[f"{TREES}, columns made"].append([sum(pair) for pair in zip(making, trees, strict=True)])
    return [["payments, µs an event", "p50", "p99"]] + [
        [name, *(f"{figure:.1f}" for figure in quantiles(replays))] for name, replays in found.items()
    ]


def _differences(state: AgentState, event: Event, context: Context) -> None:
    """What an event has to go through before there are columns: reading, and comparing with habits."""
    signals(compare(state, event), context)


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


def _peer(scores: list[float], rows: list[StreamEvent]) -> str:
    judged = [(score, row) for score, row in zip(scores, rows, strict=True) if row.stage != PREPARATION]
    non_read = [pair for pair in judged if pair[1].action_type != READ]
    values, attacks = [score for score, _ in judged], [row.is_attack for _, row in judged]
    return _cell(
        metrics.roc_auc([score for score, _ in non_read], [row.is_attack for _, row in non_read]),
        metrics.average_precision(values, attacks),
        metrics.recall_at_fpr(values, attacks, fpr=FEW_FALSE_ALARMS),
    )


def _cell(*measures: float | None) -> str:
    return " / ".join(map(decimals, measures))
