"""How much in an hour, and what a payee got before: against the agent's own habits."""

import pytest

from events.risk.scoring.contract import Context, Event, RiskVerdict
from events.risk.scoring.model import fold
from events.risk.scoring.state import AgentState
from events.risk.scoring.tables import Table, digest, note_paid, was_paid
from events.tests.test_scoring_gaming import DAY, HOUR, MINUTE, MONDAY, READ, grown

PAYEE = digest("de09")
UNKNOWN = Context()


@pytest.fixture
def state() -> AgentState:
    """An agent that has read mail, paid two suppliers about 90 USD and written to a colleague for weeks."""
    return grown(30)


def pay(state: AgentState, at: float, payee: str, amount: float = 90.0) -> RiskVerdict:
    details = {"tool": "pay", "recipient": payee, "amount_usd": amount}
    return fold(state, Event("transaction_initiated", at, details), UNKNOWN)


def told(verdict: RiskVerdict) -> set[str]:
    return {reason.name for reason in verdict.reasons}


def noted(*sums: tuple[int, float]) -> Table:
    """The table after these payments to one payee: day and amount."""
    paid = Table()
    for day, amount in sums:
        note_paid(paid, PAYEE, day, amount**0.5, 8)
    return paid


@pytest.mark.parametrize(
    ("sums", "day", "amount", "usual"),
    [
        (((0, 4_000.0),), 6, 4_000.0, False),
        (((0, 4_000.0),), 7, 4_000.0, True),
        (((0, 4_000.0),), 28, 3_000.0, True),
        (((0, 4_000.0),), 28, 4_300.0, True),
        (((0, 4_000.0),), 28, 4_500.0, False),
        (((0, 4_000.0), (7, 4_000.0)), 7, 4_000.0, False),
        (((0, 4_000.0), (7, 4_000.0)), 14, 4_000.0, True),
        (((0, 4_000.0), (27, 20.0)), 28, 4_000.0, True),
        (((0, 20.0), (27, 4_000.0)), 28, 4_000.0, False),
        (((20_000, 1e15),), 20_028, 1e12, True),
        ((), 28, 1.0, False),
    ],
)
def test_a_sum_is_usual_for_a_payee_who_got_as_much_a_week_before_but_once(
    sums: tuple[tuple[int, float], ...], day: int, amount: float, usual: bool
) -> None:
    assert was_paid(noted(*sums), PAYEE, day, amount**0.5) is usual


def test_payees_beyond_the_limit_make_the_oldest_give_way() -> None:
    paid = Table()
    for day in range(9):
        note_paid(paid, digest(f"payee{day}"), day, 10.0, 8)

    assert len(paid) == 8
    assert paid.get(digest("payee0")) == 0.0


def test_a_salary_is_medium_once_and_ordinary_four_weeks_later(state: AgentState) -> None:
    first = pay(state, MONDAY, "DE77", 200)
    soon = pay(state, MONDAY + 2 * DAY, "DE77", 200)
    later = pay(state, MONDAY + 28 * DAY, "DE77", 200)
    again = pay(state, MONDAY + 28 * DAY + HOUR, "DE77", 200)

    assert [one.band for one in (first, soon, later, again)] == ["medium", "medium", "low", "medium"]


def test_the_third_new_payee_within_minutes_is_told(state: AgentState) -> None:
    verdicts = [pay(state, MONDAY + n * MINUTE, f"XX{n}") for n in range(4)]

    assert "many_destinations" not in told(verdicts[0])
    assert "many_destinations" in told(verdicts[2])
    assert verdicts[3].score > verdicts[2].score > verdicts[0].score
    assert verdicts[3].band != "low"


def test_naming_accounts_in_a_change_does_not_make_them_met_for_payments(state: AgentState) -> None:
    names = [f"XX{n}" for n in range(4)]
    fold(state, Event("data_mutation", MONDAY, {"tool": "add_payees", "accounts": names}), UNKNOWN)

    verdicts = [pay(state, MONDAY + HOUR + n * MINUTE, name) for n, name in enumerate(names)]

    assert "many_destinations" in told(verdicts[3])


def test_reading_many_new_things_is_told_until_it_is_the_agents_day(state: AgentState) -> None:
    def night(day: int) -> float:
        """The highest score of sixty reads within three minutes."""
        reads = [{"tool": "read_mail", "resource": f"day {day} letter {turn}"} for turn in range(60)]
        times = [MONDAY + day * DAY + 3 * turn for turn in range(60)]
        events = [Event("data_access", at, read) for at, read in zip(times, reads, strict=True)]
        return max(fold(state, event, UNKNOWN).score for event in events)

    worst = [night(day) for day in range(7)]

    assert worst[0] >= 0.3
    assert worst[6] < 0.3


@pytest.mark.parametrize("action_type", ["data_access", "message_signed", "authentication_attempt"])
def test_a_send_is_one_whatever_it_is_reported_as(state: AgentState, action_type: str) -> None:
    home = Context(home_domain="acme.example")
    fold(state, Event("data_access", MONDAY, READ.details), home)
    details = {"tool": "send_email", "to": "x@evil.example"}
    honest = fold(state.changeable(), Event("api_call", MONDAY + MINUTE, details), home)

    assert fold(state, Event(action_type, MONDAY + MINUTE, details), home).score >= honest.score >= 0.3
