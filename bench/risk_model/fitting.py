"""Weights fitted to logged events of some suites, and what they show on others.

A fit adds up an event's columns times the weights, in place of a replay; those of a new place saturate
together, as in the scorer. What the scorer learns depends on what it scores low, so columns hold for the
weights that they were logged with, and roughly for others: each round logs again with the weights found.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.risk import MEDIUM
from bench.risk_model.columns import WEIGHTS, Table, table, weighed
from bench.risk_model.figures import COLD, LABELLED, MATURE, PAYMENTS, UNSEEN, asked
from bench.risk_model.judging import FIRST, Judgement, Key, in_processes, judge
from bench.risk_model.regimes import Stream, Streams, Way
from compliance.localdev.console import say
from events.risk.evaluation import metrics
from events.risk.evaluation.backtest import FEW_FALSE_ALARMS, PREPARATION, READ
from events.risk.scoring import weights

JUDGED = frozenset({
    "NEAR_TRADE_LIMIT", "DRIFTED_AMOUNT", "MANY_RESOURCES", "MANY_DESTINATIONS", "OUTFLOW", "BURST",
    "UNUSUAL_HOUR", "FAILURE", "FAILURE_BEFORE", "ANOMALY_BEFORE",
    "MARKED_ALONE", "MARKED_MORE", "MARKED_AGAIN",
})  # fmt: skip
"""Weights that no public stream can tell: they stay as they are."""
OF_A_PLACE = np.isin(WEIGHTS, ("NEW_DESTINATION", "READ_THEN_SEND", "EXTERNAL_HOST"))
MOST_OF_A_PLACE = 4.0
"""Log-odds that a new place approaches, whatever these weights are."""
START, LEAST, MOST = 0.5, 0.02, 8.0
STEPS = (2.0, 1.4, 1.15)
PASSES = 3
WORTH_MOVING = 1e-3
"""The least gain that moves a weight: less is noise of the few attacks that there are."""
MOST_MEDIUM = {UNSEEN: 0.015, MATURE: 0.015, COLD: 0.04}
MOST_FIRST = 0.03
"""Shares of ordinary events at medium beyond which a fit pays for them."""
PRICE, PRICE_HIGH = 10.0, 100.0
"""What one more of those costs, and one at the cap of habits, of which there should be none."""
TOP = 0.25
"""What average precision, recall and the share of attacks at medium count each, beside an AUC of 1."""
MEDIUM_LOGIT = log(MEDIUM / (1 - MEDIUM))
CAP_LOGIT = 4.29
"""Evidence with which habits reach their cap of 0.84, beyond which events rank alike."""
Weights = Mapping[str, float]
ROUNDS = 3
EVERYTHING = ""
Asked = Mapping[Key, tuple[Stream, Way]]
Fits = dict[str, Weights]
"""The weights that were found without a suite, by its name; those found with all under `EVERYTHING`."""


class Sample(NamedTuple):
    """One stream as it was logged, met in one way: a line of columns for each event, and kinds of events."""

    suite: str
    way: str
    columns: NDArray[np.float64]
    attacks: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    non_read: NDArray[np.bool_]
    first: NDArray[np.bool_]


def logged(met: Asked, chosen: Weights) -> list[Sample]:
    """Replay each stream once with these weights, and log its columns."""
    return in_processes([partial(_logged, key, *each, dict(chosen)) for key, each in met.items()])


def to_fit(samples: list[Sample]) -> list[str]:
    """The weights that some logged event depends on, apart from those that stay as they are."""
    met = np.any([(sample.columns[:, 1:] != 0.0).any(axis=0) for sample in samples], axis=0)
    return [name for name, is_met in zip(WEIGHTS, met, strict=True) if is_met and name not in JUDGED]


def fit(samples: list[Sample], start: Weights) -> Weights:
    """The weights from `LEAST` to `MOST` that serve all suites, found by moving one of `start` at a time."""
    chosen = dict(start)
    best = worth(samples, chosen)
    for step in STEPS:
        for _ in range(PASSES):
            before = best
            for name in start:
                best = _improved(samples, chosen, name, step, best)
            if best < before + WORTH_MOVING:
                break
    return chosen


def worth(samples: list[Sample], chosen: Weights) -> float:
    """What a fit is judged by: the mean over suites and the worst, so that none gains at another's cost."""
    by_suite: dict[str, list[float]] = {}
    for sample in samples:
        by_suite.setdefault(sample.suite, []).append(_worth(sample, chosen))
    means = [sum(each) / len(each) for each in by_suite.values()]
    return sum(means) / len(means) + min(means)


def evidence(columns: NDArray[np.float64], chosen: Weights) -> NDArray[np.float64]:
    """The log-odds of each line of columns with these weights, and the stored ones for others."""
    parts = columns[:, 1:] * _vector(chosen)
    of_a_place = parts[:, OF_A_PLACE].sum(axis=1)
    found: NDArray[np.float64] = columns[:, 0] + parts[:, ~OF_A_PLACE].sum(axis=1)
    found -= MOST_OF_A_PLACE * np.expm1(-of_a_place / MOST_OF_A_PLACE)
    return found


def _improved(samples: list[Sample], chosen: dict[str, float], name: str, step: float, best: float) -> float:
    """Move one weight up or down if that serves, and return what the weights are worth then."""
    present = chosen[name]
    for candidate in (min(present * step, MOST), max(present / step, LEAST)):
        chosen[name] = candidate
        found = worth(samples, chosen)
        if found > best + WORTH_MOVING:
            return found
    chosen[name] = present
    return best


def _worth(sample: Sample, chosen: Weights) -> float:
    """Ranking of what isn't read, the top of the list, attacks at medium, and few ordinary events there."""
    logits = np.minimum(evidence(sample.columns, chosen), CAP_LOGIT)
    judged, non_read = sample.judged, sample.judged & sample.non_read
    found = metrics.roc_auc(logits[non_read], sample.attacks[non_read]) or 0.0
    found += TOP * (metrics.average_precision(logits[judged], sample.attacks[judged]) or 0.0)
    found += TOP * (
        metrics.recall_at_fpr(logits[judged], sample.attacks[judged], fpr=FEW_FALSE_ALARMS) or 0.0
    )
    medium = logits >= MEDIUM_LOGIT
    found += TOP * _share(medium, sample.attacks & judged)
    found -= PRICE * max(_share(medium, ~sample.attacks) - MOST_MEDIUM[sample.way], 0.0)
    found -= PRICE_HIGH * _share(logits >= CAP_LOGIT, ~sample.attacks)
    if sample.way == COLD:
        found -= PRICE * max(_share(medium, ~sample.attacks & sample.first) - MOST_FIRST, 0.0)
    return found


def _share(medium: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    return float(medium[among].mean()) if among.any() else 0.0


def _vector(chosen: Weights) -> NDArray[np.float64]:
    return np.array([chosen[name] if name in chosen else getattr(weights, name) for name in WEIGHTS])


def _logged(key: Key, stream: Stream, way: Way, chosen: Weights) -> Sample:
    with weighed(chosen):
        found = table(way.parts(stream), stream.agents, apart=way.apart)
    return _sample(key, found)


def _sample(key: Key, found: Table) -> Sample:
    met: dict[str, int] = {}
    first = []
    for row in found.rows:
        met[row.agent] = met.get(row.agent, 0) + 1
        first.append(met[row.agent] <= FIRST)
    return Sample(
        key[0].partition(" ")[0],
        key[1],
        np.array(found.events),
        np.array([row.is_attack for row in found.rows]),
        np.array([row.stage != PREPARATION for row in found.rows]),
        np.array([row.action_type != READ for row in found.rows]),
        np.array(first),
    )


def labelled(streams: Streams) -> Asked:
    """The suites, in both spellings, and the payments."""
    found = {key: met for key, met in asked(streams).items() if key[1] in LABELLED}
    return {key: met for key, met in found.items() if suite_of(key) in {*streams.suites, PAYMENTS}}


def suite_of(key: Key) -> str:
    """The suite of a stream by its name: `github verbatim` is of github."""
    return key[0].removesuffix(" verbatim")


def fits_without(streams: Streams, left_out: Iterable[str]) -> Fits:
    """Fit without each of these suites in turn, from equal weights.

    The first round's columns are logged with the stored weights, later ones with those found.
    """
    met = labelled(streams)
    samples = logged(met, {})
    fits: Fits = {name: dict.fromkeys(to_fit(samples), START) for name in left_out}
    kept = {name: [one for one in samples if one.suite != name] for name in fits}
    for number in range(ROUNDS):
        if number:
            kept = {name: logged(_without(met, name), chosen) for name, chosen in fits.items()}
        say(f"  … fits, round {number + 1} of {ROUNDS}")
        fits = dict(
            zip(fits, in_processes([partial(fit, kept[name], fits[name]) for name in fits]), strict=True)
        )
    return fits


def judge_with(met: Asked, fits: Fits) -> dict[Key, Judgement]:
    """Replay each stream with the weights that were found without its suite, or else with all."""
    chosen = {key: fits.get(suite_of(key), fits[EVERYTHING]) for key in met}
    return dict(
        zip(met, in_processes([partial(_judged, *met[key], chosen[key]) for key in met]), strict=True)
    )


def _without(met: Asked, suite: str) -> Asked:
    return {key: each for key, each in met.items() if suite_of(key) != suite}


def _judged(stream: Stream, way: Way, chosen: Weights) -> Judgement:
    with weighed(chosen):
        return judge(stream, way)
