"""The ceiling of the scorer's differences: weights fitted to a suite's labels, judged on its other tasks."""

import json
from datetime import UTC, datetime, timedelta

from bench.risk_model import own_weights
from bench.risk_model.figures import LABELLED
from bench.risk_model.own_weights import OwnFit
from bench.risk_model.regimes import WAYS, Stream
from events.risk.evaluation.backtest import NOBODY, read_stream

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
TASKS = 12


def suite(attacked: str) -> Stream:
    """An agent that writes to a friend at twelve tasks, and in runs with an injection to `attacked` too."""
    lines: list[dict[str, object]] = []
    for task in range(TASKS):
        for run, to in (("clean", "friend"), ("inj", "friend"), ("inj", attacked)):
            lines.append({
                "agent": "m@a",
                "t": (BEGIN + timedelta(hours=len(lines))).isoformat(),
                "action_type": "api_call",
                "details": {"tool": "send", "targets": [to]},
                "seq": f"m|a|u{task}|{run}",
                "label_event": "benign" if (run, to) != ("inj", attacked) else "attack",
            })  # fmt: skip
    return Stream(read_stream(json.dumps(line).encode() for line in lines), NOBODY)


def test_differences_that_tell_attacks_at_other_tasks_tell_them_all() -> None:
    found = own_weights.fits({"a": suite("stranger")})

    assert set(found) == {("a", way) for way in LABELLED}
    assert found["a", "mature"] == found["a", "unseen task"] == (1.0, 1.0)


def test_what_no_difference_shows_stays_chance() -> None:
    auc, _ = own_weights.fit(suite("friend "), WAYS["mature"])

    assert auc is not None
    assert 0.2 < auc < 0.8


def test_a_line_has_the_mean_of_the_suites() -> None:
    found = {("a", way): OwnFit(0.5, 0.0) for way in LABELLED} | {
        ("b", way): OwnFit(1.0, 0.5) for way in LABELLED
    }

    lines = own_weights.lines(found)

    assert lines[0][1:] == ["a", "b", "mean"]
    assert ["unseen task: non-read AUC", "0.500", "1.000", "0.750"] in lines
    assert ["unseen task: recall at 1 %", "0.000", "0.500", "0.250"] in lines
