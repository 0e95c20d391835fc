"""`POST /v1/ssf/streams/{id}/poll`."""

import json
from typing import Any

import pytest

from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from delegation.tests.factories import ACTOR
from delegation.token_keys import keys
from signals import polling
from signals.models import Signal, Stream
from signals.tests.factories import (
    derive,
    make_certified_agent,
    make_poll_stream,
    make_push_stream,
    read_token,
)
from signals.vocabulary import SignalEvent, StreamStatus
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


@pytest.fixture
def stream(tenant: Tenant) -> Stream:
    """A stream in which two signals wait."""
    made = make_poll_stream(tenant)
    make_certified_agent(tenant)
    make_certified_agent(tenant)
    derive()
    return made


def poll(client: ApiClient, stream: Stream, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/ssf/streams/{stream.id}/poll", {"returnImmediately": True, **body})
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_tokens_verify_with_the_published_keys(client: ApiClient, stream: Stream) -> None:
    answer = poll(client, stream)

    assert answer["moreAvailable"] is False
    assert len(answer["sets"]) == 2
    for jti, token in answer["sets"].items():
        claims = read_token(token, audience=stream.audience)
        assert claims["jti"] == jti
        assert not {"sub", "exp"} & set(claims)
        assert list(claims["events"]) == [SignalEvent.CREDENTIAL_CHANGE.value]


@pytest.mark.parametrize(
    "body", [{"ack": ["JTI"]}, {"setErrs": {"JTI": {"err": "invalid_key", "description": "x"}}}]
)
def test_key_that_only_reads_deletes_no_signals(
    api: ApiClient, tenant: Tenant, stream: Stream, body: dict[str, Any]
) -> None:
    reader = api.as_key(make_key(tenant, ["signals:read"]))
    jti = next(iter(poll(reader, stream)["sets"]))
    told = json.loads(json.dumps(body).replace("JTI", jti))

    answer = reader.post(f"/v1/ssf/streams/{stream.id}/poll", {"returnImmediately": True, **told})

    assert answer.status_code == 403
    assert answer.json() == {"error": "This API key lacks the scope signals:write"}
    assert jti in poll(reader, stream)["sets"]


def test_tokens_come_again_unchanged_until_acknowledged(client: ApiClient, stream: Stream) -> None:
    first = poll(client, stream)["sets"]

    assert poll(client, stream)["sets"] == first
    one, other = first
    assert poll(client, stream, ack=[one])["sets"] == {other: first[other]}
    assert poll(client, stream, ack=[one, other])["sets"] == {}


def test_refused_tokens_do_not_come_again(client: ApiClient, stream: Stream) -> None:
    (jti, *_), errs = poll(client, stream)["sets"], {"err": "invalid_key", "description": "no such key"}

    answer = poll(client, stream, setErrs={jti: errs})

    assert jti not in answer["sets"]
    assert Signal.objects.get(jti=jti).error == "invalid_key: no such key"


def test_oldest_come_first_and_more_is_told(client: ApiClient, stream: Stream) -> None:
    first = poll(client, stream, maxEvents=1)

    assert first["moreAvailable"] is True
    assert list(first["sets"]) == [str(Signal.objects.of(stream).waiting()[0].jti)]
    assert poll(client, stream, maxEvents=0) == {"sets": {}, "moreAvailable": True}


def test_huge_number_is_taken_as_the_most(client: ApiClient, stream: Stream) -> None:
    assert len(poll(client, stream, maxEvents=2**53 - 1)["sets"]) == 2


def test_foreign_unknown_and_malformed_acknowledgements_do_nothing(
    client: ApiClient, stream: Stream, tenant: Tenant
) -> None:
    sibling = make_poll_stream(tenant)
    jtis = list(poll(client, stream)["sets"])

    poll(client, sibling, ack=[*jtis, str(new_id()), "nonsense", ""], setErrs={jtis[0]: {"err": "x"}})

    assert list(poll(client, stream)["sets"]) == jtis


def test_signal_that_was_not_handed_out_cannot_be_acknowledged(client: ApiClient, stream: Stream) -> None:
    jtis = [str(signal.jti) for signal in Signal.objects.of(stream).waiting()]

    assert list(poll(client, stream, ack=jtis)["sets"]) == jtis


@pytest.mark.parametrize(
    "body",
    [
        {"setErrs": {"x": {"description": "no code"}}},
        {"setErrs": {"x": {"err": "a\x00b"}}},
    ],
)
def test_malformed_polls_are_refused(client: ApiClient, stream: Stream, body: dict[str, Any]) -> None:
    answer = client.post(f"/v1/ssf/streams/{stream.id}/poll", body)

    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]


def test_paused_stream_gives_nothing_and_push_stream_is_not_polled(
    client: ApiClient, stream: Stream, tenant: Tenant
) -> None:
    Stream.objects.filter(id=stream.id).update(status=StreamStatus.PAUSED)

    assert poll(client, stream)["sets"] == {}
    pushed = make_push_stream(tenant)
    assert client.post(f"/v1/ssf/streams/{pushed.id}/poll", {}).status_code == 422


def test_poll_that_may_wait_returns_at_once_where_something_waits(
    client: ApiClient, stream: Stream, settings: Any
) -> None:
    settings.SIGNALS_LONG_POLL_SECONDS = 600.0

    assert len(poll(client, stream, returnImmediately=False)["sets"]) == 2


def test_poll_that_may_wait_ends_in_time(client: ApiClient, tenant: Tenant, settings: Any) -> None:
    settings.SIGNALS_LONG_POLL_SECONDS = 0.2

    assert poll(client, make_poll_stream(tenant), returnImmediately=False)["sets"] == {}


def test_poll_beyond_the_tenants_share_is_told_when_to_come_again(
    client: ApiClient, api: ApiClient, tenant: Tenant, settings: Any
) -> None:
    settings.SIGNALS_LONG_POLL_SECONDS = 0.2
    body, stream = {"returnImmediately": False}, make_poll_stream(tenant)
    path, other_tenant = "/v1/ssf/streams/{}/poll", make_tenant()
    with polling.SLOTS.take(tenant.id):
        refused = client.post(path.format(stream.id), body)
        at_once = poll(client, stream)
        other = api.as_key(make_key(other_tenant)).post(path.format(make_poll_stream(other_tenant).id), body)

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert at_once["sets"] == {}
    assert other.status_code == 200


def test_token_of_a_withdrawn_key_is_signed_anew_under_its_jti(client: ApiClient, stream: Stream) -> None:
    before = poll(client, stream)["sets"]
    keys.replace_compromised(actor=ACTOR, now=now())

    after = poll(client, stream)["sets"]

    assert set(after) == set(before)
    for jti, token in after.items():
        assert token != before[jti]
        assert read_token(token, audience=stream.audience)["jti"] == jti
