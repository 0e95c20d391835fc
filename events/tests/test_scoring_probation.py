"""A new place is on probation: it is known once met on several days, whatever its events scored."""

from dataclasses import dataclass

import pytest

from certificates.tests.factories import make_certified_agent
from events.risk.scoring.contract import Context, Event, RiskVerdict
from events.risk.scoring.learning import unlearn
from events.risk.scoring.model import fold, teach
from events.risk.scoring.state import DAY, KIND, AgentState
from events.risk.scoring.tables import (
    LONGEST_WAIT,
    Meeting,
    Table,
    digest,
    meet,
    take_uncounted,
)
from events.tests.factories import judge, make_event
from events.tests.states import recalled
from tenancy.tests.factories import make_tenant

NOON = 1_700_049_600.0
TODAY = int(NOON // DAY)
HOME = Context(home_domain="acme.example")
READ = {"tool": "read_file", "resource": "plan"}
STRANGER = "x@new.example"
NAME = digest(STRANGER)
CALL, HOST = KIND["api_call"], KIND["host"]


@dataclass
class Clerk:
    """An agent that reads one plan and writes to its boss; it has done both forty times."""

    state: AgentState

    def reads(self, day: float) -> RiskVerdict:
        return fold(self.state, Event("data_access", NOON + day * DAY, READ), HOME)

    def writes(self, day: float, *to: str) -> RiskVerdict:
        """Have it read and, a minute later, write to a stranger, or to `to`."""
        self.reads(day)
        return fold(self.state, sent(day, *to), HOME)

    def knows(self, day: float) -> bool:
        return self.state.destinations.knows(NAME, self.state.fading(NOON + day * DAY))


def sent(day: float, *to: str) -> Event:
    details = {"tool": "send_email", "to": list(to) or [STRANGER]}
    return Event("api_call", NOON + day * DAY + 60, details)


@pytest.fixture
def clerk() -> Clerk:
    state = AgentState()
    for minute in range(0, 80, 2):
        at = NOON - DAY + 60 * minute
        teach(state, Event("data_access", at, READ))
        teach(state, Event("api_call", at + 60, {"tool": "send_email", "to": "boss@acme.example"}))
    return Clerk(state)


@pytest.mark.parametrize(
    ("days", "is_over"),
    [
        ((0,), False),
        ((0, 0, 0, 0), False),
        ((0, 1, 2), False),
        ((0, 0, 3), False),
        ((0, 6), False),
        ((0, 1, 3), True),
        ((0, 3, 4), True),
        ((0, 1, 2, 3), True),
        ((0, 7), True),
        ((0, 3, 1), False),
        ((0, 3, -4), False),
    ],
)
def test_probation_ends_after_three_days_in_three_or_two_in_seven(
    days: tuple[int, ...], is_over: bool
) -> None:
    waiting = Table()

    ends = [meet(waiting, NAME, TODAY + day, CALL, 8) for day in days]

    assert ends == [False] * (len(days) - 1) + [is_over]
    assert len(waiting) == (not is_over)


@pytest.mark.parametrize(
    "bits",
    [(0, 0, 1, 0, False), (TODAY, 0, 1, HOST, True), (TODAY, 6, 2, CALL, True), (TODAY, 63, 15, 15, False)],
)
def test_meeting_survives_packing(bits: tuple[int, int, int, int, bool]) -> None:
    first, span, days, kind, is_counted = bits
    met = Meeting(first << 15 | span << 9 | days << 5 | kind << 1 | is_counted)

    again = Meeting(met.number())

    assert (again.first, again.span, again.days, again.kind, again.is_counted) == bits


def test_packing_bounds_span_and_days() -> None:
    met = Meeting(TODAY << 15)
    met.span, met.days = 500, 400

    again = Meeting(met.number())

    assert (again.first, again.span, again.days) == (TODAY, 63, 15)


def test_each_waiting_name_counts_once_three_days_after_it_was_first_met() -> None:
    waiting = Table()
    meet(waiting, NAME, TODAY, HOST, 8)
    meet(waiting, digest("later"), TODAY + 1, CALL, 8)

    counted = [take_uncounted(waiting, TODAY + day) for day in (0, 2, 3, 3, 4, 5)]

    assert counted == [[], [], [HOST], [], [CALL], []]


def test_a_name_that_was_not_met_again_is_forgotten() -> None:
    waiting = Table()
    meet(waiting, NAME, TODAY, CALL, 8)
    meet(waiting, NAME, TODAY + 2, CALL, 8)

    left = []
    for day in (LONGEST_WAIT, LONGEST_WAIT + 2, LONGEST_WAIT + 3):
        take_uncounted(waiting, TODAY + day)
        left.append(len(waiting))

    assert left == [1, 1, 0]


def test_of_several_names_only_the_stale_ones_are_forgotten() -> None:
    waiting = Table()
    for name, day in (("old", 0), ("kept", 20), ("older", 1), ("new", LONGEST_WAIT)):
        meet(waiting, digest(name), TODAY + day, CALL, 8)

    counted = take_uncounted(waiting, TODAY + LONGEST_WAIT + 2)

    assert counted == [CALL, CALL, CALL]
    assert [bool(waiting.get(digest(name))) for name in ("old", "kept", "older", "new")] == [
        False,
        True,
        False,
        True,
    ]
    assert take_uncounted(waiting, TODAY + LONGEST_WAIT + 2) == []


def test_a_full_table_forgets_the_name_that_was_met_first() -> None:
    waiting = Table()

    for day in range(4):
        meet(waiting, digest(f"place{day}"), TODAY + day, CALL, 3)

    assert waiting.names == digest("place1") + digest("place2") + digest("place3")


@pytest.mark.parametrize("days", [(0, 1, 3), (0, 2, 5), (0, 7)])
def test_a_place_met_on_several_days_becomes_known_though_its_events_are_medium(
    clerk: Clerk, days: tuple[int, ...]
) -> None:
    bands, known = [], []
    for day in days:
        bands.append(clerk.writes(day).band)
        known.append(clerk.knows(day))

    assert bands == ["medium"] * (len(days) - 1) + ["low"]
    assert known == [False] * (len(days) - 1) + [True]
    assert clerk.writes(days[-1] + 1).score == clerk.writes(days[-1] + 1, "boss@acme.example").score == 0.05


def test_repetitions_on_one_day_do_not_make_a_place_known(clerk: Clerk) -> None:
    verdicts = [clerk.writes(hour / 24) for hour in range(-11, 12)]

    assert verdicts[0].band == "medium"
    assert len({verdict.reasons for verdict in verdicts[1:]}) == 1
    assert not clerk.knows(0.5)


def test_a_low_event_of_a_new_place_waits_too() -> None:
    newcomer = Clerk(AgentState())
    bands, known = [], []

    for day in (0, 1, 3):
        bands.append(fold(newcomer.state, sent(day), Context()).band)
        known.append(newcomer.knows(day))

    assert bands == ["low"] * 3
    assert known == [False, False, True]


def test_a_place_that_an_officer_confirmed_starts_over(clerk: Clerk) -> None:
    for day in (0, 1):
        clerk.writes(day)

    unlearn(clerk.state, sent(1), [STRANGER], was_learned=True)
    known = []
    for day in (3, 4, 5, 6):
        clerk.writes(day)
        known.append(clerk.knows(day))

    assert known == [False, False, False, True]


def test_novelty_of_a_medium_event_counts_once_from_three_days_on(clerk: Clerk) -> None:
    trials, rate = clerk.state.trials_of(CALL), clerk.state.rate_of(CALL)
    clerk.writes(0)

    counted, rates = [], []
    for day in (0.1, 1, 2, 3, 3.1, 4, 9):
        clerk.reads(day)
        counted.append(clerk.state.trials_of(CALL) - trials)
        rates.append(clerk.state.rate_of(CALL))

    assert counted == [0, 0, 0, 1, 1, 1, 1]
    assert rates == [rate] * 3 + [pytest.approx(rate + (1 - rate) * 0.05)] * 4


def test_novelty_makes_the_next_new_place_less_strange_from_three_days_on(clerk: Clerk) -> None:
    def evidence(day: float, place: str) -> float:
        return sum(reason.weight for reason in clerk.writes(day, place).reasons)

    first = evidence(0, STRANGER)

    second = evidence(2, "y@other.example")
    third = evidence(3, "z@third.example")

    assert second == pytest.approx(first, abs=0.01)
    assert third < second - 0.05


def test_novelty_that_an_officer_confirmed_never_counts(clerk: Clerk) -> None:
    trials, rate = clerk.state.trials_of(CALL), clerk.state.rate_of(CALL)
    clerk.writes(0)

    unlearn(clerk.state, sent(0), [STRANGER], was_learned=True)
    for day in (1, 2, 3, 4):
        clerk.reads(day)

    assert (clerk.state.trials_of(CALL), clerk.state.rate_of(CALL)) == (trials, rate)


def test_a_confirmed_medium_event_takes_its_place_off_probation(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    odd = make_event(agent, "transaction_anomaly", details={"tool": "pay", "to": STRANGER, "amount_usd": 5})
    assert odd.risk_band == "medium"
    assert recalled(agent).waiting.get(NAME) > 0

    made = judge(odd)

    assert STRANGER in made.marked
    assert recalled(agent).waiting.get(NAME) == 0
