"""Who calls the OAuth endpoints, what a form is, and what every refusal looks like."""

import base64
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from agents.models import Agent
from agents.tests.factories import make_agent
from compliance.api import unauthenticated
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import redis
from delegation.oauth.tests.oauth_clients import basic, id_of, refusal, send, with_delegation
from delegation.tests.factories import CHAIN, as_chain, make_token
from tenancy import keys, services
from tenancy.models import Tenant
from tenancy.tests.factories import (
    make_expired_key,
    make_key,
    make_revoked_key,
    make_tenant,
    make_test_key,
)


@pytest.fixture
def body(agent: Agent) -> dict[str, Any]:
    """A sound request but for its client."""
    return with_delegation(make_token(agent, chain=as_chain(CHAIN[:1])).token, agent)


@pytest.fixture
def key(tenant: Tenant) -> str:
    return make_key(tenant)


def test_a_client_authenticates_in_three_ways(body: dict[str, Any], key: str) -> None:
    client_id = id_of(key)

    by_bearer = send(body, key=key)
    by_basic = send(body, Authorization=basic(client_id, key))
    by_basic_twice_named = send({**body, "client_id": client_id}, Authorization=basic(client_id, key))
    by_post = send({**body, "client_id": client_id, "client_secret": key})

    answers = (by_bearer, by_basic, by_basic_twice_named, by_post)
    assert [answer.status_code for answer in answers] == [200] * 4


def test_the_environment_is_the_keys_whichever_way_it_comes(tenant: Tenant) -> None:
    secret = make_test_key(tenant)
    with environments.use(Environment.TEST):
        agent = make_agent(services.get_tenant(tenant_id=tenant.id))
        body = with_delegation(make_token(agent, chain=as_chain(CHAIN[:1])).token, agent)
        client_id = id_of(secret)

    answers = [
        send(body, key=secret),
        send(body, Authorization=basic(client_id, secret)),
        send({**body, "client_id": client_id, "client_secret": secret}),
    ]

    assert [answer.status_code for answer in answers] == [200] * 3


@pytest.mark.parametrize("make", [make_revoked_key, make_expired_key])
def test_a_key_that_has_ended_is_no_client(tenant: Tenant, body: dict[str, Any], make: Any) -> None:
    secret = make(tenant)

    answer = send(body, Authorization=basic(id_of(secret), secret))

    assert refusal(answer)[:2] == (401, "invalid_client")
    assert answer["WWW-Authenticate"] == 'Basic realm="api"'


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        (None, "Basic"),
        ("Bearer", "Bearer"),
        ("Bearer nonsense", "Bearer"),
        ("Bearer {unknown}", "Bearer"),
        ("Basic", "Basic"),
        ("Basic !!!", "Basic"),
        ("Basic {nocolon}", "Basic"),
        ("Basic {latin}", "Basic"),
        ("Digest x", "Basic"),
        ("DPoP x.y.z", "Basic"),
        ("", "Basic"),
    ],
)
def test_without_a_sound_credential_there_is_a_challenge(
    body: dict[str, Any], header: str | None, challenge: str
) -> None:
    text = None if header is None else header.format(
        unknown=keys.new_secret(Environment.LIVE),
        nocolon=base64.b64encode(b"abc").decode(),
        latin=base64.b64encode("ä:b".encode("latin-1")).decode(),
    )  # fmt: skip

    answer = send(body, **({} if text is None else {"Authorization": text}))

    assert refusal(answer)[:2] == (401, "invalid_client")
    assert answer["WWW-Authenticate"] == f'{challenge} realm="api"'


def test_a_client_id_that_is_not_the_keys_is_refused(body: dict[str, Any], key: str) -> None:
    other = id_of(make_key(make_tenant()))

    by_basic = send(body, Authorization=basic(other, key))
    by_post = send({**body, "client_id": other, "client_secret": key})

    for answer in (by_basic, by_post):
        assert refusal(answer)[:2] == (401, "invalid_client")


def test_two_ways_at_once_are_refused(body: dict[str, Any], key: str) -> None:
    both = {**body, "client_id": id_of(key), "client_secret": key}

    by_basic = send(both, Authorization=basic(id_of(key), key))
    by_bearer = send(both, key=key)
    two_names = send({**body, "client_id": "other"}, Authorization=basic(id_of(key), key))

    for answer in (by_basic, by_bearer, two_names):
        assert refusal(answer)[:2] == (400, "invalid_request")


def test_a_secret_without_an_id_is_refused(body: dict[str, Any], key: str) -> None:
    assert refusal(send({**body, "client_secret": key})) == (
        400, "invalid_request", "client_id is missing",
    )  # fmt: skip


def test_a_key_without_the_scope_is_unauthorized(tenant: Tenant, body: dict[str, Any]) -> None:
    answer = send(body, key=make_key(tenant, ["agents:read"]))

    assert refusal(answer) == (
        400, "unauthorized_client", "This API key lacks the scope delegations:issue",
    )  # fmt: skip


def test_a_form_is_read_strictly(key: str) -> None:
    for raw, words in [
        (b"grant_type=%zz", "The form has a broken percent-escape"),
        (b"grant_type=%", "The form has a broken percent-escape"),
        (b"grant_type=%ff", "The form is not valid UTF-8"),
        (b"grant_type=%ed%a0%80", "The form is not valid UTF-8"),
        (b"grant_type=a%00b", "Parameters must not contain NUL characters"),
        (b"grant%00_type=ab", "Parameters must not contain NUL characters"),
        (b"grant_type=\xff", "The form holds bytes that are not percent-encoded"),
        (b"grant_type=a&grant_type=b", "grant_type is sent more than once"),
        (b"grant_type=a&grant_type=", "grant_type is sent more than once"),
        (b"%C3%A4=a&%C3%A4=b", "A parameter is sent more than once"),
        (b"&".join(b"a%d=1" % number for number in range(101)), "The form has more than 100 parameters"),
        (b"a=" + b"x" * 65_536, "The form is larger than 65536 bytes"),
        (b"&&&=", "grant_type is missing"),
        (b"{}", "grant_type is missing"),
    ]:
        assert refusal(send(raw, key=key)) == (400, "invalid_request", words)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/plain", 415),
        ("", 415),
        ("application/x-www-form-urlencoded; charset=latin-1", 415),
        ("application/x-www-form-urlencoded; charset=UTF-8", 200),
        ("APPLICATION/x-www-form-urlencoded", 200),
    ],
)
def test_only_forms_are_taken(body: dict[str, Any], key: str, content_type: str, status: int) -> None:
    answer = send(body, key=key, content_type=content_type)

    assert answer.status_code == status
    if status == 415:
        assert refusal(answer)[1] == "invalid_request"


def test_a_body_over_a_megabyte_is_not_read(key: str) -> None:
    assert refusal(send(b"a=" + b"x" * 1_048_577, key=key))[:2] == (413, "invalid_request")


def test_parameters_in_the_url_are_refused(body: dict[str, Any], key: str) -> None:
    answer = send(body, key=key, path=f"/oauth/token?{urlencode({'scope': 'read'})}")

    assert refusal(answer)[1:] == ("invalid_request", "Parameters belong in the body, never in the URL")


def test_unknown_and_empty_parameters_are_ignored(body: dict[str, Any], key: str) -> None:
    answer = send({**body, "future": "x", "audience": "", "scope": ""}, key=key)

    assert answer.status_code == 200


def test_wrong_keys_are_counted_by_address_like_everywhere(
    body: dict[str, Any], key: str, settings: Any
) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "unauthenticated": 2}
    for name in redis.client().scan_iter(f"{settings.SERVICE_NAME}:limit:unauthenticated:*"):
        redis.client().delete(name)
    unauthenticated.refused.clear()
    assert send(body, Authorization=basic(id_of(key), key)).status_code == 200
    wrong = keys.new_secret(Environment.LIVE)

    answers = [send(body, Authorization=basic("x", wrong)) for _ in range(3)]
    by_post = send({**body, "client_id": "x", "client_secret": wrong})
    known = send(body, Authorization=basic(id_of(key), key))
    known_by_post = send({**body, "client_id": id_of(key), "client_secret": key})
    unauthenticated.refused.clear()

    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert refusal(by_post)[:2] == (429, "temporarily_unavailable")
    assert int(by_post["Retry-After"]) >= 1
    assert (known.status_code, known_by_post.status_code) == (200, 200)


def test_each_key_has_its_rate_limit(body: dict[str, Any], key: str, settings: Any) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "key": 1}

    first, second = (send(body, Authorization=basic(id_of(key), key)) for _ in range(2))

    assert (first.status_code, first["X-RateLimit-Limit"]) == (200, "1")
    assert refusal(second)[:2] == (429, "temporarily_unavailable")


def test_what_has_no_view_answers_in_the_same_form(key: str) -> None:
    client = Client(raise_request_exception=False)

    unknown = client.post("/oauth/nothing")
    other_method = client.get("/oauth/token", headers={"Authorization": f"Bearer {key}"})
    other_host = client.post("/oauth/token", headers={"Host": "evil.example"})

    assert refusal(unknown)[:2] == (404, "invalid_request")
    assert refusal(other_method)[:2] == (405, "invalid_request")
    assert refusal(other_host)[:2] == (400, "invalid_request")


def test_nothing_secret_is_logged_or_told(
    body: dict[str, Any], key: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = keys.new_secret(Environment.LIVE)

    answers = [
        send({**body, "scope": 'a"b'}, key=key),
        send(body, Authorization=basic("x", wrong)),
        send({**body, "subject_token": body["subject_token"] + "x"}, key=key),
    ]

    told = caplog.text + "".join(answer.content.decode() for answer in answers)
    assert not any(secret in told for secret in (key, wrong, body["subject_token"]))
