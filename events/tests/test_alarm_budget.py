"""How evidence becomes an alarm: by how rare it is among an agent's ordinary events, and by its budget."""

import math
from itertools import pairwise

import msgspec
import pytest

from agents.services import update
from auditlog.vocabulary import Actor
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from events.ingest import standing
from events.risk.scoring.comparison import Comparison
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.learning import learn
from events.risk.scoring.model import (
    NATS,
    USUAL,
    calibrated,
    fold,
    limit_of,
    moves,
    relearn,
    surprise_of,
    teach,
    teach_late,
)
from events.risk.scoring.packed import NUMBER
from events.risk.scoring.state import (
    SURPRISES,
    AgentState,
    Baseline,
    decode_state,
    encode_state,
    sum_up_surprises,
)
from events.tests.assessments import assess
from tenancy import services as tenancy
from tenancy.tests.factories import make_tenant

MONDAY = 1_700_472_000.0  # a Monday, 09:20 UTC
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
HOME = Context(home_domain="acme.example")
STRANGER = {"tool": "send_email", "to": "someone@evil.example"}
READ = Event("data_access", MONDAY, {"tool": "read_mail"})
PAY = {"tool": "pay", "recipient": "DE01", "amount_usd": 100.0}


def with_budget(budget: float) -> Context:
    return msgspec.structs.replace(HOME, alarm_budget=budget)


def day_of(day: int) -> list[Event]:
    """An ordinary day: eight rounds of reading, paying and writing."""
    steps = [
        ("data_access", {"tool": "read_mail", "resource": "inbox"}),
        ("transaction_initiated", PAY | {"amount_usd": 95.0 + day % 7}),
        ("api_call", {"tool": "send_email", "to": "colleague@acme.example"}),
    ]
    return [
        Event(action_type, MONDAY + day * DAY + round_ * HOUR + step * MINUTE, details)
        for round_ in range(8)
        for step, (action_type, details) in enumerate(steps)
    ]


@pytest.fixture(scope="module")
def grown() -> AgentState:
    """Ten days that are known to be ordinary."""
    state = AgentState()
    for day in range(-10, 0):
        for event in day_of(day):
            teach(state, event, HOME)
    return state


def counted(state: AgentState) -> float:
    return state.surprises_from(0) * state.fading(state.last_at)


def test_more_evidence_is_never_less_surprising() -> None:
    for row, usual in enumerate(USUAL):
        assert list(usual) == sorted(set(usual))
        nats = [surprise_of(logit / 10, row) for logit in range(-100, 100)]
        assert all(less < more for less, more in pairwise(nats))
        assert [surprise_of(logit, row) for logit in usual] == pytest.approx(NATS)


@pytest.mark.parametrize("budget", [0.001, 0.002, 0.01, 0.05])
def test_an_event_is_medium_from_where_the_budget_is_used_up(budget: float) -> None:
    """Of an agent without a past, all agents' events count alone."""
    state, found, limit = AgentState(), [], limit_of(budget, 1.0, 0.0)
    for row in range(len(USUAL[0])):
        seen = Comparison(state, READ)
        seen.surprise = NATS[row]
        found.append((math.exp(-NATS[row]) <= limit, _score(seen, budget) >= 0.3))

    assert all(is_rare == is_alarm for is_rare, is_alarm in found)
    seen.surprise = -math.log(limit) + 1e-9
    assert _score(seen, budget) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("credit", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("budget", [0.001, 0.0015, 0.002, 0.003])
def test_an_alarm_of_a_tight_budget_is_medium_even_where_its_limit_is_rarer_than_rare(
    budget: float, credit: float
) -> None:
    state, found = AgentState(), list[float]()
    state.landmark, state.credit = MONDAY, credit
    for counted_events in range(0, 20_000, 400):  # until the limit no longer falls
        state.count_surprise(0, 400.0 if counted_events else 0.0)
        for surprise in (9.0, 12.0, 20.0, 60.0):
            seen = Comparison(state, READ)
            seen.surprise = surprise
            found.append(_score(seen, budget))

    assert all(0.0 <= score < 0.85 for score in found)
    assert min(found[3::4]) >= 0.3  # what never happened is an alarm however much is known


def _score(seen: Comparison, budget: float) -> float:
    return calibrated(seen, -3.0, [], [], budget, None)


def test_a_tighter_budget_takes_more_of_an_agents_own_events() -> None:
    """Eighty quiet events let an alarm through at 1 %, but not what is as near to the budget at 0.2 %."""
    state = AgentState()
    state.count_surprise(0, 80.0)
    state.landmark = MONDAY
    seen = Comparison(state, READ)
    found = []
    for budget in (0.01, 0.002):
        seen.surprise = -math.log(2 * budget)
        found.append(_score(seen, budget) >= 0.3)

    assert found == [True, False]


def test_what_often_happens_to_a_tenants_agents_is_no_alarm_for_a_young_one() -> None:
    seen, mature, tenant = Comparison(AgentState(), READ), AgentState(), Baseline()
    seen.surprise = 5.0
    alone = calibrated(seen, -3.0, [], [], 0.01, tenant)
    for number in range(100):
        mature.count_surprise(13 if number % 10 == 0 else 0, 1.0)
    mature.landmark = MONDAY
    sum_up_surprises(tenant, [mature, mature], MONDAY)

    assert alone > 0.3 > calibrated(seen, -3.0, [], [], 0.01, tenant)


def test_a_larger_budget_asks_for_more_looks(grown: AgentState) -> None:
    sums = [Event("transaction_initiated", MONDAY, PAY | {"amount_usd": 100.0 + 5 * n}) for n in range(40)]
    alarms = [
        sum(assess(grown, event, with_budget(budget)).band != "low" for event in sums)
        for budget in (0.003, 0.01, 0.05)
    ]

    assert 0 < alarms[0] < alarms[1] < alarms[2] < len(sums)


def test_ordinary_days_stay_within_the_budget(grown: AgentState) -> None:
    state = grown.changeable()
    bands = [fold(state, event, HOME).band for day in range(14) for event in day_of(day)]

    assert bands.count("low") >= 0.99 * len(bands)


def test_history_known_to_be_ordinary_calibrates(grown: AgentState) -> None:
    assert counted(grown) > 150
    assert counted(AgentState()) == 0.0


@pytest.mark.parametrize("a_day", [1, 4, 8, 12, 16])
def test_a_week_of_alarms_does_not_hide_the_act_after_it(grown: AgentState, a_day: int) -> None:
    """An attacker writes to strangers among ordinary events, from once a day to after two of three."""
    state = grown.changeable()
    first = fold(state, Event("api_call", MONDAY - HOUR, STRANGER), HOME)
    for day in range(7):
        for number, event in enumerate(day_of(day)):
            fold(state, event, HOME)
            if number < a_day:
                said = STRANGER | {"to": f"someone@evil{day}x{number}.example"}
                fold(state, Event("api_call", event.received_at + MINUTE / 2, said), HOME)

    act = assess(state, Event("api_call", MONDAY + 7 * DAY, STRANGER | {"to": "drop@evil.example"}), HOME)
    theft = PAY | {"recipient": "XX99", "amount_usd": 5_000.0}
    paid = assess(state, Event("transaction_initiated", MONDAY + 7 * DAY, theft), HOME)

    assert first.band == "medium"
    assert act.score >= 0.3
    assert paid.score >= 0.3


def test_an_alarm_that_was_dismissed_often_is_one_no_more(grown: AgentState) -> None:
    state = grown.changeable()
    said = [STRANGER | {"to": f"someone@place{n}.example"} for n in range(20)]
    before = assess(state, Event("api_call", MONDAY, said[0]), HOME)
    for n in range(1, 12):
        teach_late(state, Event("api_call", MONDAY + n * MINUTE, said[n]), HOME)

    assert before.band == "medium"
    assert assess(state, Event("api_call", MONDAY + HOUR, said[-1]), HOME).band == "low"


def test_alarms_use_up_a_credit_that_grows_with_the_budget_only(grown: AgentState) -> None:
    state, before = grown.changeable(), counted(grown)
    for minute in range(30):
        said = STRANGER | {"to": f"someone@evil{minute}.example"}
        fold(state, Event("api_call", MONDAY + minute * MINUTE, said), HOME)

    assert counted(state) - before < 1.0
    assert state.credit < 0.1


@pytest.mark.parametrize("budget", [0.001, 0.01, 0.05])
def test_each_alarm_asks_more_of_the_next_but_never_hides_what_is_rare(budget: float) -> None:
    state = AgentState()
    limits = [limit_of(budget, state.credit, 40.0)]
    for _ in range(10):
        seen = Comparison(state, READ)
        seen.surprise = 5.0
        learn(seen, "medium", budget)
        limits.append(limit_of(budget, state.credit, 40.0))

    assert limits[0] > limits[1] > limits[10] >= 0.6 * limits[0] * min(0.01 / budget, 1.0)


def test_quiet_events_give_back_what_alarms_took(grown: AgentState) -> None:
    state = grown.changeable()
    fold(state, Event("api_call", MONDAY, STRANGER), HOME)
    after_one = state.credit
    for day in range(10):
        for event in day_of(day):
            fold(state, event, HOME)

    assert after_one < 0.5 < state.credit


def test_alarms_before_do_not_lower_what_is_high(grown: AgentState) -> None:
    far = Event("transaction_initiated", MONDAY, PAY | {"amount_usd": 5_000.0})
    alarmed = grown.changeable()
    alarmed.credit = 0.0

    assert assess(alarmed, far, HOME).score == assess(grown, far, HOME).score >= 0.85


def test_high_takes_two_kinds_of_evidence_or_a_sum_far_outside_habit(grown: AgentState) -> None:
    far = PAY | {"amount_usd": 5_000.0}
    read = Event("data_access", MONDAY, {"tool": "read_mail", "resource": "secrets"})

    paid = assess(grown, Event("transaction_initiated", MONDAY, far), HOME)
    young = assess(AgentState(), Event("transaction_initiated", MONDAY, far), HOME)
    new_thing = assess(grown, read, HOME)

    assert paid.band == "high"
    assert young.band != "high"
    assert new_thing.band != "high"


@pytest.mark.parametrize(
    ("action_type", "tool", "moved"),
    [
        ("data_mutation", None, True),
        ("api_call", "send_email", True),
        ("api_call", "deleteFile", True),
        ("api_call", "grant_access", True),
        ("api_call", "get_weather", False),
        ("api_call", None, False),
        ("data_access", "send_report", False),
    ],
)
def test_what_moves_something(action_type: str, tool: str | None, moved: bool) -> None:
    assert moves(action_type, tool) is moved


def test_what_an_agent_is_used_to_survives_storage_and_rebuilding(grown: AgentState) -> None:
    again = decode_state(encode_state(grown))
    state = AgentState()
    known = [(event, fold(state, event, HOME).band) for event in day_of(0)]

    rebuilt = relearn(known, context=HOME)

    assert (again.counts, again.credit, again.strange) == (grown.counts, grown.credit, grown.strange)
    assert (rebuilt.counts, rebuilt.credit) == (state.counts, state.credit)
    assert (SURPRISES + 2) * NUMBER <= 300


def test_the_next_event_is_scored_by_the_budget_of_agent_or_tenant() -> None:
    agent = make_certified_agent(make_tenant())

    def budget() -> float:
        asked = [(agent.tenant_id, str(agent.id))]
        return standing.of_agents(asked, now=now())[str(agent.id)].profile.context.alarm_budget

    found = [budget()]
    tenancy.change_setting(
        name="alarm_budget",
        tenant_id=agent.tenant_id,
        value=0.02,
        reason="calm",
        actor=Actor.system("tests"),
        now=now(),
    )
    found.append(budget())
    changes = {"alarm_budget": 0.001}
    update(
        tenant_id=agent.tenant_id, agent_id=agent.id, changes=changes, actor=Actor.system("tests"), now=now()
    )
    found.append(budget())

    assert found == [0.01, 0.02, 0.001]
