"""Pushes to real receivers on loopback, well and badly behaved."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.outbound.tests.receivers import (
    Receiver,
    Script,
    answer,
    cut_short,
    drip_headers,
    huge_redirect,
    nonsense,
    receiving,
    reset,
    silence,
)
from signals import streams
from signals.models import Signal, Stream
from signals.sending.sender import SignalSender
from signals.tests.factories import (
    ACTOR,
    derive,
    make_certified_agent,
    make_push_stream,
    read_token,
)
from signals.vocabulary import StreamStatus
from tenancy.models import Tenant

pytestmark = pytest.mark.usefixtures("empty_streams", "loopback")

ACCEPTED = answer(202, b"")


def send() -> None:
    """One turn of a sender, to the end of what it begins."""
    SignalSender(Environment.LIVE, size=32).run_until_idle(seconds=0)


def due_again(stream: Stream) -> None:
    Stream.objects.filter(id=stream.id).update(next_attempt_at=now())


def waiting(stream: Stream) -> int:
    return Signal.objects.of(stream).waiting().count()


def stream_with_signals(tenant: Tenant, receiver: Receiver, count: int = 1) -> Stream:
    stream = make_push_stream(tenant, receiver.url, "Bearer receivers-own")
    for _ in range(count):
        make_certified_agent(tenant)
    derive()
    return stream


def refusal(code: str) -> Script:
    return answer(400, json.dumps({"err": code, "description": "no"}).encode())


def test_token_is_pushed_once_with_the_receivers_authorization(tenant: Tenant) -> None:
    with receiving(ACCEPTED) as receiver:
        stream = stream_with_signals(tenant, receiver)
        send()
        send()

    (request,) = receiver.received
    assert request.headers["content-type"] == "application/secevent+jwt"
    assert request.headers["authorization"] == "Bearer receivers-own"
    claims = read_token(request.body.decode(), audience=stream.audience)
    assert claims["iss"] == settings.TOKEN_ISSUER
    assert waiting(stream) == 0
    stream.refresh_from_db()
    assert stream.last_delivered_at is not None
    assert stream.lease is None


@pytest.mark.parametrize(
    "script",
    [
        answer(401),
        answer(400, b"not json"),
        answer(400, b"[" * 5000),
        answer(302, b"", "Location: http://169.254.169.254/"),
        refusal("access_denied"),
        *(silence, drip_headers, reset, cut_short, huge_redirect, nonsense),
    ],
)
def test_token_waits_for_a_receiver_that_fails(tenant: Tenant, settings: Any, script: Script) -> None:
    hangs = script in (silence, drip_headers)
    settings.SIGNALS_TIMEOUT_SECONDS = 1.0 if hangs else 30.0
    with receiving(script) as receiver:
        stream = stream_with_signals(tenant, receiver, count=2)
        send()
        due_again(stream)
        send()

    stream.refresh_from_db()
    # On a busy machine the second may pass before there is a connection.
    assert receiver.connections == 2 or (hangs and receiver.connections < 2)
    assert waiting(stream) == 2
    assert stream.consecutive_failures == 2
    assert stream.last_error
    assert stream.next_attempt_at is not None
    assert stream.lease is None


def test_repetition_is_the_same_token(tenant: Tenant) -> None:
    with receiving(answer(500)) as receiver:
        stream = stream_with_signals(tenant, receiver)
        send()
        due_again(stream)
        send()

    first, second = receiver.received
    assert first.body == second.body


def test_token_that_its_receiver_refuses_is_set_aside_for_those_behind(tenant: Tenant) -> None:
    with receiving(refusal("invalid_request")) as receiver:
        stream = stream_with_signals(tenant, receiver, count=2)
        first, second = Signal.objects.of(stream).waiting()
        for _ in range(4):
            due_again(stream)
            send()

    first.refresh_from_db()
    assert first.refused_at is not None
    assert "invalid_request" in first.error
    assert list(Signal.objects.of(stream).waiting()) == [second]


def test_receiver_that_fails_for_long_is_paused_with_an_audit_entry(tenant: Tenant) -> None:
    with receiving(answer(500)) as receiver:
        stream = stream_with_signals(tenant, receiver)
        long_ago = now() - timedelta(seconds=settings.SIGNALS_PAUSE_AFTER_SECONDS)
        Stream.objects.filter(id=stream.id).update(failing_since=long_ago, consecutive_failures=1)
        send()
        due_again(stream)
        send()

    assert len(receiver.received) == 1
    stream.refresh_from_db()
    assert stream.status == StreamStatus.PAUSED
    entry = AuditEntry.objects.get(affected_id=str(stream.id), event_type="signal_stream.status_changed")
    assert entry.actor_id == "signals"


def test_paused_stream_goes_on_where_it_stopped(tenant: Tenant) -> None:
    with receiving(ACCEPTED) as receiver:
        stream = stream_with_signals(tenant, receiver)
        move: Any = {"tenant_id": tenant.id, "stream_id": stream.id, "actor": ACTOR, "now": now()}
        streams.set_status(status=StreamStatus.PAUSED, **move)
        send()
        before = len(receiver.received)
        streams.set_status(status=StreamStatus.ENABLED, **move)
        send()

    assert before == 0
    assert waiting(stream) == 0


def test_stream_that_another_sender_works_on_is_left_alone(tenant: Tenant) -> None:
    with receiving(ACCEPTED) as receiver:
        stream = stream_with_signals(tenant, receiver)
        Stream.objects.filter(id=stream.id).update(
            lease=stream.id, leased_until=now() + timedelta(seconds=60)
        )
        send()
        before = len(receiver.received)
        Stream.objects.filter(id=stream.id).update(leased_until=now())
        send()

    assert before == 0
    assert waiting(stream) == 0


def test_private_addresses_are_not_connected_to(tenant: Tenant, settings: Any) -> None:
    with receiving(ACCEPTED) as receiver:
        stream = stream_with_signals(tenant, receiver)
        settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = False
        send()

    assert receiver.connections == 0
    assert waiting(stream) == 1


def test_authorization_that_no_key_opens_stops_its_stream_only(tenant: Tenant) -> None:
    with receiving(ACCEPTED) as receiver:
        broken = make_push_stream(tenant, receiver.url, "Bearer x")
        Stream.objects.filter(id=broken.id).update(authorization=b"nonsense")
        stream = stream_with_signals(tenant, receiver)
        send()

    broken.refresh_from_db()
    assert "cannot be decrypted" in broken.last_error
    assert waiting(broken) == 1
    assert waiting(stream) == 0


def test_sandbox_sends_its_own_only(tenant: Tenant) -> None:
    with receiving(ACCEPTED) as receiver:
        stream = stream_with_signals(tenant, receiver)
        with environments.use(Environment.TEST):
            SignalSender(Environment.TEST, size=8).run_until_idle(seconds=0)

    assert not receiver.received
    assert waiting(stream) == 1
