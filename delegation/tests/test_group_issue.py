"""Tokens that are asked for together share a commit, and nothing of each other's fate."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings as configured
from django.db.models import QuerySet

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services as certificates
from compliance.api.answers import Answer
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.serving import executors
from compliance.tenancy import recent_keys
from compliance.tenancy.models import Tenant
from compliance.tenancy.tests.factories import make_key, make_tenant
from compliance.tests.owner import end_sessions, execute_as_owner, locked_table
from compliance.tests.threads import until_somebody_waits_for_a_lock
from compliance.tests.web import Worker
from delegation import services
from delegation.jose import jws
from delegation.models import IssuedToken
from delegation.oauth.tests.oauth_clients import FORM, basic, id_of, with_delegation
from delegation.tests.factories import ACTOR, CHAIN, as_chain, make_token
from delegation.tests.holders import Holder

pytestmark = pytest.mark.usefixtures("committed")

TOKEN = "/oauth/token"
ROOT = CHAIN[:1]


class IssuingWorker(Worker):
    """A worker that is asked for tokens."""

    async def ask(self, path: str, body: Any, **headers: str) -> Answer:
        """Post JSON, or to the token endpoint a form."""
        text = body if isinstance(body, str) else urlencode(body) if path == TOKEN else json.dumps(body)
        raw = text.encode()
        kind = FORM if path == TOKEN else "application/json"
        said = {"host": "testserver", "content-type": kind, "content-length": str(len(raw)), **headers}
        return await self.exchange("POST", path, list(said.items()), raw)

    def ask_all(self, asked: Sequence[tuple[str, Any, dict[str, str]]]) -> list[Answer]:
        """All at once."""

        async def play() -> list[Answer]:
            return await asyncio.gather(*(self.ask(path, body, **headers) for path, body, headers in asked))

        found: list[Answer] = self.run(play())
        return found


@pytest.fixture
def tenant() -> Tenant:
    services.bootstrap(now=now())
    return make_tenant()


@pytest.fixture
def key(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The header with an API key, which a slow machine does not look up again."""
    monkeypatch.setattr(recent_keys, "FRESH_SECONDS", 60.0)
    return {"authorization": f"Bearer {make_key(tenant)}"}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[IssuingWorker]:
    """A worker in which a request that is repeated alone gets a thread on a slow machine too."""
    monkeypatch.setattr(executors, "WAIT_SECONDS", 60.0)
    with closing(IssuingWorker()) as found:
        yield found


def path_of(agent: Agent | Any) -> str:
    return f"/v1/agents/{getattr(agent, 'id', agent)}/delegation"


def body_of(answer: Answer) -> Any:
    return json.loads(answer.body)


def issued_by(agent: Agent) -> "QuerySet[IssuedToken]":
    return IssuedToken.objects.filter(agent_id=agent.id)


def audited_of(agent: Agent) -> "QuerySet[AuditEntry]":
    return AuditEntry.objects.about(agent.id).filter(event_type="delegation.issued")


def test_each_of_many_requests_at_once_gets_its_own_token(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str]
) -> None:
    agents = [make_agent(tenant) for _ in range(5)]
    bodies = [{"chain": [*ROOT, {"sub": f"one-{number}", "type": "agent"}]} for number in range(60)]

    answers = worker.ask_all([(path_of(agents[number % 5]), body, key) for number, body in enumerate(bodies)])

    assert {answer.status for answer in answers} == {200}
    found = [body_of(answer)["data"] for answer in answers]
    assert [one["principal"] for one in found] == [f"one-{number}" for number in range(60)]
    claims = [jws.parse(one["token"]).payload for one in found]
    assert [one["agent_id"] for one in claims] == [str(agents[number % 5].id) for number in range(60)]
    recorded = {row.id: row for agent in agents for row in issued_by(agent)}
    assert {str(token_id) for token_id in recorded} == {one["token_id"] for one in found}
    assert len({row.status_index for row in recorded.values()}) == 60
    assert sum(audited_of(agent).count() for agent in agents) == 60
    assert worker.seen_by_view < 60


def test_refused_neighbours_leave_the_others_alone(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str]
) -> None:
    sound, stopped = make_agent(tenant, metadata={"permitted_actions": ["read"]}), make_agent(tenant)
    foreign = make_agent(make_tenant())
    parent = make_token(stopped, chain=as_chain(ROOT))
    suspend(stopped)
    asked: list[tuple[str, Any, int]] = [
        (path_of(sound), {"chain": CHAIN, "scope": "read"}, 200),
        (path_of(stopped), {"chain": CHAIN}, 422),
        (path_of(foreign), {"chain": CHAIN}, 404),
        (path_of(new_id()), {"chain": CHAIN}, 404),
        (path_of("nonsense"), {"chain": CHAIN}, 404),
        (path_of(sound), {"chain": CHAIN, "scope": "pay"}, 422),
        (path_of(sound), {"chain": CHAIN, "scope": "read", "parent_token": parent.token}, 422),
        (path_of(sound), {"chain": CHAIN, "parent_token": "x"}, 400),
        (path_of(sound), {"chain": []}, 400),
        (path_of(sound), "{", 400),
    ] * 4

    answers = worker.ask_all([(path, body, key) for path, body, _ in asked])

    assert [answer.status for answer in answers] == [status for *_, status in asked]
    assert (issued_by(sound).count(), audited_of(sound).count()) == (4, 4)
    assert not issued_by(foreign).exists()


def test_exchanges_of_a_group_are_each_answered_by_their_own(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str]
) -> None:
    agent, holder = make_agent(tenant), Holder()
    parent = make_token(make_agent(tenant), chain=as_chain(ROOT), scope="read").token
    bound = make_token(make_agent(tenant), chain=as_chain(ROOT), scope="read", bound_to=holder.jkt).token
    stopped = make_agent(tenant)
    gone = make_token(stopped, chain=as_chain(ROOT)).token
    suspend(stopped)
    secret = key["authorization"].removeprefix("Bearer ")
    by_basic = {"authorization": basic(id_of(secret), secret)}
    used, good = (holder.proof(uri=f"{configured.BASE_URL}{TOKEN}") for _ in range(2))
    sound = with_delegation(parent, agent)
    asked: list[tuple[Any, dict[str, str], int, str]] = [
        (sound, key, 200, "Bearer"),
        (sound, by_basic, 200, "Bearer"),
        (with_delegation(bound, agent), {**key, "dpop": good}, 200, "DPoP"),
        (with_delegation(bound, agent), key, 400, "invalid_dpop_proof"),
        (sound, {**key, "dpop": "nonsense"}, 400, "invalid_dpop_proof"),
        (with_delegation(parent, agent, scope="pay"), key, 400, "invalid_scope"),
        (with_delegation(gone, agent), key, 400, "invalid_request"),
        (with_delegation(parent, stopped), key, 400, "invalid_request"),
        (with_delegation(parent, agent, grant_type="password"), key, 400, "unsupported_grant_type"),
        (with_delegation(parent, make_agent(make_tenant())), key, 400, "invalid_request"),
    ]
    twice = [(TOKEN, sound, {**key, "dpop": used})] * 2

    answers = worker.ask_all([*((TOKEN, body, headers) for body, headers, *_ in asked), *twice])

    found = [(one.status, body_of(one).get("token_type") or body_of(one)["error"]) for one in answers]
    assert found[:-2] == [(status, said) for *_, status, said in asked]
    assert sorted(found[-2:]) == [(200, "DPoP"), (400, "invalid_dpop_proof")]
    assert (issued_by(agent).count(), audited_of(agent).count()) == (4, 4)
    assert worker.seen_by_view <= 1


def test_group_whose_session_dies_is_503_and_stores_nothing(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str]
) -> None:
    agents = [make_agent(tenant) for _ in range(4)]
    parent = make_token(make_agent(tenant), chain=as_chain(ROOT)).token
    asked = [(path_of(agent), {"chain": CHAIN}, key) for agent in agents]
    asked += [(TOKEN, with_delegation(parent, agent), key) for agent in agents]
    assert {answer.status for answer in worker.ask_all(asked)} == {200}

    async def begin() -> list[asyncio.Task[Answer]]:
        tasks = [asyncio.ensure_future(worker.ask(path, body, **more)) for path, body, more in asked]
        await until_somebody_waits_for_a_lock()
        await asyncio.sleep(0.3)
        return tasks

    async def finish(tasks: list[asyncio.Task[Answer]]) -> list[Answer]:
        return await asyncio.gather(*tasks)

    # Tokens can be read, so that all of them are signed, but not written.
    with locked_table("delegation_issuedtoken IN EXCLUSIVE MODE"):
        tasks = worker.run(begin())
        end_sessions()
        down = worker.run(finish(tasks))
    up = worker.ask_all(asked)

    assert {answer.status for answer in down} == {503}
    assert all("retry-after" in {name.lower() for name, _ in answer.headers} for answer in down)
    assert {answer.status for answer in up} == {200}
    for agent in agents:
        assert (issued_by(agent).count(), audited_of(agent).count()) == (4, 4)


@pytest.fixture
def refused_principal() -> Iterator[str]:
    """The name of a principal whose rows PostgreSQL refuses."""
    execute_as_owner(
        "CREATE FUNCTION refuse_token() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'refused' USING ERRCODE = 'invalid_parameter_value'; END $$",
        "CREATE TRIGGER refuse_token BEFORE INSERT ON delegation_issuedtoken FOR EACH ROW"
        " WHEN (NEW.principal = 'refused') EXECUTE FUNCTION refuse_token()",
    )
    yield "refused"
    execute_as_owner("DROP TRIGGER refuse_token ON delegation_issuedtoken", "DROP FUNCTION refuse_token()")


def test_row_that_postgresql_refuses_sinks_no_neighbour(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str], refused_principal: str
) -> None:
    agents = [make_agent(tenant) for _ in range(3)]
    asked = [(path_of(agents[number % 3]), {"chain": CHAIN}, key) for number in range(12)]
    asked[5] = (path_of(agents[2]), {"chain": [{"sub": refused_principal, "type": "agent"}]}, key)

    statuses = [answer.status for answer in worker.ask_all(asked)]

    assert statuses.pop(5) == 500
    assert statuses == [200] * 11
    assert [issued_by(agent).count() for agent in agents] == [4, 4, 3]


def test_locked_agent_holds_up_no_neighbour_and_gets_no_token_once_stopped(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str]
) -> None:
    free, held = make_agent(tenant), make_agent(tenant)
    bodies = [(path_of(agent), {"chain": CHAIN}, key) for agent in (held, free, held, free)]

    async def begin() -> list[asyncio.Task[Answer]]:
        tasks = [asyncio.ensure_future(worker.ask(path, body, **more)) for path, body, more in bodies]
        await asyncio.wait_for(asyncio.gather(tasks[1], tasks[3]), 60)
        return tasks

    async def finish(tasks: list[asyncio.Task[Answer]]) -> list[Answer]:
        return await asyncio.gather(*tasks)

    with environments.atomic():
        suspend(held)
        tasks = worker.run(begin())
        waiting = [task for task in tasks if not task.done()]
    answers = worker.run(finish(tasks))

    assert len(waiting) == 2
    assert [answer.status for answer in answers] == [422, 200, 422, 200]
    assert (issued_by(held).count(), audited_of(held).count()) == (0, 0)


def test_repeated_request_with_its_key_gets_the_same_token(
    worker: IssuingWorker, tenant: Tenant, key: dict[str, str]
) -> None:
    agent, more = make_agent(tenant), {**key, "idempotency-key": "once"}
    asked = (path_of(agent), {"chain": CHAIN}, more)

    answers = [worker.ask_all([asked])[0] for _ in range(2)]
    answers += worker.ask_all([asked] * 4)

    assert {answer.status for answer in answers} == {200}
    assert len({body_of(answer)["data"]["token"] for answer in answers}) == 1
    assert (issued_by(agent).count(), audited_of(agent).count()) == (1, 1)


def suspend(agent: Agent) -> None:
    certificates.suspend_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason="test", actor=ACTOR, now=now()
    )
