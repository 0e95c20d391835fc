"""What the scorer learns of an agent, replays, forgets, and can't be talked out of."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, strategies as st

from events.risk.scoring.contract import PRIORS, SENDING, Context, Event
from events.risk.scoring.model import teach
from events.risk.scoring.reasons import SHORT
from events.risk.scoring.state import AIMED, AgentState, decode_state, encode_state
from events.tests.assessments import Assessment, assess

NOON = 1_700_049_600.0
DAY = 86_400.0
UNKNOWN = Context()
PAY = {"tool": "pay", "recipient": "DE01", "amount_usd": 100.0}
Step = tuple[str, dict[str, object]]


def history(count: int = 80) -> list[Step]:
    """An office agent's ordinary day: it reads, pays three suppliers and writes to two colleagues."""
    steps: list[Step] = []
    for turn in range(count // 4):
        steps += [
            ("data_access", {"tool": "read_invoice", "resource": f"invoice-{turn % 6}"}),
            (
                "transaction_initiated",
                {"tool": "pay", "recipient": f"DE0{turn % 3}", "amount_usd": 90.0 + turn % 7},
            ),
            ("data_access", {"tool": "read_mail", "resource": "inbox"}),
            ("api_call", {"tool": "send_email", "to": f"colleague{turn % 2}@acme.example"}),
        ]
    return steps


def live(
    steps: Iterable[Step], context: Context = UNKNOWN, state: AgentState | None = None, start: float = NOON
) -> list[Assessment]:
    """Assess the steps one minute apart."""
    verdicts: list[Assessment] = []
    state = state or AgentState()
    for minute, (action_type, details) in enumerate(steps):
        verdicts.append(assess(state, Event(action_type, start + 60 * minute, details), context))
        state = verdicts[-1].state
    return verdicts


def next_event(
    state: AgentState, action_type: str, details: object, context: Context = UNKNOWN
) -> Assessment:
    return assess(state, Event(action_type, state.last_at + 60, details), context)


@pytest.fixture(scope="module")
def mature() -> AgentState:
    """Twenty rounds that are known to be ordinary."""
    state = AgentState()
    for minute, (action_type, details) in enumerate(history()):
        teach(state, Event(action_type, NOON + 60 * minute, details))
    return state


def test_new_agent_that_only_sends_is_low_from_its_first_event() -> None:
    sends = [step for step in history() if step[0] != "data_access"]

    assert {verdict.band for verdict in live(sends)} == {"low"}


def test_new_agent_that_sends_after_reading_gets_two_alarms_at_most_until_that_is_usual_for_it() -> None:
    state, weights, bands = AgentState(), [], Counter[str]()
    for day in range(6):
        verdicts = live(history(), state=state, start=NOON + day * DAY)
        state = verdicts[-1].state
        told = [reason.name for reason in verdicts[1].reasons]
        weights.append("read_then_send" in told)
        bands.update(verdict.band for verdict in verdicts)

    assert bands["medium"] <= 2
    assert bands.total() == 480 == bands["low"] + bands["medium"]
    assert weights == [True, True, True, False, False, False]


def test_same_events_replay_to_same_numbers() -> None:
    first, second = live(history()), live(history())

    assert [v.score for v in first] == [v.score for v in second]
    assert encode_state(first[-1].state) == encode_state(second[-1].state)


def test_replay_through_stored_state_gives_the_same_numbers() -> None:
    state, scores = AgentState(), []
    for minute, (action_type, details) in enumerate(history()):
        verdict = assess(
            decode_state(encode_state(state)), Event(action_type, NOON + 60 * minute, details), Context()
        )
        state = verdict.state
        scores.append(verdict.score)

    assert scores == [verdict.score for verdict in live(history())]


def test_new_destination_scores_above_a_known_one(mature: AgentState) -> None:
    known = next_event(mature, "transaction_initiated", PAY)
    new = next_event(mature, "transaction_initiated", PAY | {"recipient": "XX99"})

    assert new.score > known.score
    assert ("new_destination", "xx99") in {(reason.name, reason.observed) for reason in new.reasons}


def test_large_amount_to_a_new_destination_after_reading_is_at_least_medium(mature: AgentState) -> None:
    verdict = next_event(
        mature, "transaction_initiated", {"tool": "pay", "recipient": "XX99", "amount_usd": 9_000}
    )

    assert verdict.band != "low"
    assert {reason.name for reason in verdict.reasons[:2]} == {"unusual_amount", "read_then_send"}


def test_external_host_scores_above_the_home_domain(mature: AgentState) -> None:
    context = Context(home_domain="acme.example")
    inside = next_event(mature, "api_call", {"tool": "send_email", "to": "new@mail.acme.example"}, context)
    outside = next_event(mature, "api_call", {"tool": "send_email", "to": "new@evil.example"}, context)

    assert outside.score > inside.score


def weight_of(name: str, verdict: Assessment) -> float:
    return next(reason.weight for reason in verdict.reasons if reason.name == name)


def test_an_invitation_carries_less_than_a_message(mature: AgentState) -> None:
    stranger = {"tool": "send_email", "to": "x@evil.example"}

    message = next_event(mature, "api_call", stranger)
    invitation = next_event(mature, "data_mutation", stranger)

    assert message.score > invitation.score
    assert weight_of("read_then_send", invitation) < weight_of("read_then_send", message)


def test_a_stranger_beside_somebody_known_counts_nine_tenths(mature: AgentState) -> None:
    """The weights of a new place sum to 4 * (1 - exp(-x / 4)); in company x is nine tenths of that alone."""
    names = ("new_destination", "read_then_send")
    alone = next_event(mature, "transaction_initiated", PAY | {"recipient": "XX99"})
    beside = next_event(mature, "transaction_initiated", PAY | {"recipient": ["XX99", PAY["recipient"]]})
    whole = sum(weight_of(name, alone) for name in names)
    share = 4.0 * (1.0 - (1.0 - whole / 4.0) ** 0.9) / whole

    for name in names:
        assert weight_of(name, beside) == pytest.approx(weight_of(name, alone) * share, abs=0.001)


@pytest.mark.parametrize(("left_out", "is_new"), [(0, True), (1, True), (3, False)])
def test_leaving_out_a_target_is_no_news_of_a_tool_that_often_does(left_out: int, is_new: bool) -> None:
    state = AgentState()
    for minute in range(20):
        named = {} if minute < left_out else {"to": "colleague@acme.example"}
        teach(state, Event("data_mutation", NOON + 60 * minute, {"tool": "invite", **named}))

    verdict = next_event(state, "data_mutation", {"tool": "invite"})

    assert (verdict.score > PRIORS["data_mutation"]) == is_new
    assert {reason.name for reason in verdict.reasons} == {"action_type"}  # what is not stated is no reason


def paying(*amounts: float) -> AgentState:
    """An agent known to have paid these amounts to one supplier."""
    state = AgentState()
    for minute, amount in enumerate(amounts):
        teach(state, Event("transaction_initiated", NOON + 60 * minute, PAY | {"amount_usd": amount}))
    return state


@pytest.mark.parametrize(
    ("known", "weight"), [(5, 1.4 * 2.1 * 5 / 25), (20, 1.4 * 1.05), (40, 1.4 * 2.1 * 40 / 60)]
)
def test_an_unusual_amount_says_the_more_the_more_amounts_are_known(known: int, weight: float) -> None:
    """Of equal amounts the least spread is a tenth of the root, and as much again as five of the amounts."""
    spread = 0.1 + 5 / known
    root = 10 * (1 + spread * 2.718281828459045)

    verdict = next_event(paying(*[100.0] * known), "transaction_initiated", PAY | {"amount_usd": root**2})

    assert {reason.name: reason.weight for reason in verdict.reasons}["unusual_amount"] == round(weight, 3)


def test_a_tool_that_was_declared_surprises_less(mature: AgentState) -> None:
    details = {"tool": "send_report", "to": "colleague1@acme.example"}

    weights = [
        {reason.name: reason.weight for reason in next_event(mature, "api_call", details, context).reasons}
        for context in (UNKNOWN, Context(permitted_actions=frozenset({"send_report"})))
    ]

    for name in ("unusual_tool", "unusual_sequence"):
        assert weights[1][name] == pytest.approx(0.4 * weights[0][name], abs=1e-3)


@pytest.mark.parametrize(("minutes", "stays"), [(4.9, True), (5.1, False)])
def test_five_minutes_of_silence_end_a_run_of_tools(minutes: float, stays: bool) -> None:
    """The same tool twice in a row is out of order, unless it begins another run."""
    state = AgentState()
    for run in range(20):
        for second, tool in enumerate(("look", "act")):
            teach(state, Event("data_access", NOON + 600 * run + second, {"tool": tool}))

    twice = Event("data_access", state.last_at + 60 * minutes, {"tool": "act"})
    known = {reason.name for reason in assess(state, twice, UNKNOWN).reasons}

    assert ("unusual_sequence" in known) is stays


@pytest.mark.parametrize("missing", ["tool", "recipient", "amount_usd"])
@pytest.mark.parametrize("recipient", ["DE01", "XX99"])
@pytest.mark.parametrize("amount", [95.0, 9_000.0])
def test_leaving_something_out_never_lowers_a_score(
    mature: AgentState, missing: str, recipient: str, amount: float
) -> None:
    whole = {"tool": "pay", "recipient": recipient, "amount_usd": amount}
    partial = {key: value for key, value in whole.items() if key != missing}

    for state in (AgentState(), mature):
        assert (
            next_event(state, "transaction_initiated", partial).score
            >= next_event(state, "transaction_initiated", whole).score
        )


def test_habits_alone_keep_a_young_agent_below_high() -> None:
    young = live(history(8))[-1].state

    verdict = next_event(
        young, "transaction_anomaly", {"tool": "new", "recipient": "XX99", "amount_usd": 1e9}
    )

    assert verdict.score <= 0.84


def test_clock_that_steps_back_is_harmless(mature: AgentState) -> None:
    overtaken = assess(mature, Event("api_call", mature.last_at - 5, {}), Context())
    set_back = assess(mature, Event("api_call", mature.last_at - 7_200, {}), Context())

    assert overtaken.state.last_at == mature.last_at
    assert set_back.state.last_at == mature.last_at - 7_200
    assert 0 <= set_back.score <= overtaken.score <= 1


def test_habits_fade(mature: AgentState) -> None:
    later = mature.last_at + 200 * 86_400

    verdict = assess(mature, Event("transaction_initiated", later, PAY), Context())

    assert verdict.reasons[0].name == "new_destination"


def test_every_sending_action_has_a_rate_of_novelty() -> None:
    assert set(AIMED) == SENDING


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
telling_keys = st.sampled_from(
    ["tool", "action", "operation", "amount", "amountUsd", "currency", "to", "url", "host", "resource",
     "leverage", "instrument", "venue", "status", "args", "trade", "tool_calls", "quantity", "price"]
)  # fmt: skip
hostile = json_values | st.dictionaries(telling_keys | st.text(max_size=8), json_values, max_size=12)


@given(details=hostile, action_type=st.sampled_from(sorted(PRIORS)), again=hostile)
def test_any_details_give_a_bounded_verdict(details: object, action_type: str, again: object) -> None:
    verdict = assess(AgentState(), Event(action_type, NOON, details), Context())
    verdict = assess(
        verdict.state, Event(action_type, NOON + 1, again), Context(permitted_actions=frozenset({"a"}))
    )

    assert 0 <= verdict.score <= 1
    assert 1 <= len(verdict.reasons) <= 3
    for reason in verdict.reasons:
        assert max(len(reason.observed), len(reason.expected)) <= SHORT
        (reason.observed + reason.expected).encode("utf-8")
        assert "\x00" not in reason.observed


@pytest.mark.parametrize(
    "details",
    [
        {"tool": "x" * 1_000_000, "to": ["y" * 100_000] * 1_000},
        {f"key{number}": number for number in range(50_000)},
        {"args": {"args": {"args": {}}}},
        {"to": [[["deep"]]], "amount": [1, 2], "tool": [[{}]]},
        {"tool": "\ud800\x00", "to": "\ud800@\x00"},
    ],
    ids=["huge", "wide", "deep", "wrong types", "surrogates"],
)
def test_hostile_details_are_read_in_bounded_time(details: dict[str, object]) -> None:
    verdict = assess(
        AgentState(), Event("api_call", NOON, details), Context(permitted_actions=frozenset({"a"}))
    )

    assert all(reason.observed.isprintable() for reason in verdict.reasons)
