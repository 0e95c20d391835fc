"""What the scorer's differences tell with weights fitted to the suite itself: the most that weights can do.

A logistic regression of their logarithms, its tasks judged in five parts, each by weights from the other
four. No scorer has such labels of the agents that it judges.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bench.risk_model.columns import Table, table
from bench.risk_model.figures import LABELLED, Line, decimals
from bench.risk_model.judging import in_processes
from bench.risk_model.regimes import WAYS, Stream, Way, task_of
from events.risk.evaluation import metrics
from events.risk.evaluation.backtest import FEW_FALSE_ALARMS, PREPARATION, READ

PARTS, ROUNDS, RIDGE = 5, 30, 3.0
Matrix = NDArray[np.float64]


class OwnFit(NamedTuple):
    """What weights of the suite's own labels reach: AUC without reads, and recall at 1 % of all events."""

    auc: float | None
    recall: float | None


def fits(suites: dict[str, Stream]) -> dict[tuple[str, str], OwnFit]:
    """The figures of each suite in each way to meet it."""
    asked = [(suite, way) for suite in suites for way in LABELLED]
    calls = [partial(fit, suites[suite], WAYS[way]) for suite, way in asked]
    return dict(zip(asked, in_processes(calls), strict=True))


def fit(stream: Stream, way: Way) -> OwnFit:
    """The figures of one suite, each of its tasks judged by weights that were fitted to others."""
    found = table(way.parts(stream), stream.agents, apart=way.apart)
    judged = [at for at, row in enumerate(found.rows) if row.stage != PREPARATION]
    non_read = [at for at in judged if found.rows[at].action_type != READ]
    return OwnFit(
        metrics.roc_auc(*_scored(found, non_read)),
        metrics.recall_at_fpr(*_scored(found, judged), fpr=FEW_FALSE_ALARMS),
    )


def lines(found: Mapping[tuple[str, str], OwnFit]) -> list[Line]:
    """A line for each figure and way, a column for each suite."""
    suites = list(dict.fromkeys(suite for suite, _ in found))
    return [
        ["weights fitted to the suite itself", *suites, "mean"],
        *(_line(f"{way}: non-read AUC", [found[suite, way].auc for suite in suites]) for way in LABELLED),
        *(_line(f"{way}: recall at 1 %", [found[suite, way].recall for suite in suites]) for way in LABELLED),
    ]


def _scored(found: Table, judged: list[int]) -> tuple[Matrix, NDArray[np.bool_]]:
    """The log-odds of the judged events and whether each is an attack."""
    columns = np.log1p(np.maximum(np.array([found.events[at][1:] for at in judged]), 0.0))
    columns = np.column_stack([columns, [found.events[at][0] for at in judged]])
    attacks = np.array([found.rows[at].is_attack for at in judged])
    part = np.array([crc32(task_of(found.rows[at]).encode()) % PARTS for at in judged])
    scores = np.zeros(len(judged))
    for left_out in range(PARTS):
        seen, unseen = part != left_out, part == left_out
        scores[unseen] = fitted(columns[seen], attacks[seen], columns[unseen])
    return scores, attacks


def _line(name: str, figures: list[float | None]) -> Line:
    known = [figure for figure in figures if figure is not None]
    return [name, *map(decimals, figures), decimals(sum(known) / len(known) if known else None)]


def fitted(columns: Matrix, attacks: NDArray[np.bool_], others: Matrix) -> Matrix:
    """The log-odds of `others` by a logistic regression (Newton's method) with a ridge."""
    mean, spread = columns.mean(axis=0), columns.std(axis=0) + 1e-9
    known, asked = (_with_one((each - mean) / spread) for each in (columns, others))
    chosen = np.zeros(known.shape[1])
    ridge = RIDGE * np.eye(len(chosen))
    for _ in range(ROUNDS):
        odds = 1.0 / (1.0 + np.exp(-np.clip(known @ chosen, -30.0, 30.0)))
        slope = known.T @ (attacks - odds) - ridge @ chosen
        chosen += np.linalg.solve((known.T * (odds * (1.0 - odds))) @ known + ridge, slope)
    result: Matrix = asked @ chosen
    return result


def _with_one(columns: Matrix) -> Matrix:
    return np.column_stack([columns, np.ones(len(columns))])
