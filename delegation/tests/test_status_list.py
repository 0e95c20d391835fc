"""`GET /v1/status-lists/{id}`, read as the draft says by code that shares none of the service's."""

import base64
import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test.utils import CaptureQueriesContext
from joserfc import jws as joserfc_jws
from joserfc.jwk import KeySet

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.tests.factories import make_certificate, make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation import services
from delegation.issued import status_lists
from delegation.issued.status_lists import LIST_SIZE
from delegation.issuing.issuance import IssuedDelegation
from delegation.models import IssuedToken
from delegation.standing import standings
from delegation.tasks import forget_issued
from delegation.tests import test_standing as ends
from delegation.tests.factories import ACTOR, make_line, make_token
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant, make_test_key


def status_of(api: ApiClient, issued: IssuedDelegation) -> int:
    payload = issued.token.split(".")[1]
    return bit_of(api, json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))


def bit_of(api: ApiClient, claims: dict[str, Any]) -> int:
    """What a verifier by draft-ietf-oauth-status-list §8.3 reads: fetch, check, inflate, index."""
    entry = claims["status"]["status_list"]
    idx = int(entry["idx"])
    assert entry["uri"].startswith(f"{settings.BASE_URL}/")
    answer = api.get(entry["uri"].removeprefix(settings.BASE_URL))
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/statuslist+jwt")
    jwks = api.get(f"/.well-known/jwks.json?environment={claims['env']}").json()
    token = joserfc_jws.deserialize_compact(answer.content, KeySet.import_key_set(jwks), algorithms=["ES256"])
    assert token.headers()["typ"] == "statuslist+jwt"
    listed = json.loads(token.payload)
    assert listed["sub"] == entry["uri"]
    assert listed["iat"] <= now().timestamp() < listed["exp"]
    assert listed["ttl"] > 0
    bits, lst = int(listed["status_list"]["bits"]), listed["status_list"]["lst"]
    octets = zlib.decompress(base64.urlsafe_b64decode(lst + "=" * (-len(lst) % 4)))
    per_octet = 8 // bits
    return (octets[idx // per_octet] >> idx % per_octet * bits) & ((1 << bits) - 1)


def end(issued: IssuedDelegation, tenant: Tenant) -> None:
    services.revoke(
        tenant_id=tenant.id, token_id=issued.delegation.token_id, reason="x", actor=ACTOR, now=now()
    )
    status_lists.forget()


def test_a_chain_of_eight_ends_with_its_first_token(api: ApiClient, tenant: Tenant) -> None:
    line = make_line([make_agent(tenant, name=f"a{n}") for n in range(8)])

    end(line[3], tenant)

    assert [status_of(api, one) for one in line] == [0, 0, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("make", "happens"),
    [
        (make_agent, ends.suspend),
        (make_agent, ends.retire),
        (make_agent, make_certificate),
        (make_certified_agent, ends.suspend),
        (make_certified_agent, ends.revoke),
        (make_certified_agent, ends.expire),
        (make_certified_agent, ends.renew),
    ],
)
def test_the_list_says_what_the_standing_of_a_token_is(
    api: ApiClient, tenant: Tenant, make: Any, happens: Callable[[Agent], Any]
) -> None:
    first = make(make_tenant("Other"), name="first")
    line = make_line([first, make_agent(tenant)])
    unconcerned = make_token(make_agent(tenant, name="unconcerned"))

    happens(first)
    status_lists.forget()

    asked = [*line, unconcerned]
    stand = [one.stands for one in standings([one.delegation for one in asked], now=now())]
    assert stand == [False, False, True]
    assert [status_of(api, one) for one in asked] == [1, 1, 0]


def test_a_reinstated_agents_token_is_valid_again(api: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    issued = make_token(agent)
    ends.suspend(agent)
    assert status_of(api, issued) == 1

    ends.reinstate(agent)
    status_lists.forget()

    assert status_of(api, issued) == 0


def test_the_sandbox_has_lists_of_its_own(api: ApiClient, tenant: Tenant) -> None:
    make_test_key(tenant)
    with environments.use(Environment.TEST):
        issued = make_token(make_agent(tenant))
    assert issued.delegation.status is not None
    assert "/test-" in issued.delegation.status.status_list.uri

    assert status_of(api, issued) == 0


def places_of(*issued: Any) -> list[tuple[str, int]]:
    """The list and the place in it of each token."""
    entries = [one.delegation.status.status_list for one in issued]
    return [(entry.uri, entry.idx) for entry in entries]


def test_tokens_past_the_size_of_a_list_are_on_another(
    api: ApiClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent(tenant)
    monkeypatch.setattr(status_lists, "_open", {})
    monkeypatch.setattr(status_lists, "_MOST_TAKEN", 1)

    one, other = make_token(agent), make_token(agent)

    (first, _), (second, _) = places_of(one, other)
    assert first != second
    end(other, tenant)
    assert (status_of(api, one), status_of(api, other)) == (0, 1)


def test_places_do_not_tell_how_many_tokens_others_have(tenant: Tenant) -> None:
    """Between two tokens of a tenant others get twenty: no difference of their places says so."""
    agent, other = make_agent(tenant), make_agent(make_tenant("Other"))
    issued = []
    for _ in range(6):
        issued.append(make_token(agent))
        for _ in range(20):
            status_lists.next_index()
    make_token(other)

    places = [place for _, place in places_of(*issued)]

    steps = [after - before for before, after in pairwise(places)]
    assert max(map(abs, steps)) > 2_000
    assert len(set(steps)) > 1


def test_every_place_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_lists, "_open", {})
    count = LIST_SIZE + 100

    indexes = [status_lists.next_index() for _ in range(count)]

    assert len(set(indexes)) == count
    assert len({index // LIST_SIZE for index in indexes}) == 2


def test_a_list_without_tokens_does_not_exist(api: ApiClient, tenant: Tenant) -> None:
    for list_id in [
        *("live-999999999", "live-01", "live-", "live", "other-0", "live-0x", "live-9999999999", "LIVE-0"),
        *("live--1", "live-%D9%A0", "live-0%00", "%ff", "live-0%0A"),
    ]:
        answer = api.get(f"/v1/status-lists/{list_id}")

        assert answer.status_code in (400, 404)
        assert set(answer.json()) == {"error"}


def test_many_readers_cost_one_statement_and_one_signature(api: ApiClient, tenant: Tenant) -> None:
    path = path_of(make_token(make_agent(tenant)))
    first = api.get(path)

    with CaptureQueriesContext(connections["default"]) as asked:
        answers = [api.get(path) for _ in range(5)]

    assert len(asked) == 0
    assert {answer.content for answer in answers} == {first.content}


def test_a_list_that_is_at_hand_is_not_sent_again(api: ApiClient, tenant: Tenant) -> None:
    path = path_of(make_token(make_agent(tenant)))
    first = api.get(path)

    again = api.get(path, If_None_Match=first["ETag"])

    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert first["Cache-Control"] == f"public, max-age={status_lists.TTL_SECONDS}"
    assert api.head(path).status_code == 200


def test_a_list_is_no_delegation_token(api: ApiClient, tenant: Tenant) -> None:
    listed = api.get(path_of(make_token(make_agent(tenant)))).content.decode()

    found = api.post("/v1/delegation/verify", {"token": listed}).json()["data"]

    assert found == {"valid": False, "reason": "malformed"}


def test_without_the_database_it_can_not_be_made(
    api: ApiClient, tenant: Tenant, request: pytest.FixtureRequest
) -> None:
    path = path_of(make_token(make_agent(tenant)))
    request.getfixturevalue("no_database")

    assert api.get(path).status_code == 503


def test_rows_are_kept_for_a_week_after_the_token_has_expired(tenant: Tenant) -> None:
    agent = make_agent(tenant)
    old = make_token(agent, at=now() - timedelta(days=7, hours=2)).delegation.token_id
    kept = make_token(agent, at=now() - timedelta(days=7)).delegation.token_id

    forget_issued.apply(headers={"service_environment": "live"}).get()

    assert old != kept
    assert [row.id for row in IssuedToken.objects.all()] == [kept]


def path_of(issued: IssuedDelegation) -> str:
    assert issued.delegation.status is not None
    return issued.delegation.status.status_list.uri.removeprefix(settings.BASE_URL)
