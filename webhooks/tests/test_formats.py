"""Deliveries as CloudEvents and as messages for Slack, over a real receiver."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from compliance.core.clock import now
from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from webhooks import publishing
from webhooks.models import Format, Webhook
from webhooks.sending import signature
from webhooks.sending.formats import formed
from webhooks.tests.factories import make_webhook_with_secret
from webhooks.tests.steps import deliver
from webhooks.vocabulary import EventName

AGENT = str(uuid4())


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def receiver(loopback: None) -> Iterator[Receiver]:
    with receiving(answer(200)) as found:
        yield found


def delivered(receiver: Receiver, tenant: Tenant, form: Format, data: dict[str, Any]) -> tuple[Any, str]:
    """Publish one event to a webhook of this form; return what the receiver got, and the secret."""
    webhook, secret = make_webhook_with_secret(tenant, receiver.url)
    Webhook.objects.filter(id=webhook.id).update(format=form)
    publishing.publish(tenant_id=tenant.id, name=EventName.CERTIFICATE_REVOKED, data=data, now=now())
    deliver(now())
    (received,) = receiver.received
    return received, secret


def test_cloud_event_is_whole_and_signed(receiver: Receiver, tenant: Tenant) -> None:
    data = {"agent_id": AGENT, "serial_number": "ab", "list": [1]}

    received, secret = delivered(receiver, tenant, Format.CLOUDEVENTS, data)

    event = json.loads(received.body)
    assert received.headers["content-type"] == "application/cloudevents+json"
    assert received.headers["x-service-signature"] == signature.sign(received.body, secret)
    assert event["specversion"] == "1.0"
    assert event["id"] == received.headers["webhook-id"]
    assert (event["type"], event["subject"], event["data"]) == ("certificate.revoked", AGENT, data)
    assert event["environment"] == "live"
    assert event["source"].startswith("http")


def test_slack_message_tells_and_links(receiver: Receiver, tenant: Tenant) -> None:
    received, _ = delivered(
        receiver, tenant, Format.SLACK, {"agent_id": AGENT, "revocation_reason": "stolen"}
    )

    (key,) = message = json.loads(received.body)
    assert key == "text"
    assert "*certificate.revoked* (live)" in message["text"]
    assert "revocation_reason: `stolen`" in message["text"]
    assert f"/admin/live/agents/agent/{AGENT}/change/|Open the agent>" in message["text"]


@pytest.mark.parametrize(
    "value", ["<!channel>", "<https://evil.example|click>", "a\nb", "x" * 5_000, "&lt;", "a`b` *c*"]
)
def test_text_of_others_mentions_nobody_and_links_nowhere(value: str) -> None:
    envelope = {"id": "1", "event": "agent.strike", "created_at": "", "data": {"reason": value}}

    text = json.loads(formed(json.dumps(envelope).encode(), Format.SLACK))["text"]

    assert "<" not in text
    assert text.count("\n") == 1
    assert text.count("`") == 2
    assert len(text) < 400


def test_format_is_chosen_shown_and_changed(api: ApiClient, tenant: Tenant) -> None:
    body = {"url": "https://hooks.example.com/a", "events": ["agent.strike"], "format": "slack"}

    api = api.as_key(make_key(tenant))
    made = api.post("/v1/webhooks", body).json()["data"]
    changed = api.patch(f"/v1/webhooks/{made['id']}", {"format": "cloudevents"}).json()["data"]
    refused = api.patch(f"/v1/webhooks/{made['id']}", {"format": "xml"})

    assert (made["format"], changed["format"], refused.status_code) == ("slack", "cloudevents", 400)
