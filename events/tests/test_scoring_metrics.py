"""The measures of a backtest, against values worked out by hand."""

import pytest

from events.risk.evaluation.backtest import average_precision, recall_at_fpr, roc_auc

SCORES = [0.9, 0.8, 0.7, 0.6, 0.5]
ATTACKS = [True, False, True, False, False]


def test_roc_area_is_the_share_of_pairs_in_the_right_order() -> None:
    # Pairs of (attack, ordinary): 0.9 beats all three, 0.7 beats two of three
    assert roc_auc(SCORES, ATTACKS) == pytest.approx(5 / 6)


def test_ties_count_half_in_the_roc_area() -> None:
    assert roc_auc([0.5, 0.5, 0.2], [True, False, False]) == pytest.approx(0.75)
    assert roc_auc([0.5, 0.5, 0.5], [True, False, False]) == pytest.approx(0.5)


def test_average_precision_is_precision_at_each_attack() -> None:
    # Attacks stand first and third: precision 1/1 and 2/3
    assert average_precision(SCORES, ATTACKS) == pytest.approx((1 + 2 / 3) / 2)


def test_equal_scores_stand_together_in_average_precision() -> None:
    # At the only threshold one of three is an attack
    assert average_precision([0.5, 0.5, 0.5], [True, False, False]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("fpr", "recall"),
    [(0.0, 0.5), (0.33, 0.5), (0.34, 1.0), (1.0, 1.0)],
)
def test_recall_at_a_false_positive_rate(fpr: float, recall: float) -> None:
    assert recall_at_fpr(SCORES, ATTACKS, fpr=fpr) == pytest.approx(recall)


def test_no_threshold_is_allowed_where_an_ordinary_event_scores_highest() -> None:
    assert recall_at_fpr([0.9, 0.8], [False, True], fpr=0.01) == 0.0


@pytest.mark.parametrize(("scores", "attacks"), [([], []), ([0.5], [True]), ([0.5, 0.1], [False, False])])
def test_there_is_no_figure_without_both_kinds(scores: list[float], attacks: list[bool]) -> None:
    assert roc_auc(scores, attacks) is None
    assert average_precision(scores, attacks) is None
    assert recall_at_fpr(scores, attacks, fpr=0.01) is None
