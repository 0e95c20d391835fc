"""The fast path: verification and recording as the views do it, in groups, and by keys it knows."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from threading import current_thread
from typing import Any

import orjson
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from pytest_django.fixtures import Settings

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.pki.serials import format_serial, new_serial
from certificates.public import verification
from certificates.public.verification import Verification
from certificates.tests.factories import (
    make_certificate,
    make_certified_agent,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.api import unauthenticated
from compliance.api.answers import Answer
from compliance.api.gate import security_headers
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.owner import end_sessions, locked_table
from compliance.tests.threads import until_somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from compliance.tests.web import Worker, shape
from events.ingest import standing
from events.ingest.event_input import EventInput
from events.ingest.ingestion import DeferredEvent, Submission, ingest_deferred
from events.models import BehaviorEvent
from events.tests.conftest import World
from events.tests.web import (
    PATH,
    Web,
    assert_unavailable,
    body_of,
    headers_of,
    key_id,
    report,
    seconds_let_in,
    warm,
)
from tenancy import keys, recent_keys, services
from tenancy.models import ApiKey, Tenant
from tenancy.tests.factories import make_key, make_tenant

pytestmark = pytest.mark.usefixtures("committed")

CHANGING = {"x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}
UNKNOWN = format_serial(new_serial(Environment.LIVE))
HIGH = "unauthorized_access_attempt"
LIMIT = 3


class Entrance(Web):
    """A worker that is sent events and asked to verify."""

    async def ask(self, serial: str, *more: tuple[str, str]) -> Answer:
        return await self.exchange("GET", f"/v1/verify/{serial}", [("host", "testserver"), *more])

    def verify(self, serial: str, *more: tuple[str, str]) -> Answer:
        answer: Answer = self.run(self.ask(serial, *more))
        return answer

    def verify_all(self, serials: Collection[str], *more: tuple[str, str]) -> list[Answer]:
        async def play() -> list[Answer]:
            return await asyncio.gather(*(self.ask(serial, *more) for serial in serials))

        found: list[Answer] = self.run(play())
        return found


@pytest.fixture
def web() -> Iterator[Entrance]:
    with closing(Entrance()) as server:
        yield server


@pytest.fixture
def plain() -> Iterator[Entrance]:
    """The same without the fast path."""
    with closing(Entrance(with_fast_path=False)) as server:
        yield server


@pytest.fixture
def tenant(world: World) -> Tenant:
    return world.tenant


@pytest.fixture
def certificate(tenant: Tenant) -> Certificate:
    actions = {"permitted_actions": ["read", "träde"]}
    return make_certificate(make_agent(tenant, model="gpt-5", version="2", metadata=actions))


@pytest.fixture
def unlimited(settings: Settings) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "verify": 100_000}


def _as_it_is(certificate: Certificate) -> None:
    Agent.objects.filter(id=certificate.agent_id).update(risk_score=0.8500000001)


def _revoke(certificate: Certificate) -> None:
    revoke_certificate(certificate, reason='superseded: "new"\u2028')


def _let_expire(certificate: Certificate) -> None:
    ended = now() - timedelta(microseconds=1)
    Certificate.objects.filter(id=certificate.id).update(
        expires_at=ended, issued_at=ended - timedelta(days=1)
    )


def _suspend(certificate: Certificate) -> None:
    suspend_agent(certificate.agent)


def _suspend_and_reinstate(certificate: Certificate) -> None:
    suspend_agent(certificate.agent)
    reinstate_agent(certificate.agent)


def assert_the_same(web: Entrance, plain: Entrance, serial: str, *more: tuple[str, str]) -> Answer:
    """The answer of both, one of which the view gave."""
    before = web.seen_by_view

    quick, slow = web.verify(serial, *more), plain.verify(serial, *more)

    assert web.seen_by_view == before
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    assert quick.body == slow.body
    return quick


@pytest.mark.parametrize("change", [_as_it_is, _revoke, _let_expire, _suspend, _suspend_and_reinstate])
def test_answer_is_the_views_byte_for_byte(
    web: Entrance, plain: Entrance, certificate: Certificate, change: Callable[[Certificate], None]
) -> None:
    change(certificate)

    answer = assert_the_same(web, plain, certificate.serial_number)

    assert answer.status == 200
    assert (web.seen_by_view, plain.seen_by_view) == (0, 1)
    assert ("cache-control", "no-store") in answer.headers


@pytest.fixture
def security_for_a_minute(settings: Settings) -> Iterator[None]:
    """A minute of strict transport security in headers made anew."""
    settings.SECURE_HSTS_SECONDS = 60
    security_headers.cache_clear()
    yield
    security_headers.cache_clear()


@pytest.mark.parametrize("said", ["https", "https, http", "http", ""])
@pytest.mark.usefixtures("security_for_a_minute")
def test_transport_security_is_told_to_clients_of_https(web: Entrance, settings: Settings, said: str) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    # Django's middleware reads its settings once.
    plain = Entrance(with_fast_path=False, views=WSGIHandler())

    answer = assert_the_same(web, plain, UNKNOWN, ("x-forwarded-proto", said))

    plain.close()
    assert ("strict-transport-security" in dict(answer.headers)) == said.startswith("https")


def test_revocation_shows_on_the_next_call(web: Entrance, certificate: Certificate) -> None:
    before = orjson.loads(web.verify(certificate.serial_number).body)["data"]

    revoke_certificate(certificate)
    Agent.objects.filter(id=certificate.agent_id).update(risk_score=0.9)

    after = orjson.loads(web.verify(certificate.serial_number).body)["data"]
    assert (before["status"], after["status"]) == ("active", "revoked")
    assert (after["risk_score"], after["risk_band"]) == (0.9, "high")
    assert web.seen_by_view == 0


def test_those_who_wait_together_share_a_read_and_each_gets_its_own_answer(
    web: Entrance, tenant: Tenant, unlimited: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    serials = [make_certificate(make_agent(tenant)).serial_number for _ in range(3)]
    reads: list[int] = []
    verifications = verification.verifications

    def counted(rows: list[Any], *, environment: Environment, now: datetime) -> dict[int, Verification]:
        reads.append(len(rows))
        return verifications(rows, environment=environment, now=now)

    monkeypatch.setattr(verification, "verifications", counted)

    answers = web.verify_all([*serials, UNKNOWN] * 50)

    assert [answer.status for answer in answers] == [200, 200, 200, 404] * 50
    found = [orjson.loads(answer.body)["data"]["serial_number"] for answer in answers if answer.status == 200]
    assert found == serials * 50
    assert len(reads) <= 20


def test_certificate_that_cannot_be_shown_sinks_no_neighbour(web: Entrance, tenant: Tenant) -> None:
    sound, broken = (make_certificate(make_agent(tenant)) for _ in range(2))
    Certificate.objects.filter(id=broken.id).update(claims={})

    statuses = [answer.status for answer in web.verify_all([sound.serial_number, broken.serial_number] * 3)]

    assert statuses == [200, 500] * 3


def test_absent_database_is_503_as_the_view_says_it_and_heals(
    web: Entrance, plain: Entrance, certificate: Certificate
) -> None:
    assert web.verify(certificate.serial_number).status == 200

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.settings["default"], "PORT", 1)
        end_sessions()
        down = assert_the_same(web, plain, certificate.serial_number)
    up = web.verify(certificate.serial_number)

    headers = {name.lower(): value for name, value in down.headers}
    assert (down.status, headers["retry-after"], headers["cache-control"]) == (503, "1", "no-store")
    assert "x-ratelimit-limit" in headers
    assert (up.status, web.seen_by_view) == (200, 0)


# --- Groups of events


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


# --- Events that leave their group


@contextmanager
def locked(agent: Agent) -> Iterator[None]:
    """The agent's row, locked by another transaction."""
    with environments.atomic():
        Agent.objects.for_tenant(agent.tenant_id).select_for_update().get(id=agent.id)
        yield


def test_locked_agent_of_one_tenant_holds_up_no_other(world: World, web: Web, key: str) -> None:
    stranger_tenant = make_tenant("Other")
    stranger, stranger_key = make_certified_agent(stranger_tenant), str(make_key(stranger_tenant))
    warm(web, key, [world.agent])
    warm(web, stranger_key, [stranger])

    async def play() -> list[Answer]:
        blocked = [
            asyncio.ensure_future(web.send(key, report(world.agent, action_type=HIGH))) for _ in range(9)
        ]
        await asyncio.sleep(0.2)
        medium = web.send(key, report(world.agent, action_type="authentication_failure"))
        free = await asyncio.gather(
            medium, *(web.send(stranger_key, report(stranger)) for _ in range(3)),
            web.send(stranger_key, report(stranger, action_type=HIGH)),
        )  # fmt: skip
        for task in blocked:
            task.cancel()
        return list(free)

    with locked(world.agent):
        answers = web.run(asyncio.wait_for(play(), 8))

    assert [answer.status for answer in answers[1:]] == [201] * 4
    assert answers[0].status in {201, 503}


@pytest.mark.parametrize("action_type", ["api_call", HIGH])
def test_event_of_an_agent_that_was_stopped_meanwhile_is_refused(world: World, action_type: str) -> None:
    moment = now()
    known = standing.of_agents([(world.tenant.id, str(world.agent.id))], now=moment)[str(world.agent.id)]
    event = EventInput(agent_id=str(world.agent.id), action_type=action_type)
    Agent.objects.filter(id=world.agent.id).update(status=AgentStatus.SUSPENDED)

    outcome = ingest_deferred(DeferredEvent(Submission(world.tenant.id, event, moment), known))

    assert getattr(outcome, "status", None) == 422
    assert not BehaviorEvent.objects.of_agent(world.agent.id).exists()


# --- Keys


def ask(worker: Worker, method: str, key: str, *more: tuple[str, str], body: bytes = b"") -> Answer:
    answer: Answer = worker.run(worker.exchange(method, PATH, headers_of(key, body, *more), body))
    return answer


def by_fast_path(threads: list[str]) -> int:
    """How many of the looks at keys were made for the fast path."""
    return sum(name.startswith("key-lookup") for name in threads)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_wrong_keys_are_limited_by_address_and_then_not_looked_up(
    web: Entrance, plain: Entrance, settings: Settings, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": LIMIT}
    looked_up: list[str] = []

    def check(**asked: Any) -> object:
        looked_up.append(current_thread().name)
        return services_check(**asked)

    services_check = services.check
    monkeypatch.setattr(services, "check", check)
    for _ in range(LIMIT + 1):
        ask(web, method, keys.new_secret(Environment.LIVE))
    fast_looks, view_looks = by_fast_path(looked_up), len(looked_up) - by_fast_path(looked_up)

    key = keys.new_secret(Environment.TEST)
    quick, slow = ask(web, method, key), ask(plain, method, key)

    assert (quick.status, slow.status) == (429, 429)
    assert (by_fast_path(looked_up), len(looked_up) - by_fast_path(looked_up)) == (fast_looks, view_looks)

    # The fast path lives in another process than the views, which alone remember whom they refused.
    unauthenticated.refused.clear()
    ask(web, method, keys.new_secret(Environment.TEST))
    assert by_fast_path(looked_up) == fast_looks == LIMIT
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    names = {name.lower() for name, _ in quick.headers}
    assert {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"} <= names


def test_key_in_use_goes_on_while_its_neighbours_are_refused(
    world: World, web: Web, key: str, settings: Settings
) -> None:
    warm(web, key, [world.agent])
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": LIMIT}
    strangers = [web.post(keys.new_secret(Environment.LIVE), world.report()) for _ in range(LIMIT + 1)]
    web.seen_by_view = 0

    answer = web.post(key, world.report())

    assert strangers[-1].status == 429
    assert (answer.status, web.seen_by_view) == (201, 0)


def test_key_revoked_elsewhere_is_refused_within_a_second(world: World, web: Web, key: str) -> None:
    ApiKey.objects.filter(id=key_id(key)).update(revoked_at=now())

    assert web.run(seconds_let_in(lambda: web.send(key, world.report()))) < 1
    refused = web.post(key, world.report())
    assert refused.status == 401
    assert dict(refused.headers)["WWW-Authenticate"] == 'Bearer realm="api"'


def test_key_in_use_stays_fresh_without_the_view(world: World, web: Web, key: str) -> None:
    async def play() -> set[int]:
        found = set()
        until = time.monotonic() + recent_keys.FRESH_SECONDS + 0.2
        while time.monotonic() < until:
            await asyncio.sleep(0.01)
            found.add((await web.send(key, world.report())).status)
        return found

    def stays_fresh() -> bool:
        """Whether it does for longer than one look lasts; it may not where the machine stands still."""
        before = web.seen_by_view
        assert web.run(play()) == {201}
        return web.seen_by_view == before

    assert eventually(stays_fresh)
