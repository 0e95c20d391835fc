"""`/v1/ssf/streams`, `/v1/ssf/status` and `/v1/ssf/verify`."""

from typing import Any

import pytest

from auditlog.models import AuditEntry
from compliance.tests.client import ApiClient
from signals.models import Signal, Stream
from signals.tests.factories import make_poll_stream, make_push_stream
from signals.vocabulary import SUPPORTED_EVENTS, DeliveryMethod, SignalEvent, StreamStatus
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key

STREAMS, STATUS, VERIFY = "/v1/ssf/streams", "/v1/ssf/status", "/v1/ssf/verify"
PUSH = {"method": DeliveryMethod.PUSH.value, "endpoint_url": "https://gateway.example.com/signals"}


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


def test_push_stream_is_made_and_its_authorization_never_shown(client: ApiClient) -> None:
    body = {"delivery": {**PUSH, "authorization_header": "Bearer never-shown"}, "description": "Gateway"}

    answer = client.post(STREAMS, body)

    assert answer.status_code == 201, answer.content
    made = answer.json()
    stream = Stream.objects.get(id=made["stream_id"])
    assert made["delivery"] == PUSH
    assert made["events_delivered"] == list(SUPPORTED_EVENTS)
    assert made["aud"].endswith(made["stream_id"])
    assert b"never-shown" not in answer.content
    assert b"never-shown" not in bytes(stream.authorization or b"")
    (entry,) = AuditEntry.objects.filter(affected_id=str(stream.id))
    assert entry.event_type == "signal_stream.created"
    assert "gateway.example.com" not in str(entry.metadata)


def test_stream_without_delivery_is_polled_at_its_own_address(client: ApiClient) -> None:
    made = client.post(STREAMS, {}).json()

    assert made["delivery"]["method"] == DeliveryMethod.POLL
    assert made["delivery"]["endpoint_url"].endswith(f"{STREAMS}/{made['stream_id']}/poll")


@pytest.mark.parametrize(
    "body",
    [
        {"delivery": {"method": DeliveryMethod.PUSH.value}},
        {"delivery": {**PUSH, "endpoint_url": "http://gateway.example.com/"}},
        {"delivery": {**PUSH, "endpoint_url": "https://169.254.169.254/latest"}},
        {"delivery": {**PUSH, "endpoint_url": "https://localhost/"}},
        {"delivery": {**PUSH, "endpoint_url": "https://user:pass@gateway.example.com/"}},
        {"delivery": {**PUSH, "authorization_header": "Bearer a\r\nX-Injected: b"}},
        {"delivery": {**PUSH, "authorization_header": "Bearer \u00fc"}},
        {"aud": "https://receiver.example"},
    ],
)
def test_invalid_streams_are_refused(client: ApiClient, body: dict[str, Any]) -> None:
    answer = client.post(STREAMS, body)

    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]


def test_tenant_has_a_limited_number_of_streams(client: ApiClient, settings: Any) -> None:
    settings.SIGNAL_STREAMS_PER_TENANT = 1
    assert client.post(STREAMS, {}).status_code == 201

    assert client.post(STREAMS, {}).status_code == 409


def test_streams_are_listed_and_fetched(client: ApiClient, tenant: Tenant) -> None:
    older, newer = make_poll_stream(tenant), make_push_stream(tenant, authorization="Bearer x")

    listed = client.get(STREAMS).json()
    one = client.get(f"{STREAMS}?stream_id={older.id}").json()

    assert [row["stream_id"] for row in listed] == [str(newer.id), str(older.id)]
    assert one == listed[1]


def test_changed_delivery_replaces_the_old_with_its_authorization(client: ApiClient, tenant: Tenant) -> None:
    stream = make_push_stream(tenant, authorization="Bearer x")
    moved = {**PUSH, "endpoint_url": "https://other.example.com/"}

    answer = client.patch(STREAMS, {"stream_id": str(stream.id), "delivery": moved})

    assert answer.status_code == 200, answer.content
    assert answer.json()["delivery"] == moved
    stream.refresh_from_db()
    assert stream.authorization is None


def test_unnamed_fields_stay(client: ApiClient, tenant: Tenant) -> None:
    stream = make_push_stream(tenant, authorization="Bearer x", description="old")

    body = {"stream_id": str(stream.id), "description": "new", "events_requested": []}
    answer = client.patch(STREAMS, body)

    assert answer.json()["description"] == "new"
    assert answer.json()["events_delivered"] == []
    stream.refresh_from_db()
    assert stream.authorization is not None


def test_stream_is_removed_with_what_waits(client: ApiClient, tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)
    client.post(VERIFY, {"stream_id": str(stream.id)})

    assert client.delete(f"{STREAMS}?stream_id={stream.id}").status_code == 204

    assert client.get(f"{STREAMS}?stream_id={stream.id}").status_code == 404
    assert not Signal.objects.filter(stream_id=stream.id).exists()


def test_status_is_changed_and_told(client: ApiClient, tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)

    changed = client.post(STATUS, {"stream_id": str(stream.id), "status": "paused", "reason": "Release"})

    expected = {"stream_id": str(stream.id), "status": "paused", "reason": "Release"}
    assert changed.json() == expected
    assert client.get(f"{STATUS}?stream_id={stream.id}").json() == expected
    assert AuditEntry.objects.filter(
        affected_id=str(stream.id), event_type="signal_stream.status_changed"
    ).exists()


def test_verification_event_carries_the_state(client: ApiClient, tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)

    answer = client.post(VERIFY, {"stream_id": str(stream.id), "state": "abc"})

    assert answer.status_code == 204
    (signal,) = Signal.objects.of(stream).waiting()
    assert signal.claims["events"] == {SignalEvent.VERIFICATION.value: {"state": "abc"}}
    assert signal.claims["sub_id"] == {"format": "opaque", "id": str(stream.id)}


def test_verification_is_given_once_in_a_while_and_not_by_disabled_streams(
    client: ApiClient, tenant: Tenant
) -> None:
    stream, disabled = make_poll_stream(tenant), make_poll_stream(tenant)
    Stream.objects.filter(id=disabled.id).update(status=StreamStatus.DISABLED)
    client.post(VERIFY, {"stream_id": str(stream.id)})

    assert client.post(VERIFY, {"stream_id": str(stream.id)}).status_code == 409
    assert client.post(VERIFY, {"stream_id": str(disabled.id)}).status_code == 422


def calls(stream_id: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    return [
        ("get", f"{STREAMS}?stream_id={stream_id}", None),
        ("patch", STREAMS, {"stream_id": stream_id, "description": "mine"}),
        ("delete", f"{STREAMS}?stream_id={stream_id}", None),
        ("post", f"{STREAMS}/{stream_id}/poll", {"returnImmediately": True}),
        ("get", f"{STATUS}?stream_id={stream_id}", None),
        ("post", STATUS, {"stream_id": stream_id, "status": "paused"}),
        ("post", VERIFY, {"stream_id": stream_id}),
    ]


def ask(client: ApiClient, call: tuple[str, str, dict[str, Any] | None]) -> int:
    method, path, body = call
    answer = getattr(client, method)(path, *([body] if body is not None else []))
    status: int = answer.status_code
    return status


def test_other_tenants_and_the_other_environment_find_no_stream(api: ApiClient, tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)

    for key in (make_key(make_tenant()), make_test_key(tenant)):
        client = api.as_key(key)
        assert client.get(STREAMS).json() == []
        assert {ask(client, call) for call in calls(str(stream.id))} == {404}


@pytest.mark.parametrize("stream_id", ["none", "0199f2a4-6a00-7b00-8c00-5e5e5e5e5e5e"])
def test_unknown_and_malformed_ids_are_not_found(client: ApiClient, stream_id: str) -> None:
    by_query = 404 if "-" in stream_id else 400

    for call in calls(stream_id):
        assert ask(client, call) == (by_query if "?" in call[1] else 404)


def test_configuration_names_keys_and_endpoints_of_its_environment(api: ApiClient) -> None:
    live = api.get("/.well-known/ssf-configuration")
    test = api.get("/.well-known/ssf-configuration?environment=test").json()

    assert live.status_code == 200
    assert live.json()["delivery_methods_supported"] == ["urn:ietf:rfc:8935", "urn:ietf:rfc:8936"]
    assert live.json()["jwks_uri"].endswith("/.well-known/jwks.json")
    assert test["jwks_uri"].endswith("/.well-known/jwks.json?environment=test")
    assert live.json()["issuer"] == test["issuer"]
