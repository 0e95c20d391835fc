"""How the risk benchmark divides and judges streams."""

import json

from bench.risk_model import figures, prior, regimes
from bench.risk_model.judging import Piece, Share, judge, judge_all
from bench.risk_model.regimes import WAYS, Stream, Streams
from events.risk.evaluation.backtest import NOBODY, StreamEvent, read_stream
from events.risk.scoring import model


def rows(*runs: str, attacked: str = "") -> list[StreamEvent]:
    """Two events of each run, named `model|suite|task|clean` or `…|inj`; those of one run are attacks."""
    return read_stream(
        json.dumps(
            {
                "agent": f"{run.split('|')[0]}@{run.split('|')[1]}",
                "t": f"2026-03-02T{10 + number:02d}:0{event}:00Z", "action_type": "api_call",
                "details": {"tool": "delete_mail", "targets": [f"{run}-{event}"]}, "seq": run,
                "label_event": "attack" if run == attacked else "benign",
                "stage": "goal" if run == attacked else None,
            }
        ).encode()
        for number, run in enumerate(runs)
        for event in range(2)
    )  # fmt: skip


def test_an_unseen_task_is_judged_after_clean_runs_of_the_others_in_its_suite() -> None:
    stream = rows("m|bank|u0|clean", "m|bank|u0|inj", "m|bank|u1|clean", "m|work|u0|clean")

    parts = [
        ({row.run for row in history}, {row.run for row in runs}) for history, runs in regimes.by_task(stream)
    ]

    assert parts == [
        ({"m|bank|u1|clean"}, {"m|bank|u0|clean", "m|bank|u0|inj"}),
        ({"m|bank|u0|clean"}, {"m|bank|u1|clean"}),
        (set(), {"m|work|u0|clean"}),
    ]


def test_a_mature_agent_has_done_every_task_clean() -> None:
    stream = rows("m|bank|u0|clean", "m|bank|u0|inj")

    (part,) = regimes.mature(Stream(stream, NOBODY))

    assert {row.run for row in part.runs} == {"m|bank|u0|inj"}
    assert len(part.learned.states["m@bank"].destinations) == 2


def test_a_judgement_counts_ordinary_events_and_goals_apart() -> None:
    stream = Stream(rows("m|bank|u0|clean", "m|bank|u0|inj", attacked="m|bank|u0|inj"), NOBODY)

    cold = judge(Piece(stream, WAYS["cold"], model.USUAL))

    assert cold.medium.whole == cold.high.whole == cold.first.whole == 2
    assert cold.goals["deletion"].whole == 2
    assert cold.goals["keys"] == Share(0, 0)
    assert cold.innocent == cold.stopped == 0
    assert cold.caught.whole == cold.struck.whole == 2
    assert cold.days == (0,)


def test_the_prior_is_fitted_to_the_other_streams() -> None:
    """Rows that no other stream tells of stay as they are shipped."""
    mine: prior.Evidence = {0: [5.0] * prior.LEAST}
    others: prior.Evidence = {0: [number / 10 for number in range(prior.LEAST)], 1: [1.0]}

    usual = prior.fitted({"mine": [mine], "other": [others]}, ["mine"])
    with prior.judging_by(usual):
        inside = model.USUAL

    assert inside == usual != model.USUAL
    assert 2.8 < usual[0][0] < 3.0
    assert usual[0] == tuple(sorted(usual[0]))
    assert usual[1:] == model.USUAL[1:]


def test_the_table_has_every_suite() -> None:
    suite = Stream(
        rows("m|bank|u0|clean", "m|bank|u0|inj", "m|bank|u1|clean", attacked="m|bank|u0|inj"), NOBODY
    )
    none = Stream(rows("m|none|u0|clean"), NOBODY)

    judged = judge_all(figures.asked(Streams({"bank": suite}, {"bank": suite}, none, none, none)))
    table_of = {line[0]: line[1:] for line in figures.by_suite(judged)}

    assert table_of[""][0] == "bank"
    assert table_of["cold: non-read AUC"][0] == f"{judged['bank', 'cold'].non_read.auc:.3f}"
    assert table_of["cold: verbatim, non-read AUC"][0] == table_of["cold: non-read AUC"][0]
    assert [line[0] for line in figures.goals(judged)[1:]] == ["bank", "bank verbatim"]
    assert figures.ordinary(judged)[-4][0] == "all"
    assert len(figures.budget(judged)) == len(judged) + 1
