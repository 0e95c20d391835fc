"""What an adversary who knows the scorer may try, and what comes of it."""

from collections.abc import Iterable

import pytest

from events.risk.scoring.comparison import Comparison
from events.risk.scoring.contract import Context, Event, FinancialScope, RiskVerdict
from events.risk.scoring.features import signals
from events.risk.scoring.learning import unlearn
from events.risk.scoring.model import fold, teach, teach_late
from events.risk.scoring.state import AgentState, encode_state
from events.tests.assessments import assess

MONDAY = 1_700_472_000.0  # a Monday, 09:20 UTC
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
UNKNOWN = Context()
SCOPE = FinancialScope(
    max_single_trade_usd=10_000,
    daily_limit_usd=25_000,
    permitted_instruments=("BTC-USD",),
    permitted_venues=("Kraken",),
    leverage_permitted=False,
)
PAY = {"tool": "pay", "recipient": "DE01", "amount_usd": 100.0}
READ = Event("data_access", MONDAY, {"tool": "read_mail", "resource": "inbox"})


def grown(days: int = 20) -> AgentState:
    """An agent that reads mail, pays two suppliers and writes to a colleague, four times a working day."""
    state = AgentState()
    for day in range(-days, 0):
        for round_ in range(4):
            at = MONDAY + day * DAY + round_ * HOUR
            for step, (action_type, details) in enumerate([
                ("data_access", {"tool": "read_mail", "resource": "inbox"}),
                ("transaction_initiated", PAY | {"recipient": f"DE0{round_ % 2}", "amount_usd": 95.0 + day}),
                ("api_call", {"tool": "send_email", "to": "colleague@acme.example"}),
            ]):  # fmt: skip
                teach(state, Event(action_type, at + step * MINUTE, details))
    return state


@pytest.fixture(scope="module")
def mature() -> AgentState:
    return grown()


def play(state: AgentState, events: Iterable[Event], context: Context = UNKNOWN) -> list[RiskVerdict]:
    return [fold(state, event, context) for event in events]


def after(state: AgentState, action_type: str, details: object, context: Context = UNKNOWN) -> RiskVerdict:
    """The verdict on the agent's next event, a minute later."""
    return assess(state, Event(action_type, state.last_at + MINUTE, details), context)


@pytest.mark.parametrize("growth", [1.03, 1.05, 1.1])
def test_amounts_that_creep_up_are_told_before_they_are_tenfold(mature: AgentState, growth: float) -> None:
    state, amount, told = mature.changeable(), 100.0, None
    for trade in range(400):
        amount *= growth
        event = Event("transaction_initiated", MONDAY + trade * HOUR, PAY | {"amount_usd": amount})
        if fold(state, event, UNKNOWN).band != "low":
            told = amount
            break

    assert told is not None
    assert told < 1_000


def test_small_trades_under_the_single_limit_stop_at_the_daily_one(mature: AgentState) -> None:
    context, state = Context(financial_scope=SCOPE), mature.changeable()

    bands = [
        verdict.band
        for verdict in play(
            state,
            (
                Event("transaction_initiated", MONDAY + second, PAY | {"amount_usd": 99})
                for second in range(300)
            ),
            context,
        )
    ]

    assert bands.index("high") == 252  # 253 times 99 USD is the first sum beyond 25,000 USD
    assert set(bands[252:]) == {"high"}


def test_trades_refused_for_the_day_still_count_toward_it(mature: AgentState) -> None:
    context, state = Context(financial_scope=SCOPE), mature.changeable()
    play(state, [Event("transaction_initiated", MONDAY, PAY | {"amount_usd": 24_990})], context)

    again = after(state, "transaction_initiated", PAY | {"amount_usd": 50}, context)

    assert again.band == "high"


def test_alternating_tools_does_not_make_a_new_tool_usual(mature: AgentState) -> None:
    state = mature.changeable()
    tools = ["read_mail", "send_email"] * 60
    play(state, [Event("api_call", MONDAY + n * MINUTE, {"tool": tool, "to": "colleague@acme.example"})
                 for n, tool in enumerate(tools)])  # fmt: skip
    wipe = {"tool": "wipe_disk", "to": "XX99"}

    seen = Comparison(state, Event("api_call", state.last_at + MINUTE, wipe))
    names = {name for name, *_ in signals(seen, UNKNOWN)}

    assert names >= {"read_then_send", "privileged_act", "unusual_tool"}
    assert (
        after(state, "api_call", wipe).score >= after(state, "api_call", wipe | {"tool": "send_email"}).score
    )


@pytest.mark.parametrize("claimed", ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z", 0, 1e18, None])
@pytest.mark.parametrize("key", ["occurredAt", "occurred_at", "timestamp", "date", "time"])
def test_claimed_times_change_nothing(mature: AgentState, key: str, claimed: object) -> None:
    details = PAY | {"recipient": "XX99", "amount_usd": 9_000}

    honest = assess(mature, Event("transaction_initiated", MONDAY, details), UNKNOWN)
    dated = assess(mature, Event("transaction_initiated", MONDAY, details | {key: claimed}), UNKNOWN)

    assert (dated.score, dated.reasons) == (honest.score, honest.reasons)
    assert encode_state(dated.state) == encode_state(honest.state)


@pytest.mark.parametrize("name", ["Pay", "p4y", "pay ", "pay\u200b", "payments.pay", "x" * 5_000])
def test_a_renamed_tool_is_no_better_than_the_known_one(mature: AgentState, name: str) -> None:
    attack = PAY | {"recipient": "XX99", "amount_usd": 9_000}

    assert (
        after(mature, "transaction_initiated", attack | {"tool": name}).score
        >= after(mature, "transaction_initiated", attack).score
    )


@pytest.mark.parametrize("name", ["p4y", "pay\u200b", "payments.pay.now"])
def test_a_renamed_tool_is_outside_a_declared_scope(mature: AgentState, name: str) -> None:
    context = Context(permitted_actions=frozenset({"pay", "send_email"}))

    assert after(mature, "transaction_initiated", PAY | {"tool": name}, context).band == "high"


@pytest.mark.parametrize(
    "details", [{}, None, [], "text", {"note": "all is well"}, {"details": {"tool": "pay"}}]
)
@pytest.mark.parametrize("context", [UNKNOWN, Context(None, SCOPE, "acme.example")])
def test_empty_details_gain_nothing(mature: AgentState, details: object, context: Context) -> None:
    for action_type, attack in (
        ("transaction_initiated", PAY | {"recipient": "XX99"}),
        ("api_call", {"tool": "send_email", "to": "someone@evil.example"}),
    ):
        for state in (AgentState(), mature):
            emptied = after(state, action_type, details, context)
            assert emptied.score >= after(state, action_type, attack, context).score


@pytest.mark.parametrize("left_out", ["tool", "to"])
@pytest.mark.parametrize("home", [None, "acme.example"])
def test_leaving_out_where_a_message_goes_gains_nothing(
    mature: AgentState, left_out: str, home: str | None
) -> None:
    attack = {"tool": "send_email", "to": "someone@evil.example"}
    partial = {key: value for key, value in attack.items() if key != left_out}
    context = Context(home_domain=home)

    for state in (AgentState(), mature):
        assert (
            after(state, "api_call", partial, context).score
            >= after(state, "api_call", attack, context).score
        )


def test_a_destination_hidden_behind_many_known_ones_is_still_new(mature: AgentState) -> None:
    known = ["colleague@acme.example"] * 8
    hidden = after(mature, "api_call", {"tool": "send_email", "to": [*known, "someone@evil.example"]})
    plain = after(mature, "api_call", {"tool": "send_email", "to": known})

    assert "new_destination" in {reason.name for reason in hidden.reasons}
    assert hidden.score > plain.score


def test_a_flood_of_ordinary_events_neither_hides_an_attack_nor_undoes_a_high(mature: AgentState) -> None:
    state = mature.changeable()
    attack = PAY | {"recipient": "XX99", "amount_usd": 9_000}
    fold(state, READ, UNKNOWN)
    before = after(state, "transaction_initiated", attack)

    play(state, [Event("transaction_initiated", MONDAY + n, PAY) for n in range(500)])
    fold(state, Event("data_access", MONDAY + 500, READ.details), UNKNOWN)

    assert after(state, "transaction_initiated", attack).score >= before.score - 0.05
    assert after(state, "unauthorized_access_attempt", {}).band == "high"


def test_attacks_never_become_habit(mature: AgentState) -> None:
    state = mature.changeable()
    attack = PAY | {"recipient": "XX99", "amount_usd": 9_000}
    fourth_day = 63  # hours from Monday, 09:20, to Thursday
    first = [Event("transaction_initiated", MONDAY + n * HOUR, attack) for n in range(fourth_day)]
    later = [Event("transaction_initiated", MONDAY + n * HOUR, attack) for n in range(fourth_day, 100)]

    verdicts = play(state, first)

    assert state.destinations.names == mature.destinations.names

    verdicts += play(state, later)

    assert {verdict.band for verdict in verdicts} == {"high"}
    assert state.destinations.names == mature.destinations.names
    assert (state.amounts, state.usual_amount) == (mature.amounts, mature.usual_amount)
    assert (state.learned, state.tools.weights) == (mature.learned, mature.tools.weights)
    assert state.waiting.names == b""


def test_two_agents_that_split_an_attack_are_judged_each_by_its_own_habits(mature: AgentState) -> None:
    reader, sender = mature.changeable(), mature.changeable()
    attack = {"tool": "send_email", "to": "someone@evil.example"}
    context = Context(home_domain="acme.example")

    fold(reader, Event("data_access", MONDAY, {"tool": "read_mail", "resource": "secrets"}), context)
    alone = fold(sender, Event("api_call", MONDAY + MINUTE, attack), context)
    again = fold(reader, Event("api_call", MONDAY + 2 * MINUTE, attack), context)

    assert {reason.name for reason in alone.reasons} >= {"new_destination", "external_host"}
    assert again.score > alone.score
    assert alone.band != "high"


def test_an_hour_the_agent_is_never_active_in_is_told_but_decides_nothing(mature: AgentState) -> None:
    by_day = assess(mature, Event("api_call", MONDAY + HOUR, {"tool": "send_email"}), UNKNOWN)
    by_night = assess(mature, Event("api_call", MONDAY - 9 * HOUR + DAY, {"tool": "send_email"}), UNKNOWN)

    assert "unusual_hour" in {reason.name for reason in by_night.reasons}
    assert "unusual_hour" not in {reason.name for reason in by_day.reasons}
    assert by_day.score < by_night.score < 2 * by_day.score


def test_a_refused_call_makes_the_next_ones_weigh_more(mature: AgentState) -> None:
    state = mature.changeable()
    before = after(state, "api_call", {"tool": "send_email", "to": "colleague@acme.example"})
    for status in (401, "403", "Forbidden", "denied"):
        after_one = Event("api_call", state.last_at + 1, {"tool": "send_email", "status": status})
        fold(state, after_one, UNKNOWN)

    again = after(state, "api_call", {"tool": "send_email", "to": "colleague@acme.example"})

    assert "repeated_failures" in {reason.name for reason in again.reasons}
    assert again.score > before.score


def test_many_new_places_in_one_event_count_once_in_the_rate_of_novelty(mature: AgentState) -> None:
    state = mature.changeable()
    context = Context(home_domain="acme.example")
    invented = {"tool": "send_email", "to": [f"new{n}@acme.example" for n in range(32)]}
    attack = {"tool": "send_email", "to": "someone@evil.example"}
    fold(state, Event("api_call", MONDAY, invented), context)

    for day in range(1, 4):
        fold(state, Event("data_access", MONDAY + day * DAY, READ.details), context)

    assert after(state, "api_call", attack, context).band == "medium"


@pytest.mark.parametrize("action_type", ["data_access", "message_signed", "authentication_attempt"])
def test_uses_that_need_no_target_do_not_make_leaving_it_out_a_habit(
    mature: AgentState, action_type: str
) -> None:
    state = mature.changeable()
    context = Context(home_domain="acme.example")

    play(state, [Event(action_type, MONDAY + n * MINUTE, {"tool": "send_email"}) for n in range(60)], context)

    assert after(state, "api_call", {"tool": "send_email"}, context).band == "medium"


@pytest.mark.parametrize("length", [10, 300, 9_000])
def test_what_a_url_carries_does_not_hide_where_it_goes(mature: AgentState, length: int) -> None:
    url = "https://evil.example/pixel?d=" + "a" * length
    details = {"tool": "send_email", "to": "colleague@acme.example", "image": url}

    told = after(mature, "api_call", details, Context(home_domain="acme.example"))

    assert "external_host" in {reason.name for reason in told.reasons}


def test_a_long_text_that_begins_with_a_url_names_no_place(mature: AgentState) -> None:
    text = "https://evil.example is where they say that " + "it is " * 100
    details = {"tool": "send_email", "to": "colleague@acme.example", "remark": text}

    assert after(mature, "api_call", details, Context(home_domain="acme.example")).band == "low"


def test_a_confirmed_payment_to_a_known_payee_is_no_sum_that_it_got_before(mature: AgentState) -> None:
    ruined, spared = mature.changeable(), mature.changeable()
    theft = Event("transaction_initiated", MONDAY, PAY | {"recipient": "DE01", "amount_usd": 300.0})
    for state in (ruined, spared):
        fold(state, theft, UNKNOWN)

    unlearn(spared, theft, [], was_learned=False)

    again = Event("transaction_initiated", MONDAY + 8 * DAY, theft.details)
    assert assess(ruined, again, UNKNOWN).score < assess(spared, again, UNKNOWN).score


def test_a_confirmed_act_begins_its_probation_anew(mature: AgentState) -> None:
    state = mature.changeable()
    act = {"tool": "grant_role", "user": "mallory"}
    events = [Event("data_mutation", MONDAY + day * DAY, act) for day in (0, 1, 3)]
    bands = [verdict.band for verdict in play(state, events[:2])]

    unlearn(state, events[1], [], was_learned=False)
    bands += [verdict.band for verdict in play(state, events[2:])]

    assert bands == ["medium"] * 3
    assert state.acts.names == mature.acts.names


def test_a_dismissal_does_not_forget_how_many_new_places_the_last_hour_had(mature: AgentState) -> None:
    state = mature.changeable()
    play(state, [Event("transaction_initiated", MONDAY + n * MINUTE, PAY | {"recipient": f"XX{n}"})
                 for n in range(6)])  # fmt: skip
    counted = state.hour_new

    teach_late(state, Event("api_call", MONDAY - 10 * DAY, {"tool": "send_email", "to": "x@acme.example"}))

    assert counted > 5
    assert state.hour_new == counted
