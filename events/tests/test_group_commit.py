"""Events that arrive together share a commit, and nothing of each other's fate."""

import asyncio

import pytest
from django.db import connection

from agents.models import Agent, AgentStatus
from certificates.tests.factories import make_certified_agent
from compliance.api.answers import Answer
from compliance.core.identifiers import new_id
from compliance.tests.owner import end_sessions, locked_table
from compliance.tests.threads import until_somebody_waits_for_a_lock
from events.endpoints import RECORD_EVENT
from events.models import BehaviorEvent
from events.tests.conftest import World
from events.tests.web import Web, assert_unavailable, body_of, report, warm

LARGEST_GROUP, LONGEST_QUEUE = RECORD_EVENT.largest_group, RECORD_EVENT.longest_queue

pytestmark = pytest.mark.usefixtures("committed")


def agents_of(world: World, count: int) -> list[Agent]:
    return [make_certified_agent(world.tenant) for _ in range(count)]


def test_each_of_many_events_at_once_gets_its_own_answer(
    world: World, web: Web, key: str, patient: None
) -> None:
    agents = agents_of(world, 8)
    warm(web, key, agents)
    bodies = [report(agents[number % 8], details={"number": number}) for number in range(240)]

    answers = web.post_all(key, bodies)

    assert {answer.status for answer in answers} == {201}
    found = [body_of(answer)["data"] for answer in answers]
    assert [data["details"]["number"] for data in found] == list(range(240))
    assert [data["agent_id"] for data in found] == [body["agent_id"] for body in bodies]
    ids = {data["id"] for data in found}
    assert len(ids) == 240
    assert world.events().filter(id__in=ids).count() == 240
    assert web.seen_by_view < 24


def test_refused_neighbours_leave_the_others_alone(world: World, web: Web, key: str) -> None:
    agents = agents_of(world, 3)
    warm(web, key, agents)
    Agent.objects.filter(id=agents[0].id).update(status=AgentStatus.SUSPENDED)
    unknown = world.report() | {"agent_id": str(new_id())}
    bodies = [body for _ in range(20) for body in (report(agents[0]), unknown, report(agents[1]), b"{")]

    statuses = [answer.status for answer in web.post_all(key, bodies)]

    assert statuses == [422, 404, 201, 400] * 20


def test_client_that_goes_away_leaves_its_neighbours_alone(world: World, web: Web, key: str) -> None:
    agents = agents_of(world, 4)
    warm(web, key, agents)

    async def play() -> list[Answer | BaseException]:
        tasks = [asyncio.ensure_future(web.send(key, report(agents[n % 4]))) for n in range(40)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = web.run(play())

    assert all(isinstance(gone, asyncio.CancelledError) for gone in found[::2])
    assert {answer.status for answer in found[1::2]} == {201}
    assert web.post(key, report(agents[0])).status == 201


def test_session_that_died_between_groups_is_replaced_and_nobody_notices(
    world: World, web: Web, key: str
) -> None:
    agents = agents_of(world, 4)
    warm(web, key, agents)
    for _ in range(3):
        end_sessions()

        answers = web.post_all(key, [report(agent) for agent in agents])

        assert {answer.status for answer in answers} == {201}


def test_group_whose_session_dies_is_503_and_the_next_is_stored(world: World, web: Web, key: str) -> None:
    agents = agents_of(world, 4)
    warm(web, key, agents)
    before = BehaviorEvent.objects.for_tenant(world.tenant.id).count()

    async def begin() -> list[asyncio.Task[Answer]]:
        tasks = [asyncio.ensure_future(web.send(key, report(agent))) for agent in agents]
        await until_somebody_waits_for_a_lock()
        return tasks

    async def finish(tasks: list[asyncio.Task[Answer]]) -> list[Answer]:
        return await asyncio.gather(*tasks)

    with locked_table("events_behaviorevent IN ACCESS EXCLUSIVE MODE"):
        tasks = web.run(begin())
        end_sessions()
    down = web.run(finish(tasks))
    up = web.post_all(key, [report(agent) for agent in agents])

    refused = [answer for answer in down if answer.status != 201]
    assert refused
    for answer in refused:
        assert_unavailable(answer)
    assert {answer.status for answer in up} == {201}
    stored = BehaviorEvent.objects.for_tenant(world.tenant.id).count() - before
    assert stored == len(down) - len(refused) + len(up)


def test_row_that_postgresql_refuses_sinks_no_neighbour(
    world: World, web: Web, key: str, patient: None, refused_session: str
) -> None:
    agents = agents_of(world, 5)
    warm(web, key, agents)
    bodies = [report(agents[number % 4]) for number in range(LARGEST_GROUP - 1)]
    bodies.insert(50, report(agents[4], session_id=refused_session))

    answers = web.post_all(key, bodies)

    statuses = [answer.status for answer in answers]
    assert statuses.pop(50) == 400
    assert set(statuses) == {201}
    ids = [body_of(answer)["data"]["id"] for answer in answers if answer.status == 201]
    assert world.events().filter(id__in=ids).count() == LARGEST_GROUP - 1


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "k"}], ids=["plain", "idempotent"])
def test_refused_row_fails_alone_in_a_batch(
    world: World, refused_session: str, headers: dict[str, str]
) -> None:
    agents = agents_of(world, 5)
    events = [report(agents[number % 4]) for number in range(8)]
    events.insert(3, report(agents[4], session_id=refused_session))

    answer = world.api.post("/v1/events/batch", {"events": events}, **headers)

    assert [result["status"] for result in answer.json()["data"]] == [201, 201, 201, 400, *[201] * 5]
    assert world.events().filter(agent__in=agents).count() == 8


def test_rows_stored_before_postgresql_died_are_told(
    world: World, refused_session: str, backend_dies_at: str
) -> None:
    """The refused row splits the group in halves; the connection dies with the second."""
    agents = sorted(agents_of(world, 4), key=lambda agent: str(agent.id))
    sessions = [refused_session, "first", "second", backend_dies_at]
    events = [report(agent, session_id=name) for agent, name in zip(agents, sessions, strict=True)]

    answer = world.api.post("/v1/events/batch", {"events": events})

    connection.close()
    refused, *others = [result["status"] for result in answer.json()["data"]]
    assert refused in (400, 503)
    assert others == [201, 503, 503]
    assert [event.session_id for event in world.events().filter(agent__in=agents)] == ["first"]


def test_more_than_the_queue_holds_is_turned_away_at_once(
    world: World, web: Web, key: str, patient: None
) -> None:
    count = LONGEST_QUEUE + LARGEST_GROUP + 50
    warm(web, key, [world.agent])
    before = world.events().count()

    turned_away, answers = web.crowd(
        (web.send(key, world.report()) for _ in range(count)),
        held_up=locked_table("events_behaviorevent IN EXCLUSIVE MODE"),
    )

    assert 50 <= len(turned_away) <= 50 + LARGEST_GROUP
    for answer in turned_away:
        assert_unavailable(answer)
    stored = [answer for answer in answers if answer.status == 201]
    assert len(stored) == count - len(turned_away)
    assert world.events().count() - before == len(stored)
