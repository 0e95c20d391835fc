"""How an agent's state lies in memory and in bytes: its tables, and what can't be a state."""

import pytest

from events.risk.scoring.habits.state import AgentState, StateUnreadable, decode_state, encode_state
from events.risk.scoring.habits.tables import Table


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
    "stored", [b"", b"\xc1", b"junk", b"\x91\x63", b"\x90" * 9, WHOLE[:-1], WHOLE + b"x", b"\x03" + WHOLE[1:]]
)
def test_unreadable_state_says_so(stored: bytes) -> None:
    with pytest.raises(StateUnreadable):
        decode_state(stored)
