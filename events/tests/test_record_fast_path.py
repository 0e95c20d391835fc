"""The fast path records events as the view does, to the letter, and leaves to it what is not plain."""

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent, revoke_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tenancy import keys, recent_keys, services
from compliance.tenancy.models import ApiKey
from compliance.tenancy.tests.factories import make_key, make_tenant
from compliance.tests.waiting import eventually
from compliance.tests.web import shape
from events.tests.conftest import World
from events.tests.web import Web, body_of, key_id, seconds_let_in, warm

pytestmark = pytest.mark.usefixtures("committed")

CHANGING = {"x-ratelimit-remaining", "x-ratelimit-reset"}


@pytest.fixture
def plain() -> Iterator[Web]:
    """The same without the fast path."""
    server = Web(with_fast_path=False)
    yield server
    server.close()


def test_ordinary_event_is_answered_without_the_view(world: World, web: Web, key: str) -> None:
    answer = web.post(key, world.report(details={"tool": "get_weather", "é": [1, 2.5, None]}))

    assert (answer.status, web.seen_by_view) == (201, 0)
    data = body_of(answer)["data"]
    stored = world.events().get(id=data["id"])
    assert data["details"] == stored.details == {"tool": "get_weather", "é": [1, 2.5, None]}
    assert data["risk_score"] == stored.risk_score
    assert data["agent_id"] == str(world.agent.id)


def test_stored_event_is_answered_as_the_view_does(world: World, web: Web, plain: Web, key: str) -> None:
    body = world.report(
        "data_access",
        details={"n": 10**30, "f": 0.1, "s": 'é\u2028"\\'},
        occurred_at="2026-01-02T03:04:05.678+02:00",
    )

    quick, slow = web.post(key, body), plain.post(key, body)

    assert (web.seen_by_view, plain.seen_by_view) == (0, 1)
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    ours, theirs = body_of(quick)["data"], body_of(slow)["data"]
    assert list(ours) == list(theirs)
    same = ("agent_id", "action_type", "occurred_at", "details", "risk_band")
    assert [ours[name] for name in same] == [theirs[name] for name in same]
    assert (
        quick.body.partition(b'"action_type"')[2].partition(b'"risk_score"')[0]
        == (slow.body.partition(b'"action_type"')[2].partition(b'"risk_score"')[0])
    )


def test_fast_path_is_connected_before_its_first_request(web: Web) -> None:
    before = now()
    assert web.fast_path is not None

    web.fast_path.warm()

    connected = "keys, events, decisions, issuing, exchange"
    assert eventually(lambda: sessions_since(before) == len(connected.split(", "))), connected


def sessions_since(moment: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_start > %s AND pid <> pg_backend_pid()",
            [moment],
        )
        return int(cursor.fetchone()[0])


def _unknown(world: World) -> str:
    return str(new_id())


def _foreign(world: World) -> str:
    return str(make_certified_agent(make_tenant("Other")).id)


def _of_other_environment(world: World) -> str:
    with environments.use(Environment.TEST):
        return str(make_certified_agent(world.tenant).id)


def _suspended(world: World) -> str:
    agent = make_certified_agent(world.tenant)
    Agent.objects.filter(id=agent.id).update(status=AgentStatus.SUSPENDED)
    return str(agent.id)


def _revoked(world: World) -> str:
    agent = make_certified_agent(world.tenant)
    revoke_certificate(Certificate.objects.get(agent=agent))
    return str(agent.id)


@pytest.mark.parametrize(
    ("make", "status"),
    [(_unknown, 404), (_foreign, 404), (_of_other_environment, 404), (_suspended, 422), (_revoked, 422)],
)
def test_refusal_is_answered_byte_for_byte_as_the_view_does(
    world: World, web: Web, plain: Web, key: str, make: Any, status: int
) -> None:
    body = world.report() | {"agent_id": make(world)}
    warm(web, key, [world.agent])

    quick, slow = web.post(key, body), plain.post(key, body)

    assert (web.seen_by_view, plain.seen_by_view) == (0, 1)
    assert quick.status == status
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    assert quick.body == slow.body


UNUSUAL_HEADERS = {
    "idempotency-key": ["k"],
    "content-type": ["text/plain", "", "application/json; charset=latin-1"],
    "host": ["evil.example", ""],
    "authorization": ["", "Basic eDp5", "Bearer nonsense", "Bearer \udcff"],
}


def test_what_is_out_of_the_ordinary_is_left_to_the_view(world: World, web: Web, key: str) -> None:
    assert web.ask_fast_path(key, world.report()) is not None

    for header in [(name, value) for name, values in UNUSUAL_HEADERS.items() for value in values]:
        assert web.ask_fast_path(key, world.report(), header) is None, header


SYNTAX = [b"", b"{", b"[]", b"null", b"[" * 100_000, b"\xff", b'{"agent_id": NaN}', b'{"a": 1, "a": 2}']
MALFORMED = [*SYNTAX, b'{"action_type": "nonsense"}', b'{"details": {"a": "\\u0000"}}']


def test_malformed_body_is_refused_as_the_view_does_and_counted_once(
    world: World, web: Web, plain: Web, key: str
) -> None:
    for body in MALFORMED:
        before = dict(web.post(key, world.report()).headers)["x-ratelimit-remaining"]

        refused = web.post(key, body)
        slow = plain.post(key, body)

        after = dict(web.post(key, world.report()).headers)["x-ratelimit-remaining"]
        assert (refused.status, refused.body) == (slow.status, slow.body), body[:40]
        assert refused.status == 400
        assert int(before) - int(after) == 3
    assert web.seen_by_view == 1  # one of them is larger than the event loop reads


def test_header_that_is_there_twice_is_left_to_the_view(world: World, web: Web, key: str) -> None:
    answer = web.post(key, world.report(), ("x-a", "1"))
    assert (answer.status, web.seen_by_view) == (201, 0)

    twice = web.post_twice(key, world.report(), ("x-a", "1"), ("x-a", "2"))

    assert (twice.status, web.seen_by_view) == (201, 1)


def test_body_over_a_mebibyte_is_refused_though_its_beginning_is_an_event(
    world: World, web: Web, key: str
) -> None:
    report = b'{"agent_id": "%s", "action_type": "api_call"}' % str(world.agent.id).encode()

    answer = web.post(key, report.ljust(1024 * 1024 + 1))

    assert answer.status == 413
    assert world.events().count() == 1


def test_key_without_the_scope_is_refused_as_the_view_does(world: World, web: Web, plain: Web) -> None:
    reader = make_key(world.tenant, ["events:read"])

    quick, slow = web.post(reader, world.report()), plain.post(reader, world.report())

    assert (quick.status, web.seen_by_view) == (403, 0)
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    assert quick.body == slow.body


def test_key_nobody_checked_lately_is_looked_up_once_for_all_who_ask(
    world: World, web: Web, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    check = services.check

    def counted(*, digest: str, now: datetime) -> ApiKey:
        looks.append(digest)
        return check(digest=digest, now=now)

    monkeypatch.setattr(services, "check", counted)
    recent_keys.drop(Environment.LIVE, keys.digest(key))

    async def play() -> list[Any]:
        return await asyncio.gather(*(web.send(key, world.report()) for _ in range(20)))

    assert {answer.status for answer in web.run(play())} == {201}
    assert len(looks) <= 2


def test_key_in_use_is_looked_up_before_anybody_waits_for_it(
    world: World, web: Web, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_keys, "FRESH_SECONDS", 600.0)
    monkeypatch.setattr(recent_keys, "RENEWED_SECONDS", 0.0)
    ApiKey.objects.filter(id=key_id(key)).update(revoked_at=now())

    async def play() -> list[int]:
        answers = [await web.send(key, world.report())]
        while answers[-1].status == 201:
            await asyncio.sleep(0.02)
            answers.append(await web.send(key, world.report()))
        return [answer.status for answer in answers]

    *before, last = web.run(asyncio.wait_for(play(), 20))

    assert (set(before), last) == ({201}, 401)


def test_unknown_key_is_left_to_the_view(world: World, web: Web) -> None:
    unknown = keys.new_secret(Environment.LIVE)

    assert web.ask_fast_path(unknown, world.report()) is None
    assert web.post(unknown, world.report()).status == 401


def test_key_revoked_elsewhere_is_refused_within_a_second(world: World, web: Web, key: str) -> None:
    ApiKey.objects.filter(id=key_id(key)).update(revoked_at=now())

    assert web.run(seconds_let_in(lambda: web.send(key, world.report()))) < 1
    refused = web.post(key, world.report())
    assert refused.status == 401
    assert dict(refused.headers)["WWW-Authenticate"] == 'Bearer realm="api"'


def test_expired_key_is_refused_at_once(world: World, web: Web, key: str) -> None:
    ApiKey.objects.filter(id=key_id(key)).update(expires_at=now())
    recent_keys.drop(Environment.LIVE, keys.digest(key))

    assert web.post(key, world.report()).status == 401


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


def test_three_high_events_stop_the_agent_and_the_next_is_refused(world: World, web: Web, key: str) -> None:
    body = world.report("unauthorized_access_attempt")

    statuses = [web.post(key, body).status for _ in range(3)]

    next_ones = [web.post(key, world.report()).status, web.post(key, body).status]
    assert (statuses, next_ones) == ([201, 201, 201], [422, 422])
    assert web.seen_by_view == 0
    assert Agent.objects.get(id=world.agent.id).status == AgentStatus.SUSPENDED
    assert Certificate.objects.get(agent=world.agent).status == "revoked"
    audited = AuditEntry.objects.for_tenant(world.tenant.id).filter(event_type="event.high_risk")
    assert audited.count() == 3


def test_ordinary_event_of_an_agent_suspended_elsewhere_is_refused(world: World, web: Web, key: str) -> None:
    assert web.post(key, world.report()).status == 201
    Agent.objects.filter(id=world.agent.id).update(status=AgentStatus.SUSPENDED)

    assert (web.post(key, world.report()).status, web.seen_by_view) == (422, 0)


@pytest.mark.parametrize("state", ["revoked", "expired"])
def test_next_event_after_the_certificate_is_gone_is_refused(
    world: World, web: Web, key: str, state: str
) -> None:
    assert web.post(key, world.report()).status == 201
    certificates = Certificate.objects.filter(agent=world.agent)
    if state == "revoked":
        revoke_certificate(certificates.get())
    else:
        certificates.update(issued_at=now().replace(year=2020), expires_at=now().replace(year=2021))

    assert (web.post(key, world.report()).status, web.seen_by_view) == (422, 0)


def test_edited_permitted_actions_count_once_they_are_certified(world: World, web: Web, key: str) -> None:
    body = world.report(details={"tool": "wire_money"})
    before = body_of(web.post(key, body))["data"]["risk_band"]

    edited = world.api.patch(
        f"/v1/agents/{world.agent.id}", {"metadata": {"permitted_actions": ["read_file"]}}
    )

    meanwhile = body_of(web.post(key, body))["data"]["risk_band"]
    renewed = world.api.post(f"/v1/agents/{world.agent.id}/renew")
    after = body_of(web.post(key, body))["data"]["risk_band"]

    assert (edited.status_code, renewed.status_code) == (200, 201)
    assert (before, meanwhile, after) == ("low", "low", "medium")


def test_exhausted_rate_limit_is_429_with_four_headers(world: World, web: Web, settings: Settings) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "events": 40}
    key = str(world.api.key)

    answers = [web.post(key, world.report()) for _ in range(60)]

    stored = [answer for answer in answers if answer.status == 201]
    refused = answers[-1]
    headers = {name.lower(): value for name, value in refused.headers}
    assert len(stored) == 40
    assert world.events().count() == len(stored)
    assert refused.status == 429
    assert (headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]) == ("40", "0")
    assert 1 <= int(headers["retry-after"]) <= 60
    assert 0 < int(headers["x-ratelimit-reset"]) - time.time() <= 61
