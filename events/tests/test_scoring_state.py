"""How an agent's state lies in memory and in bytes: its tables, and what can't be a state."""

from datetime import UTC, datetime

import pytest

from events.risk.scoring.contract import Context, Event
from events.risk.scoring.learning import note_taken_in, unlearn
from events.risk.scoring.model import fold, teach
from events.risk.scoring.state import DAY, AgentState, StateUnreadable, decode_state, encode_state
from events.risk.scoring.tables import Table, digest

UNKNOWN = Context()
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp()


def test_full_table_drops_its_lightest_name() -> None:
    table = Table()
    for name, weight in ((b"first...", 2.0), (b"second..", 1.0), (b"third...", 3.0)):
        table.add(name, weight, limit=3)

    before = table.add(b"fourth..", 1.5, limit=3), table.add(b"first...", 0.5, limit=3)

    assert before == (0.0, 2.0)
    assert table.names == b"first...third...fourth.."
    assert [table.get(name) for name in (b"first...", b"third...", b"fourth..")] == [2.5, 3.0, 1.5]


def test_names_that_only_seem_to_stand_in_a_table_are_not_found() -> None:
    table = Table()
    for name in (b"aaaabbbb", b"ccccdddd"):
        table.add(name, 1.0, limit=9)

    assert table.get(b"bbbbcccc") == 0.0
    table.add(b"bbbbcccc", 5.0, limit=9)
    assert table.get(b"bbbbcccc") == 5.0


WHOLE = encode_state(AgentState())


@pytest.mark.parametrize(
    "stored",
    [
        *(b"", b"\xc1", b"junk", b"\x91\x63", b"\x90" * 9),
        *(WHOLE[:1], WHOLE[:12], WHOLE[:-1], WHOLE + b"x", b"\x03" + WHOLE[1:]),
    ],
)
def test_unreadable_state_says_so(stored: bytes) -> None:
    with pytest.raises(StateUnreadable):
        decode_state(stored)


def test_fullest_state_survives_its_bytes() -> None:
    state = AgentState()
    for number in range(600):
        details = {
            "tool": f"tool{number % 60}",
            "to": [f"a{number % 300}@b{number % 90}.example", f"DE{number % 300}"],
            "path": [f"/srv/{number}", f"/srv/{number % 7}/x"],
            "amount_usd": 10.0 + number,
        }
        teach(state, Event("transaction_initiated", NOON + 1_000 * number, details))
        fold(state, Event("api_call", NOON + 1_000 * number, {"to": [f"x{number}", f"y{number}"]}), UNKNOWN)
    note_taken_in(state, [number.to_bytes(16) for number in range(50)])
    held = encode_state(state)

    assert list(held[1:13]) == [40, 40, 40, 200, 32, 48, 200, 48, 0, 128, 40, 32]
    assert encode_state(decode_state(held)) == held


@pytest.mark.parametrize("year", [2026, 2029, 2040])
def test_agent_of_which_nothing_was_low_yet_can_report_in_any_year(year: int) -> None:
    state, start = AgentState(), datetime(year, 1, 1, tzinfo=UTC).timestamp()
    details = {"tool": "delete_payee", "recipient": "XX99"}

    scores = [
        fold(state, Event("transaction_anomaly", start + day * DAY, details), UNKNOWN).score
        for day in range(5)
    ]
    unlearn(AgentState(), Event("api_call", start, details), ["xx99"], was_learned=True)

    assert min(scores[:3]) > max(scores[3:])
    assert state.destinations.get(digest("xx99")) < 3.0


@pytest.mark.parametrize("leap", [400 * DAY, 40_000 * DAY])
def test_agent_learns_again_after_a_clock_that_ran_ahead_was_set_back(leap: float) -> None:
    state, details = AgentState(), {"tool": "read_mail"}
    for number in range(20):
        fold(state, Event("data_access", NOON + number, details), UNKNOWN)
    fold(state, Event("data_access", NOON + leap, details), UNKNOWN)

    for number in range(40):
        fold(state, Event("data_access", NOON + DAY + number, details), UNKNOWN)

    assert state.learned * state.fading(NOON + 2 * DAY) > 30.0
