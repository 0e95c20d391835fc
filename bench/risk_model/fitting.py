"""Weights fitted to the public streams of some suites, and what they show on others.

A fit starts from equal weights and moves one at a time while that serves. Each try replays all streams,
since what the scorer learns depends on what it scores low. Suites count the same and the worst once more, so
that a weight that helps one at another's cost gains nothing. Weights stay above zero: more difference never
lowers a score.
"""

from collections.abc import Iterable, Mapping
from multiprocessing import get_context
from typing import NamedTuple, Self

from bench.risk_model.columns import WEIGHTS, weighed
from bench.risk_model.figures import (
    COLD,
    LABELLED,
    MATURE,
    PAYMENTS,
    REAL_TIME,
    UNSEEN,
    asked,
    decimals,
)
from bench.risk_model.judging import PROCESSES, Judgement, Key, Prepared, judge_prepared, prepared, together
from bench.risk_model.regimes import Stream, Streams, Way
from compliance.localdev.console import say
from events.risk.scoring import weights

JUDGED = frozenset({
    "NEAR_TRADE_LIMIT", "DRIFTED_AMOUNT", "MANY_RESOURCES", "MANY_DESTINATIONS", "OUTFLOW", "BURST",
    "UNUSUAL_HOUR", "FAILURE", "FAILURE_BEFORE", "ANOMALY_BEFORE", "UNUSUAL_AMOUNT", "TOKEN_AMOUNT",
    "MARKED_ALONE", "MARKED_MORE", "MARKED_AGAIN",
})  # fmt: skip
"""Weights that no public stream can tell, or one alone: they stay as they are."""
FITTED = tuple(name for name in WEIGHTS if name not in JUDGED)
START, LEAST, MOST = 0.5, 0.05, 8.0
STEPS = (3.0, 3.0, 2.0, 1.5, 1.5, 1.25)
"""By which factor each weight is tried higher and lower, pass by pass."""
WORTH_MOVING = 2e-3
"""The least gain that moves a weight: less is noise of the few attacks that there are."""
MOST_MEDIUM = {UNSEEN: 0.015, MATURE: 0.012, COLD: 0.05}
MOST_FIRST, MOST_REAL_TIME = 0.025, 0.03
"""Shares of ordinary events at medium beyond which a fit pays for them."""
LEAST_GOALS = 0.5
"""The share of mature agents' bad goals at medium below which it pays too."""
LEAST_PAYMENTS = (0.862, 0.678)
"""AUC and average precision of the payments below which it pays too."""
WORST, RECALL, CAUGHT, VERBATIM, OF_PAYMENTS = 0.25, 0.1, 0.2, 0.25, 0.2
"""What these count beside the mean AUC of a way to meet the suites."""
PRICE, PRICE_GOALS, PRICE_HIGH = 3.0, 0.4, 50.0
"""What one more of those costs, a missed goal, and an ordinary event at 0.85, of which none should be."""
MORE_FOR_ACTS = (1.0, 1.03, 1.1, 1.2)
"""By how much more privileged acts are tried to weigh, to see what the bad goals that they catch cost."""
OTHERS = (PAYMENTS, REAL_TIME)
EVERYTHING = ""
Weights = Mapping[str, float]
Asked = Mapping[Key, tuple[Stream, Way]]
Fits = dict[str, Weights]
"""The weights that were found without a suite, by its name; those found with all under `EVERYTHING`."""


class Replays:
    """Streams that are replayed again and again with other weights, by processes that keep them."""

    def __init__(self, met: Asked) -> None:
        self.keys = sorted(met, key=lambda key: -len(met[key][0].rows))
        kept = {key: prepared(*each) for key, each in met.items()}
        self.pool = get_context("fork").Pool(PROCESSES, _keep, (kept,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.terminate()

    def judged(self, chosen: Weights) -> dict[Key, Judgement]:
        """Replay each stream with these weights."""
        calls = [(key, dict(chosen)) for key in self.keys]
        return dict(zip(self.keys, self.pool.starmap(_judged, calls, chunksize=1), strict=True))


_kept: dict[Key, Prepared] = {}


def _keep(known: dict[Key, Prepared]) -> None:
    _kept.update(known)


def _judged(key: Key, chosen: Weights) -> Judgement:
    with weighed(chosen):
        return judge_prepared(_kept[key])


class Met(NamedTuple):
    """The judgements of one way to meet the suites."""

    way: str
    suites: list[Judgement]
    verbatim: list[Judgement]


def fit(met: Asked, steps: Iterable[float] = STEPS) -> Weights:
    """The weights from `LEAST` to `MOST` that serve all suites, found by moving one at a time."""
    chosen = dict.fromkeys(FITTED, START)
    with Replays(met) as replays:
        best = worth(replays.judged(chosen))
        for step in steps:
            for name in chosen:
                best = _improved(replays, chosen, name, step, best)
            say(f"  … by {step:g}: {best:.3f}")
    return chosen


def _improved(replays: Replays, chosen: dict[str, float], name: str, step: float, best: float) -> float:
    """Move one weight up or down if that serves, and return what the weights are worth then."""
    present = chosen[name]
    for candidate in (min(present * step, MOST), max(present / step, LEAST)):
        chosen[name] = candidate
        found = worth(replays.judged(chosen))
        if found > best + WORTH_MOVING:
            return found
    chosen[name] = present
    return best


def worth(judged: Mapping[Key, Judgement]) -> float:
    """What weights are worth: ranking, attacks at medium, and few ordinary events there."""
    ways = {way: _met(judged, way) for way in LABELLED}
    found = sum(_of_a_way(met) for met in ways.values())
    found += RECALL * _mean(one.all.recall for one in ways[UNSEEN].suites)
    found += CAUGHT * _mean(one.caught.value for way in (UNSEEN, MATURE) for one in ways[way].suites)
    found += VERBATIM * _mean(one.non_read.auc for one in ways[UNSEEN].verbatim)
    goals = together(share for one in ways[MATURE].suites for share in one.goals.values())
    if goals.value is not None:
        found -= PRICE_GOALS * max(LEAST_GOALS - goals.value, 0.0)
    first = _mean(one.first.value for one in ways[COLD].suites)
    found -= PRICE * max(first - MOST_FIRST, 0.0)
    return found + _of_others(judged)


def _of_a_way(met: Met) -> float:
    aucs = [one.non_read.auc or 0.0 for one in met.suites]
    medium = together(one.medium for one in met.suites).value or 0.0
    high = sum(one.high.value or 0.0 for one in met.suites)
    price = PRICE * max(medium - MOST_MEDIUM[met.way], 0.0) + PRICE_HIGH * high
    return sum(aucs) / len(aucs) + WORST * min(aucs) - price


def _of_others(judged: Mapping[Key, Judgement]) -> float:
    found = 0.0
    if payments := judged.get((PAYMENTS, COLD)):
        for figure, least in zip((payments.all.auc, payments.all.precision), LEAST_PAYMENTS, strict=True):
            found += OF_PAYMENTS * (figure or 0.0) - PRICE * max(least - (figure or 0.0), 0.0)
        found -= PRICE_HIGH * (payments.high.value or 0.0)
    if real_time := judged.get((REAL_TIME, COLD)):
        found -= PRICE * max((real_time.medium.value or 0.0) - MOST_REAL_TIME, 0.0)
    return found


def _met(judged: Mapping[Key, Judgement], way: str) -> Met:
    of_way = {name: one for (name, each), one in judged.items() if each == way and name not in OTHERS}
    verbatim = {name: one for name, one in of_way.items() if name != suite_of((name, way))}
    return Met(way, [one for name, one in of_way.items() if name not in verbatim], list(verbatim.values()))


def _mean(figures: Iterable[float | None]) -> float:
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known) if known else 0.0


def labelled(streams: Streams) -> Asked:
    """What a fit is judged by: the suites, in both spellings, the payments, and the real times."""
    found = {key: met for key, met in asked(streams).items() if key[1] in LABELLED}
    return {key: met for key, met in found.items() if suite_of(key) in {*streams.suites, *OTHERS}}


def suite_of(key: Key) -> str:
    """The suite of a stream by its name: `github verbatim` is of github."""
    return key[0].removesuffix(" verbatim")


def fits_without(streams: Streams, left_out: Iterable[str], steps: Iterable[float] = STEPS) -> Fits:
    """Fit without each of these suites in turn."""
    met, fits = labelled(streams), Fits()
    for name in left_out:
        say(f"  … fit without {name}" if name else "  … fit on everything")
        fits[name] = fit({key: each for key, each in met.items() if suite_of(key) != name}, steps)
    return fits


def judge_with(met: Asked, chosen: Weights) -> dict[Key, Judgement]:
    """Replay each stream with these weights."""
    with Replays(met) as replays:
        return replays.judged(chosen)


def price_of_goals(streams: Streams) -> list[list[str]]:
    """What bad goals at medium cost elsewhere: the weight of privileged acts raised, the others as they are.

    `worth` is what the fit goes by: it keeps the weight at which all suites together are served best.
    """
    met = labelled(streams)
    present = {name: getattr(weights, name) for name in FITTED}
    suites = list(streams.suites)
    lines = [
        ["privileged acts weigh", "bad goals, mature", "worth", *(f"{name}, {UNSEEN}" for name in suites)]
    ]
    with Replays(met) as replays:
        for more in MORE_FOR_ACTS:
            weight = present["PRIVILEGED_ACT"] * more
            found = replays.judged(present | {"PRIVILEGED_ACT": weight})
            goals = together(one for name in suites for one in found[name, MATURE].goals.values())
            aucs = [found[name, UNSEEN].non_read.auc for name in suites]
            told = f"{goals.part} of {goals.whole}", f"{worth(found):.3f}"
            lines.append([f"{weight:.3f}", *told, *map(decimals, aucs)])
    return lines


def judge_apart(met: Asked, fits: Fits) -> dict[Key, Judgement]:
    """Replay each stream with the weights that were found without its suite, or else with all."""
    found: dict[Key, Judgement] = {}
    for name, chosen in fits.items():
        by_these = {key: each for key, each in met.items() if _fit_of(key, fits) == name}
        found |= judge_with(by_these, chosen)
    return {key: found[key] for key in met}


def _fit_of(key: Key, fits: Fits) -> str:
    suite = suite_of(key)
    return suite if suite in fits else EVERYTHING
