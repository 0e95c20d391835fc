"""What a tenant's agents have in common stands in for a young agent's habits, and only for its."""

import pytest

from events.scoring import (
    AgentState,
    Baseline,
    Context,
    Event,
    StateUnreadable,
    assess,
    decode_baseline,
    encode_baseline,
    pool,
    teach,
)

NOON = 1_700_049_600.0
HOME = Context(home_domain="acme.example")
KNOWN = {"tool": "send_email", "to": "partner@known.example"}


def make_baseline(events: int = 150) -> Baseline:
    baseline = Baseline()
    for minute in range(events):
        pool(baseline, Event("api_call", NOON + 60 * minute, KNOWN))
    return baseline


def young(state: AgentState | None = None, baseline: Baseline | None = None, **details: object) -> float:
    """The score of a send to what the tenant knows, or to what `details` say instead."""
    event = Event("api_call", NOON + 10_000, KNOWN | details)
    return assess(state or AgentState(), event, HOME, baseline).score


def test_what_the_tenant_knows_is_less_strange_to_a_young_agent() -> None:
    assert young(baseline=make_baseline()) < young()


def test_what_the_tenant_does_not_know_is_as_strange_as_without_it() -> None:
    assert young(baseline=make_baseline(), to="x@evil.example") == young(to="x@evil.example")


def test_a_grown_agent_is_judged_by_its_own_habits() -> None:
    state = AgentState()
    for minute in range(2_000):
        teach(state, Event("api_call", NOON + minute, {"tool": "send_email", "to": "a@acme.example"}))

    alone, together = young(state), young(state, make_baseline())

    assert together == pytest.approx(alone, abs=0.02)


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
        pool(baseline, Event("api_call", NOON + 43_200 * turn, details))

    stored = encode_baseline(baseline)

    assert len(stored) <= 32_768
    assert encode_baseline(decode_baseline(stored)) == stored


@pytest.mark.parametrize("stored", [b"", b"junk", b"\x91\x63"])
def test_unreadable_baseline_says_so(stored: bytes) -> None:
    with pytest.raises(StateUnreadable):
        decode_baseline(stored)
