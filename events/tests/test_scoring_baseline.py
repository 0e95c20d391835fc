"""What a tenant's agents have in common stands in for a young agent's habits, and only for its."""

import msgspec
import pytest

from events.risk.scoring.contract import Context, Event
from events.risk.scoring.model import fold, relearn, teach
from events.risk.scoring.state import (
    BASELINE_LAYOUT,
    AgentState,
    Baseline,
    StateUnreadable,
    decode_baseline,
    encode_baseline,
    encode_state,
    pool,
)
from events.risk.scoring.tables import digest
from events.tests.assessments import assess

NOON = 1_700_049_600.0
HOME = Context(home_domain="acme.example")
KNOWN = {"tool": "send_email", "to": "partner@known.example"}


DAY = 86_400.0


def make_baseline(events: int = 150) -> Baseline:
    """A tenant whose agents are known to have written to one partner."""
    baseline = Baseline()
    for minute in range(events):
        pool(baseline, Event("api_call", NOON + 60 * minute, KNOWN), trusted=True)
    return baseline


def young(state: AgentState | None = None, baseline: Baseline | None = None, **details: object) -> float:
    """The score of a send to what the tenant knows, or to what `details` say instead."""
    event = Event("api_call", NOON + 10_000, KNOWN | details)
    return assess(state or AgentState(), event, HOME, baseline).score


def test_what_the_tenant_knows_is_less_strange_to_a_young_agent() -> None:
    assert young(baseline=make_baseline()) < young()


def test_what_the_tenant_does_not_know_is_as_strange_as_without_it() -> None:
    assert young(baseline=make_baseline(), to="x@evil.example") == young(to="x@evil.example")


def test_events_learned_again_surprise_as_they_did_beside_the_tenants_habits() -> None:
    baseline, state = make_baseline(), AgentState()
    events = [Event("api_call", NOON + 10_000 + minute * 60, KNOWN) for minute in range(3)]
    known = [(event, fold(state, event, HOME, baseline).band) for event in events]

    assert encode_state(relearn(known, context=HOME, baseline=baseline)) == encode_state(state)
    assert encode_state(relearn(known, context=HOME)) != encode_state(state)


@pytest.mark.parametrize(("learned", "stays"), [(0.0, 0.1), (150.0, 0.55), (300.0, 1.0), (900.0, 1.0)])
def test_the_more_habits_an_agent_has_the_less_its_tenants_count(learned: float, stays: float) -> None:
    baseline = make_baseline()

    strange = baseline.strangeness(
        baseline.hosts, [digest("known.example")], at=NOON + 10_000, learned=learned
    )

    assert strange == pytest.approx(stays)


def test_a_name_is_the_tenants_when_another_agent_names_it_three_days_after_the_first_did() -> None:
    baseline, name = Baseline(), digest("partner@known.example")

    known = []
    for day, agent in (
        (0, "ann"),
        (1, "bob"),
        (2.9, "bob"),
        (3, "ann"),
        (9, "ann"),
        (9.1, "bob"),
        (9.2, "ann"),
    ):
        at = NOON + day * DAY
        pool(baseline, Event("api_call", at, KNOWN), agent=agent)
        known.append(baseline.strangeness(baseline.destinations, [name], at=at, learned=0.0) < 1)

    assert known == [False, False, False, False, False, True, True]


def test_an_attack_on_all_agents_of_a_tenant_at_once_stays_as_strange() -> None:
    baseline = make_baseline()
    attack = KNOWN | {"to": "x@evil.example"}
    alone = young(baseline=baseline, to=attack["to"])

    for minute in range(40):
        pool(baseline, Event("api_call", NOON + 60 * minute, attack), agent=f"agent{minute}")

    assert young(baseline=baseline, to=attack["to"]) == alone


def test_one_unknown_among_known_destinations_is_new() -> None:
    both = ["partner@known.example", "x@evil.example"]

    assert young(baseline=make_baseline(), to=both) == young(to=both)


def test_leaving_out_the_target_gains_nothing_beside_a_baseline() -> None:
    event = Event("api_call", NOON + 10_000, {"tool": "send_email"})

    assert assess(AgentState(), event, HOME, make_baseline()).score >= young(baseline=make_baseline())


@pytest.mark.parametrize(("events", "band"), [(0, "medium"), (50, "medium"), (150, "high")])
def test_habits_reach_high_for_a_young_agent_only_beside_a_settled_tenant(events: int, band: str) -> None:
    state = AgentState()
    for minute in range(25):
        teach(
            state, Event("transaction_initiated", NOON + minute * 60, {"tool": "pay", "to": "a", "amount": 9})
        )
    attack = Event(
        "transaction_anomaly", NOON + 1_600, {"tool": "new", "to": "x@evil.example", "amount_usd": 1e9}
    )

    assert assess(state, attack, HOME, make_baseline(events)).band == band


def test_a_baseline_survives_storage_and_bounds_what_it_holds() -> None:
    baseline = Baseline()
    for turn in range(3_000):
        details = {"tool": f"tool{turn}", "to": f"user{turn}@host{turn}.example"}
        pool(baseline, Event("api_call", NOON + 60 * turn, details), trusted=turn < 2_000)

    stored = encode_baseline(baseline)

    assert 32_000 < len(stored) <= 34_000
    assert encode_baseline(decode_baseline(stored)) == stored


def of_parts(*, surprises: int, names: int, weights: int) -> bytes:
    tables = [(bytes(names), bytes(weights))] * 4
    return msgspec.msgpack.encode((BASELINE_LAYOUT, 0.0, 0.0, bytes(surprises), *tables))


@pytest.mark.parametrize(
    "stored",
    [
        *(b"", b"junk", b"\x91\x63"),
        of_parts(surprises=152, names=8, weights=8),
        of_parts(surprises=160, names=16, weights=8),
        of_parts(surprises=160, names=12, weights=12),
    ],
)
def test_unreadable_baseline_says_so(stored: bytes) -> None:
    with pytest.raises(StateUnreadable):
        decode_baseline(stored)
