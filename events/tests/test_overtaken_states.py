"""States that other processes changed first: each event is learned once, whatever fails meanwhile."""

from collections.abc import Sequence

import pytest
from redis.exceptions import ConnectionError as Unreachable

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores import redis
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.risk import snapshots, state_cache
from events.risk.scoring.contract import Event
from events.risk.scoring.model import relearn
from events.risk.scoring.state import decode_state, encode_state
from events.risk.state_cache import StateUpdate
from events.tests.factories import make_event
from events.tests.states import lose, plant, recalled, stored, tripped_circuit
from tenancy.tests.factories import make_tenant

SAVE = state_cache.save


@pytest.fixture
def agent(committed: None) -> Agent:
    return make_certified_agent(make_tenant())


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> list[StateUpdate]:
    """What events taught that a process has yet to store: committed, and that is all."""
    kept: list[StateUpdate] = []
    monkeypatch.setattr(state_cache, "save", kept.extend)
    return kept


def leave_one_unsaved(agents: Sequence[Agent], late: list[StateUpdate]) -> None:
    """Save what each agent's first event taught, and not its second."""
    for one in agents:
        make_event(one, details={"tool": "a"})
    SAVE(late)
    late.clear()
    for one in agents:
        make_event(one, details={"tool": "b"})


def be_overtaken(agents: Sequence[Agent], late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch) -> None:
    """As `leave_one_unsaved()`; then another process saves each third event, and `save` saves again."""
    leave_one_unsaved(agents, late)
    monkeypatch.setattr(state_cache, "save", SAVE)
    for one in agents:
        make_event(one, details={"tool": "c"})


def test_impossible_state_of_another_process_is_emptied_and_costs_no_other_agent_its_state(
    agent: Agent, late: list[StateUpdate]
) -> None:
    agents = [agent, make_certified_agent(agent.tenant)]
    leave_one_unsaved(agents, late)
    for one in agents:
        redis.client().set(redis.key("risk", one.id), new_id().bytes + (stored(one) or b"")[16:])
    plant(agent, learned=-15.0, landmark=1e12)

    SAVE(late)

    assert [len(stored(one) or b"") > 16 for one in agents] == [False, True]
    assert [recalled(one).learned for one in agents] == [pytest.approx(2)] * 2


def test_event_in_flight_is_learned_once_where_a_rebuild_read_it(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_one_unsaved([agent], late)
    lose(agent)
    monkeypatch.setattr(state_cache, "save", SAVE)

    make_event(agent, details={"tool": "c"})
    SAVE(late)

    assert recalled(agent).learned == pytest.approx(3)


def test_event_in_flight_is_not_missed_where_redis_lost_what_others_stored(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_overtaken([agent], late, monkeypatch)
    lose(agent)

    SAVE(late)

    assert recalled(agent).learned == pytest.approx(3)


def test_event_that_was_overtaken_leaves_the_tag_where_a_snapshot_needs_it(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_overtaken([agent], late, monkeypatch)

    SAVE(late)

    snapshots.put(state_cache.stored([str(agent.id)]), now=now())
    lose(agent)
    assert recalled(agent).learned == pytest.approx(3)


def test_rebuild_that_began_before_an_event_was_committed_is_not_stored_over_it(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_event(agent, details={"tool": "a"})
    SAVE(late)
    first = late.pop()
    make_event(agent, details={"tool": "b"})
    event = Event("api_call", now().timestamp(), {"tool": "c"})
    assert first.packed is not None
    rebuilt_too_early = encode_state(relearn([(event, "low")], start=decode_state(first.packed)))
    name = new_id()
    slow = StateUpdate(
        str(agent.id),
        state_cache.ABSENT,
        rebuilt_too_early,
        [event],
        ["low"],
        [str(name)],
        name.bytes,
    )
    lose(agent)

    SAVE(late)
    SAVE([slow])

    assert recalled(agent).learned == pytest.approx(2)


def test_state_whose_answer_was_lost_is_learned_once(agent: Agent, late: list[StateUpdate]) -> None:
    make_event(agent, details={"tool": "a"})

    SAVE(late)
    SAVE(late)

    assert recalled(agent).learned == pytest.approx(1)


def test_state_that_was_overtaken_too_often_is_rebuilt(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_overtaken([agent], late, monkeypatch)
    monkeypatch.setattr(state_cache, "ATTEMPTS", 1)

    SAVE(late)

    assert len(stored(agent) or b"") == state_cache.TAG
    make_event(agent, details={"tool": "d"})
    assert recalled(agent).learned == pytest.approx(4)


@pytest.fixture
def overtaken(committed: None, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch) -> list[Agent]:
    """Three agents, whose second event is yet to be saved while another process has saved the third."""
    tenant = make_tenant()
    agents = [make_certified_agent(tenant) for _ in range(3)]
    be_overtaken(agents, late, monkeypatch)
    return agents


def test_more_overtaken_events_than_are_folded_at_once_are_folded_one_portion_after_the_other(
    overtaken: list[Agent], late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_cache, "MOST_REFOLDED", 2)

    SAVE(late)

    assert all(len(stored(one) or b"") > state_cache.TAG for one in overtaken)
    assert [recalled(one).learned for one in overtaken] == pytest.approx([3, 3, 3])


def test_redis_that_fails_between_portions_has_every_state_rebuilt(
    overtaken: list[Agent], late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_cache, "MOST_REFOLDED", 1)
    save, saved = state_cache._save, list[int]()

    def fail_in_the_second(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
        saved.append(len(updates))
        if saved.count(1) == 2:
            raise Unreachable
        return save(updates)

    with monkeypatch.context() as patch:
        patch.setattr(state_cache, "_circuit", redis.make_circuit())
        patch.setattr(state_cache, "_save", fail_in_the_second)
        SAVE(late)

    assert [recalled(one).learned for one in overtaken] == pytest.approx([3, 3, 3])


def test_failure_to_save_is_not_ended_by_a_state_that_was_loaded_before_it(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_one_unsaved([agent], late)
    make_event(agent, details={"tool": "c"})
    with monkeypatch.context() as patch:
        patch.setattr(state_cache, "_circuit", tripped_circuit())
        SAVE(late[1:])

    SAVE(late[:1])

    assert recalled(agent).learned == pytest.approx(3)


def test_batch_that_a_rebuild_read_is_learned_once(
    agent: Agent, late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = snapshots.MOST_IN_FLIGHT + 6
    event = EventInput(agent_id=str(agent.id), action_type="api_call", details={"tool": "a"})
    ingest_all([Submission(agent.tenant_id, event, now()) for _ in range(count)])
    lose(agent)
    monkeypatch.setattr(state_cache, "save", SAVE)
    make_event(agent, details={"tool": "b"})

    SAVE(late)

    assert recalled(agent).learned == pytest.approx(count + 1)


def test_folded_state_whose_answer_was_lost_is_learned_once(
    overtaken: list[Agent], late: list[StateUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    save, attempts = state_cache._save, list[int]()

    def lose_the_second_answer(updates: Sequence[StateUpdate]) -> list[StateUpdate]:
        attempts.append(len(updates))
        found = save(updates)
        return list(updates) if len(attempts) == 2 else found

    monkeypatch.setattr(state_cache, "_save", lose_the_second_answer)
    SAVE(late)

    assert attempts == [3, 3, 0, 0]
    assert [recalled(one).learned for one in overtaken] == pytest.approx([3, 3, 3])
