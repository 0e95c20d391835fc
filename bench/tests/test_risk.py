"""How the risk benchmark divides streams, and its columns."""

import json

from bench.risk import quantiles
from bench.risk_model import regimes
from bench.risk_model.columns import WEIGHTS, columns, table
from events.risk.evaluation.backtest import NOBODY, StreamEvent, read_stream
from events.risk.scoring import weights
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.habits.state import AgentState


def rows(*runs: str) -> list[StreamEvent]:
    """Two events of each run, named `model|suite|task|clean` or `…|inj`."""
    return read_stream(
        json.dumps(
            {
                "agent": f"{run.split('|')[0]}@{run.split('|')[1]}",
                "t": f"2026-03-02T{10 + number:02d}:0{event}:00Z",
                "action_type": "api_call",
                "details": {"tool": "send", "to": f"{run}-{event}"},
                "seq": run,
                "label_event": "benign",
            }
        ).encode()
        for number, run in enumerate(runs)
        for event in range(2)
    )


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

    (part,) = regimes.mature(stream, NOBODY)

    assert {row.run for row in part.runs} == {"m|bank|u0|inj"}
    assert len(part.learned.states["m@bank"].destinations) == 2


def test_columns_leave_the_weights_as_they_were() -> None:
    before = {name: getattr(weights, name) for name in WEIGHTS}

    values = columns(AgentState(), Event("api_call", 1.7e9, {"tool": "send", "to": "x"}), Context(), None)

    assert len(values) == len(WEIGHTS) + 1
    assert values[1 + WEIGHTS.index("NEW_DESTINATION")] > 0
    assert {name: getattr(weights, name) for name in WEIGHTS} == before


def test_a_table_has_a_line_for_each_event() -> None:
    stream = rows("m|bank|u0|clean", "m|bank|u1|clean")

    found = table(regimes.unseen_task(stream, NOBODY), NOBODY, apart=True)

    assert len(found.events) == len(found.rows) == 4


def test_costs_are_the_medians_of_each_replays_quantiles() -> None:
    replays = [[1000 * cost for cost in range(shift, 100 + shift)] for shift in (0, 5, 90)]

    assert quantiles(replays) == {"0.5": 55.0, "0.99": 104.0}
