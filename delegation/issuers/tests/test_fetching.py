"""Fetching issuers' keys over real HTTP: from whom, how often, and what becomes of bad answers."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from werkzeug import Response

from delegation.issuers import fetching
from delegation.issuers.errors import IssuerKeysUnavailable
from delegation.issuers.fetching import KeyLocation
from delegation.issuers.tests.providers import EC_KEY, RSA_KEY, Held, Provider, public


class Clock:
    """The time that the cache sees; a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(fetching, "monotonic", found)
    return found


@pytest.fixture
def location(provider: Provider) -> KeyLocation:
    return KeyLocation(provider.issuer, f"{provider.issuer}/keys")


def names(location: KeyLocation, kid: str | None = "rsa", tenant: int = 1) -> list[str | None]:
    return [key.kid for key in fetching.keys_at(location, kid=kid, tenant_id=UUID(int=tenant))]


def test_keys_come_from_the_uri_or_by_discovery(provider: Provider, location: KeyLocation) -> None:
    assert names(location) == ["rsa", "ec"]
    assert names(KeyLocation(provider.issuer, None)) == ["rsa", "ec"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("max-age=120", 120),
        ("public, max-age=5", 60),
        ("max-age=999999", 3_600),
        ("", 600),
        ("no-store", 600),
        ("max-age=x", 600),
    ],
)
def test_the_issuer_says_for_how_long_within_bounds(
    provider: Provider, location: KeyLocation, clock: Clock, header: str, seconds: int
) -> None:
    provider.headers = {"Cache-Control": header}
    names(location)

    clock.now += seconds - 1
    names(location)
    assert provider.key_requests == 1

    clock.now += 1
    names(location)
    assert provider.key_requests == 2


def test_an_unknown_key_is_looked_for_after_a_pause(
    provider: Provider, location: KeyLocation, clock: Clock
) -> None:
    names(location)
    provider.jwks["keys"].append(public(EC_KEY, "new"))

    for _ in range(5):
        assert "new" not in names(location, "new")
    assert provider.key_requests == 1

    clock.now += fetching.COOLDOWN_SECONDS
    assert "new" in names(location, "new")
    assert provider.key_requests == 2


def test_keys_serve_for_an_hour_while_the_issuer_is_away(
    provider: Provider, location: KeyLocation, clock: Clock
) -> None:
    names(location)
    provider.answer = Response(status=500)

    clock.now += fetching.USUAL_USE + fetching.STALE_SECONDS - 1
    assert names(location) == ["rsa", "ec"]

    clock.now += 1
    with pytest.raises(IssuerKeysUnavailable):
        names(location)


def test_a_key_that_was_taken_back_serves_no_longer(
    provider: Provider, location: KeyLocation, clock: Clock
) -> None:
    names(location)
    provider.jwks = {"keys": [public(EC_KEY, "ec")]}

    clock.now += fetching.USUAL_USE

    assert names(location, None) == ["ec"]


def test_pauses_grow_while_it_fails(provider: Provider, location: KeyLocation, clock: Clock) -> None:
    provider.answer = Response(status=500)
    waits = []
    for _ in range(4):
        with pytest.raises(IssuerKeysUnavailable) as refused:
            names(location)
        assert refused.value.retry_after is not None
        waits.append(refused.value.retry_after)
        with pytest.raises(IssuerKeysUnavailable):
            names(location)
        clock.now += refused.value.retry_after

    assert waits == [5, 10, 20, 40]
    assert provider.key_requests == 4


@pytest.mark.parametrize(
    "answer",
    [
        Response("{}", content_type="application/json"),
        Response('{"keys": []}'),
        Response('{"keys": [], "keys": []}'),
        Response("not JSON"),
        Response(b"\xff\xfe"),
        Response("[" * 100_000),
        Response("x" * (fetching.MAX_BYTES + 1)),
        Response('{"keys": [{"kty": "oct", "k": "AAAA"}]}'),
        Response(status=404),
        Response(status=500),
        Response(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data"}),
        Response(status=301, headers={"Location": "/elsewhere"}),
    ],
)
def test_bad_answers_are_a_503(provider: Provider, location: KeyLocation, answer: Response) -> None:
    provider.answer = answer

    with pytest.raises(IssuerKeysUnavailable):
        names(location)


def test_a_redirect_is_not_followed(provider: Provider, location: KeyLocation) -> None:
    elsewhere = json.dumps({"keys": [public(RSA_KEY, "rsa")]})
    provider.server.expect_request("/elsewhere").respond_with_data(elsewhere)
    provider.answer = Response(status=302, headers={"Location": f"{provider.issuer}/elsewhere"})

    with pytest.raises(IssuerKeysUnavailable):
        names(location)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"issuer": "https://login.example.com"},
        {"jwks_uri": "{issuer}/keys"},
        {"issuer": "{issuer}/", "jwks_uri": "{issuer}/keys"},
        {"issuer": "{issuer}"},
        {"issuer": "{issuer}", "jwks_uri": 1},
        {"issuer": "{issuer}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{issuer}", "jwks_uri": "http://169.254.169.254/latest"},
        {"issuer": "{issuer}", "jwks_uri": "http://[fd00:ec2::254]/latest"},
    ],
)
def test_a_discovery_document_is_read_strictly(provider: Provider, document: Any) -> None:
    provider.document = json.loads(json.dumps(document).replace("{issuer}", provider.issuer))

    with pytest.raises(IssuerKeysUnavailable):
        names(KeyLocation(provider.issuer, None))


def test_production_asks_public_addresses_by_https_only(provider: Provider, settings: Any) -> None:
    settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES = False
    with pytest.raises(IssuerKeysUnavailable):
        names(KeyLocation("a", f"{provider.issuer}/keys"))
    settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES = True
    settings.TRUSTED_ISSUER_ALLOW_HTTP = False
    with pytest.raises(IssuerKeysUnavailable):
        names(KeyLocation("b", f"{provider.issuer}/keys"))

    assert provider.key_requests == 0


def test_a_slow_issuer_is_cut_off(provider: Provider, settings: Any) -> None:
    settings.TRUSTED_ISSUER_TIMEOUT_SECONDS = 0.3
    released = threading.Event()

    def wait(request: Any) -> Response:
        released.wait(30)
        return Response("{}")

    provider.server.expect_request("/slow").respond_with_handler(wait)
    try:
        with pytest.raises(IssuerKeysUnavailable):
            names(KeyLocation("slow", f"{provider.issuer}/slow"))
    finally:
        released.set()


def test_many_at_once_fetch_once(provider: Provider, location: KeyLocation) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: names(location), range(40)))

    assert found == [["rsa", "ec"]] * 40
    assert provider.key_requests == 1


def test_slow_issuers_never_hold_all_threads(provider: Provider, location: KeyLocation, held: Held) -> None:
    slow = [KeyLocation(str(number), f"{held.url}/{number}") for number in range(fetching.MOST_AT_ONCE)]
    with ThreadPoolExecutor(len(slow)) as pool:
        asked = [pool.submit(names, one, tenant=number + 2) for number, one in enumerate(slow)]
        held.accept(len(slow))

        # No slot is left, and nothing was tried: there is no next try to compute either.
        with pytest.raises(IssuerKeysUnavailable) as refused:
            names(location)
        held.release()

    assert len(slow) < settings.WEB_THREADS
    assert refused.value.retry_after == 1
    assert all(isinstance(one.exception(), IssuerKeysUnavailable) for one in asked)


def test_slow_issuers_of_a_tenant_leave_slots_to_the_others(
    provider: Provider, location: KeyLocation, held: Held
) -> None:
    slow = [KeyLocation(str(number), f"{held.url}/{number}") for number in range(fetching.MOST_OF_A_TENANT)]
    with ThreadPoolExecutor(len(slow)) as pool:
        asked = [pool.submit(names, one, tenant=1) for one in slow]
        held.accept(len(slow))

        with pytest.raises(IssuerKeysUnavailable):
            names(location, tenant=1)
        assert names(location, tenant=2) == ["rsa", "ec"]
        held.release()

    assert all(isinstance(one.exception(), IssuerKeysUnavailable) for one in asked)


def test_nobody_waits_long_for_a_slow_issuer(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.0)
    slow = KeyLocation("slow", held.url)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(names, slow)
        held.accept(1)

        with pytest.raises(IssuerKeysUnavailable):
            names(slow)
        assert not first.done()
        held.release()
