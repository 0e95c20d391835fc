"""Replays: past revocations are met again, and each candidate's stops stand beside verdicts."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test.utils import override_settings

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from events.models import BehaviorEvent, ReviewVerdict
from events.risk.evaluation import replay
from events.risk.evaluation.policy import candidate_of
from events.risk.evaluation.replay import Replay
from events.tests.conftest import World
from events.tests.factories import judge, make_event, store_event
from events.tests.simulated import (
    LIVE,
    fate_of,
    high_events,
    minutes,
    order_for,
    reinstated,
    simulated,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


def test_every_past_revocation_is_reproduced(world: World) -> None:
    high_events(world.agent, 0, 10, 14)
    again = reinstated(world.agent, minutes(20))
    high_events(again, 21, 30, 40, 44)
    other = make_certified_agent(world.tenant)
    high_events(other, 0, 1)

    found = simulated(world.tenant)

    assert (found.recorded, found.reproduced, found.not_reproduced, found.unrecorded) == (2, 2, [], 0)
    assert [(one.live and one.live.life, one.stopped_at) for one in found.agents] == [
        (0, minutes(14)),
        (1, minutes(44)),
    ]
    assert {one.fate for one in found.agents} == {"same"}


def test_a_stop_says_why(world: World) -> None:
    events = high_events(world.agent, 0, 10, 14)

    live = fate_of(simulated(world.tenant), world.agent).live

    assert live is not None
    assert [(str(strike.event_id), strike.reasons) for strike in live.strikes] == [
        (event.id, ["reported_unauthorized"]) for event in events
    ]


def test_a_stricter_candidate_stops_earlier_and_a_laxer_one_misses(world: World) -> None:
    judge(high_events(world.agent, 0, 10, 14)[0], ReviewVerdict.CONFIRMED)

    strict, lax = (simulated(world.tenant, {"strikes": strikes}) for strikes in (2, 4))

    earlier, missed = fate_of(strict, world.agent), fate_of(lax, world.agent)
    assert (earlier.fate, earlier.verdict, earlier.earlier_seconds) == ("earlier", "confirmed", 240.0)
    assert (earlier.confirmed, earlier.first_confirmed_at) == (1, minutes(0))
    assert (missed.fate, missed.candidate, missed.stopped_at) == ("missed", None, minutes(14))
    assert strict.counts["earlier"] == {"confirmed": 1, "dismissed": 0, "unreviewed": 0}
    assert lax.counts["missed"]["confirmed"] == 1
    assert lax.reproduced == strict.reproduced == 1


def test_a_wider_window_stops_agents_that_the_live_one_lets_go(world: World) -> None:
    dismissed, unreviewed = world.agent, make_certified_agent(world.tenant)
    for event in high_events(dismissed, 0, 20, 40):
        judge(event, ReviewVerdict.DISMISSED)
    high_events(unreviewed, 0, 20, 40)

    found = simulated(world.tenant, {"window_minutes": 40})

    assert fate_of(found, dismissed).verdict == "dismissed"
    assert found.counts["new"] == {"confirmed": 0, "dismissed": 1, "unreviewed": 1}
    assert (found.live_stops, found.candidate_stops) == (0, 2)
    assert simulated(world.tenant, {"window_minutes": 39.9}).candidate_stops == 0


def test_a_lower_threshold_counts_stored_scores(world: World) -> None:
    for minute in range(3):
        store_event(world.agent, 0.6, minutes(minute))

    assert simulated(world.tenant, {"threshold": 0.6}).candidate_stops == 1
    assert simulated(world.tenant, {"threshold": 0.61}).candidate_stops == 0


def test_a_confirmed_attack_that_nobody_stops_is_told(world: World) -> None:
    judge(store_event(world.agent, 0.5, minutes(0)), ReviewVerdict.CONFIRMED)

    found = simulated(world.tenant)

    assert fate_of(found, world.agent).fate == "neither"
    assert found.counts["neither"]["confirmed"] == 1


def test_a_stopped_agent_is_stopped_once_in_a_life(world: World) -> None:
    high_events(world.agent, 0, 10, 14)

    candidate = simulated(world.tenant, {"strikes": 1})

    assert candidate.candidate_stops == 1
    assert fate_of(candidate, world.agent).earlier_seconds == 14 * 60


def test_what_is_not_reproduced_has_its_reason(world: World) -> None:
    high_events(world.agent, 0, 20, 40)
    with override_settings(HIGH_RISK_WINDOW=timedelta(minutes=30)):
        other = make_certified_agent(world.tenant)
        high_events(other, 0, 10, 20)

    found = simulated(world.tenant)

    assert (found.recorded, found.reproduced) == (1, 0)
    assert "do not reach the present threshold" in found.not_reproduced[0].reason
    assert "30 minutes" in found.not_reproduced[0].reason


COPIED = ("tenant_id", "event_type", "actor_type", "actor_kind", "actor_id")


def test_an_entry_without_a_halt_is_no_revocation(world: World) -> None:
    high_events(world.agent, 0, 10, 14)
    (entry,) = AuditEntry.objects.for_tenant(world.tenant.id).of_type("agent.high_risk")
    other = make_certified_agent(world.tenant)
    AuditEntry.objects.create(
        **{name: getattr(entry, name) for name in COPIED},
        affected_id=str(other.id),
        metadata=entry.metadata,
        created_at=entry.created_at,
    )

    assert simulated(world.tenant).recorded == 1


def test_a_revocation_after_others_were_let_pass_is_reproduced(world: World) -> None:
    """As of an agent that was only observed for a while."""
    for minute in range(4):
        store_event(world.agent, 0.9, minutes(minute))
    high_events(world.agent, 10)

    found = simulated(world.tenant)

    assert (found.recorded, found.reproduced) == (1, 1)
    assert fate_of(found, world.agent).live.at == minutes(2)  # type: ignore[union-attr]


def test_a_period_leaves_other_stops_out_but_knows_the_strikes_before(world: World) -> None:
    high_events(world.agent, 0, 10, 14)
    other = make_certified_agent(world.tenant)
    high_events(other, 60, 61, 62)

    late = simulated(world.tenant, since=minutes(12))
    later = simulated(world.tenant, since=minutes(61), until=minutes(100))
    early = simulated(world.tenant, until=minutes(50))

    assert (late.recorded, late.reproduced) == (2, 2)
    assert (later.recorded, later.reproduced, later.live_stops) == (1, 1, 1)
    assert (early.recorded, early.reproduced, early.live_stops) == (1, 1, 1)


def test_an_empty_period_is_refused(world: World) -> None:
    with pytest.raises(Invalid, match="period"):
        order_for(world.tenant, since=minutes(10), until=minutes(10))


def test_other_tenants_and_the_other_environment_do_not_exist(world: World) -> None:
    rival = make_certified_agent(make_tenant("Rival"))
    high_events(rival, 0, 1, 2)
    with environments.use(Environment.TEST):
        high_events(make_certified_agent(Tenant.objects.get(id=world.tenant.id)), 0, 1, 2)

    found = simulated(world.tenant, {"strikes": 1})

    assert (found.events, found.recorded, found.agents) == (0, 0, [])


@pytest.mark.parametrize("changes", [{"strikes": 2}, {"strikes": 2, "rescore": True}])
def test_a_replay_from_checkpoints_ends_like_one_in_a_single_run(
    world: World, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.risk.evaluation.stored.CHUNK", 3)
    monkeypatch.setattr("events.risk.evaluation.stored.CHUNK_WITH_DETAILS", 3)
    agents = [world.agent, make_certified_agent(world.tenant)]
    for number in range(40):
        details = {"tool": f"t{number % 3}", "to": f"{number % 5}@known.example", "amount_usd": number}
        make_event(agents[number % 2], details=details, received_at=minutes(number * 7))
    high_events(agents[0], 300, 310, 312)
    order = order_for(world.tenant, changes)
    whole, parts = Replay(order), Replay(order)
    while not whole.run(most=1_000):
        pass

    steps = 1
    while not parts.run(most=1):
        parts = replay.resumed(order, parts.packed())
        steps += 1

    assert parts.packed() == whole.packed()
    assert steps == -(-whole.reached.events // 3) + 1


def test_a_checkpoint_of_another_order_begins_again(world: World) -> None:
    high_events(world.agent, 0)
    whole = Replay(order_for(world.tenant, {"strikes": 2}))
    whole.run(most=1)

    for data, strikes, events in (
        (whole.packed(), 2, 1),
        (whole.packed(), 4, 0),
        (whole.packed()[:20], 2, 0),
    ):
        order = msgspec.structs.replace(whole.order, candidate=candidate_of({**LIVE, "strikes": strikes}))
        assert replay.resumed(order, data).reached.events == events


def test_progress_goes_from_nothing_to_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("events.risk.evaluation.stored.CHUNK", 2)
    high_events(world.agent, 0, 20, 40, 60, 80)
    under_way = Replay(order_for(world.tenant, until=minutes(100)))
    seen = [under_way.progress]

    while not under_way.run(most=1):
        seen.append(under_way.progress)

    assert seen == sorted(seen)
    assert seen[0] == 0.0
    assert seen[1] == pytest.approx(0.2)


def test_a_replay_works_in_a_transaction_that_may_only_read(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    judge(high_events(agent, 0, 10, 14)[0], ReviewVerdict.CONFIRMED)
    changes = {"rescore": True, "weights": {"BURST": 3}, "scope_rule": False}
    before = list(BehaviorEvent.objects.of_agent(agent.id).order_by("id").values())

    with environments.snapshot(timeout_seconds=60):
        found = simulated(agent.tenant, changes)

    assert found.reproduced == 1
    assert list(BehaviorEvent.objects.of_agent(agent.id).order_by("id").values()) == before
    assert Agent.objects.get(id=agent.id).status == AgentStatus.SUSPENDED
