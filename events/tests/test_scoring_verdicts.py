"""What verdicts change in the scorer: marked places, late teaching, and states learned again."""

from typing import Any

import pytest

from events.risk.scoring.contract import Context, Event
from events.risk.scoring.habits.learning import ORDINARY, relearn, teach, teach_late, unlearn
from events.risk.scoring.habits.state import AgentState, encode_state
from events.risk.scoring.habits.tables import digest
from events.risk.scoring.model import fold
from events.risk.scoring.rules import places_of
from events.tests.assessments import assess

NOON = 1_700_049_600.0
HOME = Context(home_domain="acme.example")


def call(minute: float = 0, action_type: str = "api_call", **details: Any) -> Event:
    return Event(action_type, NOON + 60 * minute, {"tool": "send", **details})


def settled(*targets: str) -> AgentState:
    """An agent that often writes to these."""
    state = AgentState()
    for minute in range(40):
        for target in targets:
            teach(state, call(minute, to=target))
    return state


def places(event: Event, state: AgentState | None = None, *, was_learned: bool = False) -> tuple[str, ...]:
    return places_of(event, state or AgentState(), HOME, was_learned=was_learned)


@pytest.mark.parametrize(
    "details",
    [
        {"to": "X@Evil.example"},
        {"recipients": ["friend@known.example", "x@evil.example"]},
        {"url": "https://bad.example/upload"},
        {"host": "bad.example"},
        {"url": "https://deep.down.bad.example/"},
        {"to": "anybody@bad.example"},
    ],
)
@pytest.mark.parametrize("action_type", ["api_call", "data_access", "transaction_initiated"])
def test_marked_place_is_high_and_told_for_agents_of_any_age(
    details: dict[str, Any], action_type: str
) -> None:
    context = Context(marked=frozenset({"x@evil.example", "bad.example"}))

    for state in (AgentState(), settled("friend@known.example")):
        found = assess(state, call(action_type=action_type, **details), context)

        assert found.score >= 0.9
        assert "confirmed_destination" in {reason.name for reason in found.reasons}


def test_what_is_not_marked_scores_as_without_marks() -> None:
    event = call(to="y@evil.example", url="https://notbad.example")

    marked = assess(AgentState(), event, Context(marked=frozenset({"x@evil.example", "bad.example"})))

    assert marked.score == assess(AgentState(), event, Context()).score


def test_marks_are_input_so_a_replay_gives_the_same_numbers() -> None:
    context = Context(marked=frozenset({"x@evil.example"}))
    events = [call(minute, to=f"{'xy'[minute % 2]}@evil.example") for minute in range(20)]

    runs = []
    for _ in range(2):
        state = AgentState()
        runs.append(([fold(state, event, context) for event in events], encode_state(state)))

    assert runs[0] == runs[1]


def test_places_are_targets_and_hosts_but_no_mail_providers() -> None:
    assert places(call(to="x@mail.example")) == ("x@mail.example",)
    assert places(call(url="https://evil.example/a", host="other.example")) == (
        "evil.example",
        "other.example",
    )


@pytest.mark.parametrize("to", ["boss@acme.example", "https://api.acme.example/x", "/transfer"])
def test_own_domain_and_paths_are_never_marked(to: str) -> None:
    assert places(call(to=to)) == ()


def test_what_a_long_list_hides_is_never_marked() -> None:
    found = places(call(to=[f"a{number}@evil.example" for number in range(20)]))

    assert len(found) == 8
    assert all(name.endswith("@evil.example") for name in found)


def test_known_ones_beside_a_new_one_are_left_alone() -> None:
    state = settled("friend@known.example", "api.known.example")

    found = places(call(50, to=["friend@known.example", "api.known.example", "x@evil.example"]), state)

    assert found == ("x@evil.example",)


def test_of_known_places_only_accounts_are_marked() -> None:
    state = settled("GB29NWBK60161331926819", "api.known.example")

    assert places(call(50, to="GB29NWBK60161331926819"), state) == ("gb29nwbk60161331926819",)
    assert places(call(50, to="https://api.known.example"), state) == ()


def test_what_a_missed_attack_taught_does_not_make_its_place_known() -> None:
    state, event = settled("friend@known.example"), call(50, to="https://evil.example")
    teach(state, event)

    assert places(event, state, was_learned=True) == ("evil.example",)


def test_dismissed_event_is_ordinary_from_then_on() -> None:
    state, odd = settled("friend@known.example"), call(50, to="partner@new.example")
    before = assess(state, call(60, to="partner@new.example"), HOME)

    teach_late(state, odd)

    after = assess(state, call(60, to="partner@new.example"), HOME)
    assert before.band == "medium"
    assert after.band == "low"


def test_late_teaching_leaves_the_last_minutes_and_the_day_alone() -> None:
    state = AgentState()
    for minute in range(10):
        fold(state, call(minute, "transaction_initiated", amount_usd=10, to="a"), Context())
    past = call(-3 * 24 * 60, "transaction_initiated", amount_usd=10, to="b")

    taught = state.changeable()
    teach_late(taught, past)

    for name in ("last_at", "burst", "reads", "failures", "anomalies", "last_tool", "day", "day_usd"):
        assert getattr(taught, name) == getattr(state, name)
    assert taught.learned > state.learned


def test_unlearned_place_is_new_again() -> None:
    state = settled("x@evil.example", "friend@known.example")

    unlearn(state, ["x@evil.example", "never@seen.example"])

    fading = state.fading(NOON)
    assert not state.destinations.knows(digest("x@evil.example"), fading)
    assert state.destinations.knows(digest("friend@known.example"), fading)


def test_relearning_by_band_gives_the_state_that_folding_gave() -> None:
    events = [call(minute, to=f"{minute % 7}@known.example", amount=minute) for minute in range(60)]
    events += [
        call(61, "unauthorized_access_attempt"),
        call(62, to="x@evil.example", url="https://e.example"),
    ]
    state = AgentState()
    bands = [fold(state, event, HOME).band for event in events]

    again = relearn(zip(events, bands, strict=True))

    assert {"low", "high"} <= set(bands)
    assert encode_state(again) == encode_state(state)


def test_relearning_teaches_what_was_dismissed() -> None:
    odd = call(50, "unauthorized_access_attempt")

    assert relearn([(odd, ORDINARY)]).learned == pytest.approx(1)
    assert relearn([(odd, "high")]).learned == 0
