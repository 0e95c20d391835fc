"""The most that confirmed frauds can tell of later payments: weights fitted to the payments' own labels.

A logistic regression of both scores, without verdicts and with them, and of what was confirmed at the place
and of the card. Judged on the very payments it was fitted to, it bounds every weighing of these facts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np

from bench.risk_model.figures import Line, decimals
from bench.risk_model.own_weights import PARTS, fitted
from events.risk.evaluation import metrics
from events.risk.evaluation.backtest import ReplayedEvent
from events.risk.scoring.details import read
from events.risk.scoring.habits.state import DAY

SPANS = tuple(days * DAY for days in (14, 28, 42))
SURE = 12.0  # log-odds of a score of 0 or 1


class VerdictCeiling(NamedTuple):
    """Average precision on the payments fitted to, and by weights fitted to other cards."""

    in_sample: float | None
    of_other_cards: float | None


def ceiling(
    without: Sequence[ReplayedEvent], told: Sequence[ReplayedEvent], *, delay: float
) -> VerdictCeiling:
    """What fitted weights reach; `told` are the same payments with each fraud confirmed after `delay`."""
    columns = np.array(_columns(without, told, delay))
    attacks = np.array([one.row.is_attack for one in without])
    part = np.array([crc32(one.row.agent.encode()) % PARTS for one in without])
    scores = np.zeros(len(without))
    for left_out in range(PARTS):
        seen, unseen = part != left_out, part == left_out
        scores[unseen] = fitted(columns[seen], attacks[seen], columns[unseen])
    return VerdictCeiling(
        metrics.average_precision(fitted(columns, attacks, columns), attacks),
        metrics.average_precision(scores, attacks),
    )


def lines(found: VerdictCeiling) -> list[Line]:
    """One line for each way to judge."""
    return [
        ["payments, weights fitted to verdicts", "AP"],
        ["judged on the payments fitted to", decimals(found.in_sample)],
        ["fitted to other cards", decimals(found.of_other_cards)],
    ]


def _columns(
    without: Sequence[ReplayedEvent], told: Sequence[ReplayedEvent], delay: float
) -> list[list[float]]:
    visits: defaultdict[str, int] = defaultdict(int)
    at_place: defaultdict[str, list[float]] = defaultdict(list)
    of_card: defaultdict[str, list[float]] = defaultdict(list)
    rows = []
    for plain, warned in zip(without, told, strict=True):
        time, card, places = plain.event.received_at, plain.row.agent, read(plain.event.details).targets
        known = [age for place in places for age in _ages(at_place[place], time, delay)]
        own, met = _ages(of_card[card], time, delay), sum(visits[place] for place in places)
        scores = (plain.verdict.score, warned.verdict.score)
        rows.append([
            *map(_log_odds, scores), *_counts(known), *_counts(own), len(known) / (met + 1),
            float(np.log1p(met)), float(np.log1p(_amount(plain.row.details))),
        ])  # fmt: skip
        for place in places:
            visits[place] += 1
        if plain.row.is_attack:
            of_card[card].append(time)
            for place in places:
                at_place[place].append(time)
    return rows


def _ages(frauds: Sequence[float], now: float, delay: float) -> list[float]:
    """How long ago each confirmed fraud happened, in seconds."""
    return [now - time for time in frauds if time + delay <= now]


def _counts(ages: Sequence[float]) -> list[float]:
    return [len(ages), float(bool(ages)), *(sum(age < span for age in ages) for span in SPANS)]


def _log_odds(score: float) -> float:
    clipped = min(max(score, 1e-9), 1 - 1e-9)
    return float(np.clip(np.log(clipped / (1 - clipped)), -SURE, SURE))


def _amount(details: object) -> float:
    amount = details.get("amount_usd") if isinstance(details, Mapping) else None
    return float(amount) if isinstance(amount, int | float) else 0.0
