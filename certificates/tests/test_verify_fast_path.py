"""The fast path verifies certificates as the view does, to the letter, and leaves to it what is not plain."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Any

import orjson
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from pytest_django.fixtures import Settings

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import services
from certificates.models import Certificate
from certificates.pki.serials import format_serial, new_serial
from certificates.public.endpoints import VERIFY_CERTIFICATE
from certificates.public.verification import Verification
from certificates.tests.factories import (
    make_certificate,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.api.answers import Answer, Headers
from compliance.api.gate import security_headers
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tenancy.models import Tenant
from compliance.tests.owner import end_sessions, locked_table
from compliance.tests.web import Worker, shape

pytestmark = pytest.mark.usefixtures("committed")

CHANGING = {"x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}
UNKNOWN = format_serial(new_serial(Environment.LIVE))


class Verifier(Worker):
    """A worker that is asked to verify."""

    async def ask(
        self, serial: str, *more: tuple[str, str], method: str = "GET", body: bytes = b""
    ) -> Answer:
        headers = [("host", "testserver"), *more]
        return await self.exchange(method, f"/v1/verify/{serial}", headers, body)

    def verify(self, serial: str, *more: tuple[str, str], method: str = "GET", body: bytes = b"") -> Answer:
        answer: Answer = self.run(self.ask(serial, *more, method=method, body=body))
        return answer

    def verify_all(self, serials: Collection[str], *more: tuple[str, str]) -> list[Answer]:
        async def play() -> list[Answer]:
            return await asyncio.gather(*(self.ask(serial, *more) for serial in serials))

        found: list[Answer] = self.run(play())
        return found


@pytest.fixture
def web() -> Iterator[Verifier]:
    with closing(Verifier()) as server:
        yield server


@pytest.fixture
def plain() -> Iterator[Verifier]:
    """The same without the fast path."""
    with closing(Verifier(with_fast_path=False)) as server:
        yield server


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


def assert_the_same(web: Verifier, plain: Verifier, serial: str, *more: tuple[str, str]) -> Answer:
    """The answer of both, one of which the view gave."""
    before = web.seen_by_view

    quick, slow = web.verify(serial, *more), plain.verify(serial, *more)

    assert web.seen_by_view == before
    assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
    assert quick.body == slow.body
    return quick


@pytest.mark.parametrize("change", [_as_it_is, _revoke, _let_expire, _suspend, _suspend_and_reinstate])
def test_answer_is_the_views_byte_for_byte(
    web: Verifier, plain: Verifier, certificate: Certificate, change: Callable[[Certificate], None]
) -> None:
    change(certificate)

    answer = assert_the_same(web, plain, certificate.serial_number)

    assert answer.status == 200
    assert (web.seen_by_view, plain.seen_by_view) == (0, 1)
    assert ("cache-control", "no-store") in answer.headers


def test_every_spelling_and_both_environments_take_the_fast_path(
    web: Verifier, plain: Verifier, tenant: Tenant
) -> None:
    with environments.use(Environment.TEST):
        serial = make_certificate(make_agent(tenant)).serial_number
    colons = ":".join(serial[place : place + 2] for place in range(0, 40, 2))

    for spelling in (
        serial,
        serial.upper(),
        colons,
        colons.upper(),
        f"0x{serial}",
        f"0X{serial}",
        f" {serial}",
    ):
        answer = assert_the_same(web, plain, spelling)
        assert orjson.loads(answer.body)["data"]["serial_number"] == serial
        assert orjson.loads(answer.body)["data"]["environment"] == "test"


@pytest.mark.parametrize("environment", Environment)
def test_unknown_serial_is_404_as_the_view_says_it(
    web: Verifier, plain: Verifier, environment: Environment
) -> None:
    answer = assert_the_same(web, plain, format_serial(new_serial(environment)))

    assert (answer.status, answer.body) == (404, b'{"error":"Certificate not found"}')


@pytest.mark.parametrize("serial", ["nonsense", "0" * 40, "\u00b2" * 40, "messages", "%00", "x" * 500])
def test_malformed_serial_is_404_as_the_view_says_it(web: Verifier, plain: Verifier, serial: str) -> None:
    answer = assert_the_same(web, plain, serial)

    assert (answer.status, answer.body) == (404, b'{"error":"Certificate not found"}')


def test_what_is_out_of_the_ordinary_is_left_to_the_view(web: Verifier, plain: Verifier) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("", {}), ("message", {}),
        (f"{UNKNOWN}/", {}), (f"{UNKNOWN}?", {"body": b"{}"}), (f"{UNKNOWN}?at=yesterday", {}),
        (f"{UNKNOWN}?at=2026-01-01T00:00:00Z", {}), (f"{UNKNOWN}?x", {}),
        (UNKNOWN, {"method": "OPTIONS"}), (UNKNOWN, {"method": "POST"}), (UNKNOWN, {"method": "DELETE"}),
    ]  # fmt: skip
    for count, (serial, how) in enumerate(asked, 1):
        length = [("content-length", str(len(how["body"])))] if "body" in how else []

        quick, slow = web.verify(serial, *length, **how), plain.verify(serial, *length, **how)

        assert web.seen_by_view == count, serial
        assert shape(quick, changing=CHANGING) == shape(slow, changing=CHANGING)
        assert (quick.status >= 400, quick.body) == (True, slow.body)


OURS = ("host", "testserver")


@pytest.mark.parametrize(
    ("headers", "status"),
    [([("host", "evil.example")], 400), ([OURS, ("x-a", "1"), ("x-a", "2")], 200)],
)  # fmt: skip
def test_what_the_views_middleware_judges_is_left_to_it(
    web: Verifier, certificate: Certificate, headers: Headers, status: int
) -> None:
    answer: Answer = web.run(web.exchange("GET", f"/v1/verify/{certificate.serial_number}", headers))

    assert (answer.status, web.seen_by_view) == (status, 1)


@pytest.mark.parametrize(
    "header",
    [("authorization", "Bearer service_test_nonsense"), ("cookie", "sessionid=x; csrftoken=x"),
     ("accept", "text/html;q=0.1"), ("if-none-match", "*"), ("range", "bytes=0-1"),
     ("x-forwarded-proto", "https"), ("content-type", "nonsense"), ("x-http-method-override", "DELETE")],
)  # fmt: skip
def test_headers_that_mean_nothing_here_change_nothing(
    web: Verifier, plain: Verifier, certificate: Certificate, header: tuple[str, str]
) -> None:
    assert assert_the_same(web, plain, certificate.serial_number, header).status == 200


@pytest.fixture
def security_for_a_minute(settings: Settings) -> Iterator[None]:
    """A minute of strict transport security in headers made anew."""
    settings.SECURE_HSTS_SECONDS = 60
    security_headers.cache_clear()
    yield
    security_headers.cache_clear()


@pytest.mark.parametrize("said", ["https", "https, http", "http", ""])
@pytest.mark.usefixtures("security_for_a_minute")
def test_transport_security_is_told_to_clients_of_https(web: Verifier, settings: Settings, said: str) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    # Django's middleware reads its settings once.
    plain = Verifier(with_fast_path=False, views=WSGIHandler())

    answer = assert_the_same(web, plain, UNKNOWN, ("x-forwarded-proto", said))

    plain.close()
    assert ("strict-transport-security" in dict(answer.headers)) == said.startswith("https")


def test_revocation_shows_on_the_next_call(web: Verifier, certificate: Certificate) -> None:
    before = orjson.loads(web.verify(certificate.serial_number).body)["data"]

    revoke_certificate(certificate)
    Agent.objects.filter(id=certificate.agent_id).update(risk_score=0.9)

    after = orjson.loads(web.verify(certificate.serial_number).body)["data"]
    assert (before["status"], after["status"]) == ("active", "revoked")
    assert (after["risk_score"], after["risk_band"]) == (0.9, "high")
    assert web.seen_by_view == 0


def test_hundred_are_let_through_and_the_rest_refused_as_the_view_does(
    web: Verifier, plain: Verifier
) -> None:
    plain.verify(UNKNOWN)

    answers = web.verify_all([UNKNOWN] * 103)
    began = time.monotonic()
    late, theirs = web.verify(UNKNOWN), plain.verify(UNKNOWN)
    took = time.monotonic() - began

    remaining = sorted(int(dict(answer.headers)["x-ratelimit-remaining"]) for answer in answers)
    assert remaining == [0] * 4 + list(range(99))
    assert sorted(answer.status for answer in answers) == [404] * 99 + [429] * 4
    assert (late.status, web.seen_by_view) == (429, 0)
    assert shape(late, changing=CHANGING) == shape(theirs, changing=CHANGING)
    waits = [
        int({name.lower(): value for name, value in one.headers}["retry-after"]) for one in (late, theirs)
    ]
    assert [one.body for one in (late, theirs)] == [
        b'{"error":"Rate limit exceeded; retry in %d s"}' % wait for wait in waits
    ]
    assert 0 <= waits[0] - waits[1] <= math.ceil(took)


def test_clients_behind_a_trusted_proxy_are_counted_apart(web: Verifier, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = [ip_network("127.0.0.1/32")]

    async def play() -> list[Answer]:
        asked = [f"192.0.2.{number % 7}" for number in range(35)]
        return await asyncio.gather(*(web.ask(UNKNOWN, ("x-forwarded-for", one)) for one in asked))

    answers: list[Answer] = web.run(play())

    remaining = [int(dict(answer.headers)["x-ratelimit-remaining"]) for answer in answers]
    assert sorted(remaining) == sorted(list(range(95, 100)) * 7)


def test_those_who_wait_together_share_a_read_and_each_gets_its_own_answer(
    web: Verifier, tenant: Tenant, unlimited: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    serials = [make_certificate(make_agent(tenant)).serial_number for _ in range(3)]
    reads: list[int] = []
    verifications = services.verifications

    def counted(rows: list[Any], *, environment: Environment, now: datetime) -> dict[int, Verification]:
        reads.append(len(rows))
        return verifications(rows, environment=environment, now=now)

    monkeypatch.setattr(services, "verifications", counted)

    answers = web.verify_all([*serials, UNKNOWN] * 50)

    assert [answer.status for answer in answers] == [200, 200, 200, 404] * 50
    found = [orjson.loads(answer.body)["data"]["serial_number"] for answer in answers if answer.status == 200]
    assert found == serials * 50
    assert len(reads) <= 20


def test_client_that_goes_away_leaves_its_neighbours_alone(web: Verifier, certificate: Certificate) -> None:
    async def play() -> list[Answer | BaseException]:
        tasks = [asyncio.ensure_future(web.ask(certificate.serial_number)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = web.run(play())

    assert all(isinstance(gone, asyncio.CancelledError) for gone in found[::2])
    assert {answer.status for answer in found[1::2]} == {200}


def test_certificate_that_cannot_be_shown_sinks_no_neighbour(web: Verifier, tenant: Tenant) -> None:
    sound, broken = (make_certificate(make_agent(tenant)) for _ in range(2))
    Certificate.objects.filter(id=broken.id).update(claims={})

    statuses = [answer.status for answer in web.verify_all([sound.serial_number, broken.serial_number] * 3)]

    assert statuses == [200, 500] * 3


def test_killed_session_is_replaced_and_nobody_notices(web: Verifier, certificate: Certificate) -> None:
    assert web.verify(certificate.serial_number).status == 200
    for _ in range(3):
        end_sessions()

        assert {answer.status for answer in web.verify_all([certificate.serial_number] * 5)} == {200}


def test_absent_database_is_503_as_the_view_says_it_and_heals(
    web: Verifier, plain: Verifier, certificate: Certificate
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


def test_more_than_the_queue_holds_is_turned_away_at_once(
    web: Verifier, certificate: Certificate, unlimited: None
) -> None:
    count = VERIFY_CERTIFICATE.longest_queue + VERIFY_CERTIFICATE.largest_group + 50

    turned_away, answers = web.crowd(
        (web.ask(certificate.serial_number) for _ in range(count)),
        held_up=locked_table("certificates_certificate IN ACCESS EXCLUSIVE MODE"),
    )

    assert 50 <= len(turned_away) <= 50 + VERIFY_CERTIFICATE.largest_group
    for answer in turned_away:
        headers = {name.lower(): value for name, value in answer.headers}
        assert (answer.status, headers["retry-after"], headers["cache-control"]) == (503, "1", "no-store")
    assert sum(answer.status == 200 for answer in answers) == count - len(turned_away)
