"""Measures of how well events' scores tell which of them are `attacks`."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


def roc_auc(scores: ArrayLike, attacks: ArrayLike) -> float | None:
    """Return the chance that an attack scores above an ordinary event (Mann-Whitney), if there are both."""
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(attacks, dtype=np.bool_)
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives:
        return None
    ordered, counts = np.unique(values, return_counts=True)
    upto = np.cumsum(counts)
    ranks = (upto - (counts - 1) / 2)[np.searchsorted(ordered, values)]
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def average_precision(scores: ArrayLike, attacks: ArrayLike) -> float | None:
    """Return the mean of precision over recall's steps; None without both kinds."""
    caught, wrong = _at_each_threshold(scores, attacks)
    if not _both(caught, wrong):
        return None
    recall = caught / caught[-1]
    precision = caught / (caught + wrong)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def recall_at_fpr(scores: ArrayLike, attacks: ArrayLike, *, fpr: float) -> float | None:
    """Return the share of attacks above the lowest threshold that at most `fpr` of ordinary events reach."""
    caught, wrong = _at_each_threshold(scores, attacks)
    if not _both(caught, wrong):
        return None
    allowed = np.flatnonzero(wrong <= fpr * wrong[-1])
    return float(caught[allowed[-1]] / caught[-1]) if len(allowed) else 0.0


def _at_each_threshold(scores: ArrayLike, attacks: ArrayLike) -> tuple[Numbers, Numbers]:
    """Count attacks and ordinary events at or above each distinct score, highest first."""
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(attacks, dtype=np.bool_)
    _, places = np.unique(-values, return_inverse=True)
    size = int(places.max()) + 1 if len(places) else 0
    caught = np.bincount(places[truth], minlength=size)
    wrong = np.bincount(places[~truth], minlength=size)
    return np.cumsum(caught).astype(np.float64), np.cumsum(wrong).astype(np.float64)


def _both(caught: Numbers, wrong: Numbers) -> bool:
    return len(caught) > 0 and caught[-1] > 0 and wrong[-1] > 0
