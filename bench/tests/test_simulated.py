"""Simulated agents, the attacks on them, their ordinary lives, verdicts on payments, and ceilings."""

import json
from datetime import timedelta
from random import Random

import pytest

from bench.risk_model import attackers, ceiling, lives, verdict_ceiling, verdicts
from bench.risk_model.figures import LABELLED
from bench.risk_model.judging import Share
from bench.risk_model.regimes import WAYS, Stream
from bench.risk_model.simulated import KINDS, SPELLINGS, START, Circle, working_day
from events.risk.evaluation.backtest import NOBODY, read_stream
from events.risk.scoring.weights import PRIORS

GROUND = attackers.Ground(KINDS["mail"], Circle(Random(1)), "x@stranger.example")


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_calls_only_tools_that_it_is_permitted(kind: str) -> None:
    calls = [call for _, call in working_day(0, Circle(Random(2)), KINDS[kind].task, 40)]

    assert {call.tool for call in calls} <= (KINDS[kind].context.permitted_actions or set())
    assert {call.action_type for call in calls} <= set(PRIORS)


def test_a_day_is_the_same_each_time_and_in_order() -> None:
    days = [working_day(3, Circle(Random(4)), KINDS["payments"].task, 5) for _ in range(2)]

    assert days[0] == days[1]
    assert [at for at, _ in days[0]] == sorted(at for at, _ in days[0])
    assert timedelta(days=3) < days[0][0][0] - START < timedelta(days=4)


def test_every_spelling_tells_the_same_call() -> None:
    call = KINDS["mail"].message(["a@x.example", "b@y.example"])

    ours, verbatim, other = (spelling(call) for spelling in SPELLINGS.values())

    assert ours == {
        "tool": "send_email", "targets": ["a@x.example", "b@y.example"], "host": "x.example", "status": "ok",
    }  # fmt: skip
    assert isinstance(verbatim, dict)
    assert isinstance(other, dict)
    assert other["toolName"] == "mcp__office__sendEmail"
    assert other["arguments"]["toAddresses"] == verbatim["args"]["recipients"]
    assert verbatim["args"]["recipients"] == ["a@x.example", "b@y.example"]


def test_steps_of_attacks_are_what_they_are_said_to_be() -> None:
    steps = {attack.__name__: [move.step for move in attack(GROUND)] for attack in attackers.ATTACKS}
    ramp = list(attackers.ramp(GROUND))

    assert steps["greeting"] == [1, 2, 3]
    assert (len(steps["eighty_reads"]), max(steps["eighty_reads"])) == (80, 5)
    assert steps["warmed_by_another"] == [0] * 5 + [1, 1, 2, 2, 3, 3]
    assert (ramp[0].step, ramp[-1].step) == (1, 3)


def test_the_stranger_is_the_last_of_ten() -> None:
    sent = [move.call for move in attackers.last_of_ten(GROUND)][1]

    assert sent.told["targets"] == [*GROUND.circle.colleagues[:9], "x@stranger.example"]


def test_every_attack_has_an_outcome_told_in_every_way_and_a_line() -> None:
    found = attackers.outcomes(seeds=1)
    caught = attackers.Outcome("decoys", "mail", "verbatim", 3)

    assert len(found) == 3 * (len(KINDS) * len(attackers.ATTACKS) + len(attackers.OF_PAYMENTS))
    assert len(attackers.lines(found)) == 1 + len(attackers.ATTACKS) + len(attackers.OF_PAYMENTS)
    assert caught.is_caught
    assert not caught._replace(step=4).is_caught
    assert not caught._replace(step=None).is_caught


def test_a_life_is_quiet_from_the_day_after_which_every_week_is() -> None:
    loud, quiet = Share(30, 100), Share(1, 100)

    assert lives.quiet_from([quiet] * 8) == 0
    assert lives.quiet_from([quiet, loud, loud] + [quiet] * 8) == 3
    assert lives.quiet_from([quiet] * 8 + [loud]) is None


def test_every_life_goes_on_after_its_change() -> None:
    found = lives.outcomes(seeds=1)

    assert len(found) == len(lives.lines(found)) - 1 == 3 * len(lives.LIVES)
    for one in found.values():
        assert sum(day.whole for day in one.days[lives.CHANGE :]) > 100


def test_a_verdict_a_week_later_marks_where_the_fraud_went() -> None:
    days = [(1, "usual"), (2, "usual"), (3, "fraud"), (5, "fraud"), (12, "fraud"), (13, "usual")]
    lines = [
        {
            "agent": f"payer {day % 2}",
            "t": f"2026-03-{day:02d}T10:00:00Z",
            "action_type": "transaction_initiated",
            "details": {"tool": "pay", "targets": [payee], "amount_usd": 10},
            "label_event": "attack" if payee == "fraud" and day < 12 else "benign",
        }
        for day, payee in days
    ]
    payments = Stream(read_stream(json.dumps(line).encode() for line in lines), NOBODY)

    without, later = (verdicts.replayed(payments, delay=each) for each in (verdicts.NEVER, verdicts.WEEK))
    scores = [(one.verdict.score, two.verdict.score) for one, two in zip(without, later, strict=True)]

    assert scores[4][1] > scores[4][0]
    assert all(one == two for one, two in scores[:4])
    assert [line[0] for line in verdicts.lines(verdicts.compared(payments))][1:] == [
        "no verdicts",
        "each fraud confirmed a week later",
        "ceiling: frauds where one was confirmed stand first",
    ]


def test_weights_fitted_to_verdicts_tell_the_frauds_that_they_show() -> None:
    days = [(card, number) for number in range(1, 29) for card in range(10)]
    lines = [
        {
            "agent": f"card {card}",
            "t": f"2026-03-{number:02d}T10:{card:02d}:00Z",
            "action_type": "transaction_initiated",
            "details": {"tool": "pay", "targets": ["fraud" if card < 3 else "usual"], "amount_usd": 10},
            "label_event": "attack" if card < 3 else "benign",
        }
        for card, number in days
    ]
    payments = Stream(read_stream(json.dumps(line).encode() for line in lines), NOBODY)
    replays = [verdicts.replayed(payments, delay=each) for each in (verdicts.NEVER, verdicts.WEEK)]

    found = verdict_ceiling.ceiling(*replays, delay=verdicts.WEEK)

    assert found.in_sample is not None
    assert found.in_sample > 0.9
    assert len(verdict_ceiling.lines(found)) == 3


def test_no_scorer_tells_events_apart_that_look_the_same() -> None:
    def line(model: str, number: int, to: str, label: str) -> bytes:
        return json.dumps(
            {
                "agent": f"{model}@s",
                "t": f"2026-03-02T10:{number:02d}:00Z",
                "action_type": "api_call",
                "details": {"tool": "send", "targets": [to]},
                "seq": f"{model}|s|u{number}|inj",
                "label_event": label,
            }
        ).encode()

    same = [line("a", 1, "x", "attack"), line("a", 2, "x", "benign")]
    told = [line("a", 3, "y", "attack")]
    way = WAYS["cold"]

    alike = ceiling.ceiling(Stream(read_stream(same), NOBODY), way)
    half = ceiling.ceiling(Stream(read_stream(same + told), NOBODY), way)

    assert alike.bound == (0.5, 0.5, 0.5)
    assert half.bound[0] == 0.75
    assert half.recall_bound[0] == 0.5
    lines = ceiling.lines({("s", name): half for name in LABELLED})
    assert len(lines) == 1 + 2 * len(LABELLED) * len(ceiling.LOOKS)
