"""What verdicts change in the scorer: marked places, late teaching, and states learned again."""

from typing import Any

import msgspec
import pytest

from agents.risk import HIGH
from events.risk.scoring.contract import PRIORS, Context, Event, Marks
from events.risk.scoring.learning import unlearn
from events.risk.scoring.marked import MOST_PLACES, places_of
from events.risk.scoring.model import ORDINARY, fold, relearn, teach, teach_late
from events.risk.scoring.state import AgentState, encode_state
from events.risk.scoring.tables import digest
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


def places(
    event: Event, state: AgentState | None = None, *, was_learned: bool = False, common: str = ""
) -> tuple[str, ...]:
    return places_of(event, state or AgentState(), HOME, common.split().__contains__, was_learned=was_learned)


def marked(*names: str, times: float = 1.0, days_ago: float = 0.0) -> Context:
    """A context with marks of that age at noon."""
    return Context(marked=Marks(NOON - 86_400 * days_ago, dict.fromkeys(names, times)))


SPELLINGS: list[dict[str, Any]] = [
    {"to": "X@Evil.example"},
    {"recipients": ["friend@known.example", "x@evil.example"]},
    {"url": "https://bad.example/upload"},
    {"host": "bad.example"},
    {"url": "https://deep.down.bad.example/"},
    {"to": "anybody@bad.example"},
]


@pytest.mark.parametrize("details", SPELLINGS)
@pytest.mark.parametrize("action_type", ["api_call", "data_access", "transaction_initiated"])
def test_fresh_mark_is_medium_and_told_for_agents_of_any_age(
    details: dict[str, Any], action_type: str
) -> None:
    context = marked("x@evil.example", "bad.example")

    for state in (AgentState(), settled("friend@known.example")):
        found = assess(state, call(action_type=action_type, **details), context)

        assert found.band == "medium"
        assert found.reasons[0].name == "confirmed_destination"


@pytest.mark.parametrize("action_type", sorted(PRIORS.keys() - {"unauthorized_access_attempt"}))
@pytest.mark.parametrize("times", [1, 3, 1_000])
def test_mark_alone_is_never_high(action_type: str, times: float) -> None:
    context = marked("x@evil.example", times=times)

    for state in (AgentState(), settled("friend@known.example"), settled("x@evil.example")):
        assert assess(state, call(60, action_type, to="x@evil.example"), context).score < HIGH


def test_agent_that_only_meets_a_marked_place_is_never_stopped() -> None:
    context = marked("x@evil.example", times=1_000)

    for state in (AgentState(), settled("friend@known.example")):
        found = [fold(state, call(60 + minute, to="x@evil.example"), context) for minute in range(200)]

        assert {one.band for one in found} <= {"low", "medium"}


def test_mark_with_strong_evidence_beside_it_is_high() -> None:
    state = settled("friend@known.example")
    home = msgspec.structs.replace(marked("x@evil.example", times=2), home_domain="acme.example")
    fold(state, call(58, "data_access"), home)
    event = call(60, to="x@evil.example")

    assert assess(state, event, home).score >= HIGH
    assert assess(state, event, HOME).score < HIGH


def test_known_place_takes_something_else_beside_its_mark() -> None:
    state, context = settled("x@evil.example"), marked("x@evil.example")
    for minute in range(40, 60):
        teach(state, call(minute, "transaction_initiated", to="x@evil.example", amount_usd=100 + minute))
    usual, unusual = (
        call(60, "transaction_initiated", to="x@evil.example", amount_usd=usd) for usd in (100, 1_200)
    )

    assert assess(state, usual, context).band == "low"
    assert assess(state, usual, context).score > assess(state, usual, Context()).score
    assert assess(state, unusual, context).band != "low"
    assert assess(state, unusual, context).score > assess(state, unusual, Context()).score


def test_agent_that_often_goes_somewhere_new_takes_something_else_too() -> None:
    state = AgentState()
    for minute in range(60):
        teach(state, call(minute, to=f"{minute}@somewhere.example"))

    assert assess(state, call(60, to="x@evil.example"), marked("x@evil.example")).band == "low"


def test_mark_fades_to_half_in_thirty_days() -> None:
    def weight(days: float) -> float:
        found = assess(AgentState(), call(to="x@evil.example"), marked("x@evil.example", days_ago=days))
        return {one.name: one.weight for one in found.reasons}["confirmed_destination"]

    assert weight(30) == pytest.approx(weight(0) / 2, abs=0.002)
    assert weight(60) == pytest.approx(weight(0) / 4, abs=0.002)


def test_confirmations_add_up_to_a_bound() -> None:
    once, half_more, twice, often = (
        assess(AgentState(), call(to="x@evil.example"), marked("x@evil.example", times=times)).score
        for times in (1, 1.5, 2, 50)
    )

    assert once < half_more < twice == often < HIGH


def test_what_is_not_marked_scores_as_without_marks() -> None:
    event = call(to="y@evil.example", url="https://notbad.example")

    found = assess(AgentState(), event, marked("x@evil.example", "bad.example", "example"))

    assert found.score == assess(AgentState(), event, Context()).score


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
    found = places(call(to=[f"a{number}@evil.example" for number in range(40)]))

    assert len(found) == MOST_PLACES
    assert all(name.endswith("@evil.example") for name in found)


def test_known_ones_beside_a_new_one_are_left_alone() -> None:
    state = settled("friend@known.example", "api.known.example")

    found = places(call(50, to=["friend@known.example", "api.known.example", "x@evil.example"]), state)

    assert found == ("x@evil.example",)


def test_of_known_places_only_accounts_are_marked() -> None:
    state = settled("GB29NWBK60161331926819", "api.known.example")

    assert places(call(50, to="GB29NWBK60161331926819"), state) == ("gb29nwbk60161331926819",)
    assert places(call(50, to="https://api.known.example"), state) == ()


def test_what_others_of_the_tenant_know_is_not_marked() -> None:
    event = call(to=["x@evil.example", "partner@shared.example"])

    assert places(event, common="partner@shared.example") == ("x@evil.example",)
    assert places(event, common="partner@shared.example x@evil.example") == ()


def test_account_beside_a_new_place_that_others_know_is_not_marked_instead() -> None:
    state = settled("GB29NWBK60161331926819")
    event = call(50, to=["GB29NWBK60161331926819", "https://shared.example"])

    assert places(event, state, common="shared.example") == ()


@pytest.mark.parametrize("url", ["https://api.github.com/gists", "https://gmail.com", "https://github.io"])
def test_public_services_are_never_marked(url: str) -> None:
    assert places(call(url=url)) == ()


def test_account_and_customers_host_at_a_public_service_are_marked() -> None:
    assert places(call(to="x@gmail.com")) == ("x@gmail.com",)
    assert places(call(url="https://mallory.github.io/x")) == ("mallory.github.io",)


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


def test_what_one_event_taught_is_unlearned_and_no_more() -> None:
    state, missed = settled("friend@known.example"), call(50, to=["x@evil.example", "friend@known.example"])
    teach(state, missed)

    unlearn(state, missed, ["x@evil.example", "friend@known.example", "never@seen.example"], was_learned=True)

    fading = state.fading(NOON)
    assert not state.destinations.knows(digest("x@evil.example"), fading)
    assert state.destinations.get(digest("friend@known.example")) * fading == pytest.approx(40, abs=0.1)


def test_relearning_by_band_gives_the_state_that_folding_gave() -> None:
    events = [call(minute, to=f"{minute % 7}@known.example", amount=minute) for minute in range(60)]
    events += [
        call(61, "unauthorized_access_attempt"),
        call(62, to="x@evil.example", url="https://e.example"),
    ]
    state = AgentState()
    bands = [fold(state, event, HOME).band for event in events]

    again = relearn(zip(events, bands, strict=True), context=HOME)

    assert {"low", "high"} <= set(bands)
    assert encode_state(again) == encode_state(state)


def test_relearning_teaches_what_was_dismissed() -> None:
    odd = call(50, "unauthorized_access_attempt")

    assert relearn([(odd, ORDINARY)]).learned == pytest.approx(1)
    assert relearn([(odd, "high")]).learned == 0
