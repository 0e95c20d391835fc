"""The formats of deliveries over a real receiver, their signatures, and the receiver's guide."""

import base64
import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from compliance.api.answers import service_header
from compliance.core.clock import now
from compliance.outbound import http_client
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import Outcome, RequestOptions
from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key
from webhooks import publishing
from webhooks.models import Format, Webhook
from webhooks.openapi import EXAMPLE_DATA
from webhooks.sending import signature
from webhooks.sending.formats import formed
from webhooks.tests.factories import make_webhook_with_secret
from webhooks.tests.steps import deliver
from webhooks.vocabulary import EventName

AGENT = str(uuid4())


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


# --- Secrets and signatures, by the published vectors ----------------------------------------------


def test_signature_matches_the_published_vector() -> None:
    # GitHub, "Validating webhook deliveries".
    found = signature.sign(b"Hello, World!", "It's a Secret to Everybody")

    assert found == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def test_standard_signature_matches_the_published_vector() -> None:
    # Standard Webhooks, reference libraries' tests.
    found = signature.sign_standard(
        b'{"test": 2432232314}',
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
    )

    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_signature_is_keyed_with_the_whole_secret_string() -> None:
    secret = signature.new_secret()

    found = signature.sign(b"{}", secret)

    assert found == "sha256=" + hmac.digest(secret.encode(), b"{}", hashlib.sha256).hex()


def test_secret_carries_256_bits_behind_its_prefix() -> None:
    secret = signature.new_secret()

    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert secret != signature.new_secret()
    assert signature.hint_of(secret) == secret[-4:]


def test_header_takes_the_service_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert service_header("Signature") == "X-Service-Signature"

    monkeypatch.setattr(settings, "SERVICE_NAME", "acme")

    assert service_header.__wrapped__("Signature") == "X-Acme-Signature"


# --- The receiver's guide: its receiver against the real sender, its table ------------------------


GUIDE = (Path(settings.BASE_DIR) / "docs/webhooks.md").read_text()
OPTIONS = RequestOptions(UrlPolicy(allow_http=True, allow_private=True), timeout_seconds=10)
BODY = b'{"id":"1","event":"webhook.test","created_at":"2026-11-20T09:15:00Z","data":{}}'


def snippet() -> str:
    found = re.search(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


@contextmanager
def running(command: list[str], secret: str) -> Iterator[str]:
    """The receiver as a process of its own; its URL once it listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_listening(port)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


def wait_until_listening(port: int) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)


def post(url: str, header: str | None, previous: str | None = None) -> Outcome:
    headers = {"Content-Type": "application/json"}
    if header is not None:
        headers["X-Service-Signature"] = header
    if previous is not None:
        headers["X-Service-Signature-Previous"] = previous
    return http_client.send(url, body=BODY, headers=headers, options=OPTIONS)


def test_receiver_takes_the_authentic_and_refuses_the_rest(tmp_path: Path) -> None:
    secret = signature.new_secret()
    script = tmp_path / "receiver.txt"
    script.write_text(snippet())

    with running([sys.executable, str(script)], secret) as url:
        authentic = post(url, signature.sign(BODY, secret))
        rotated = post(url, signature.sign(BODY, "whsec_new"), signature.sign(BODY, secret))
        refused = [
            post(url, header)
            for header in (
                None,
                "sha256=",
                signature.sign(BODY + b" ", secret),
                signature.sign(BODY, "whsec_"),
            )
        ]

    assert (authentic.response_status, rotated.response_status) == (204, 204)
    assert [outcome.response_status for outcome in refused] == [401] * 4


@pytest.mark.parametrize("event", EXAMPLE_DATA)
def test_guide_names_each_events_fields(event: str) -> None:
    (row,) = re.findall(rf"^\| `{re.escape(event)}` \|.*\| (.*) \|$", GUIDE, re.MULTILINE)

    assert re.findall(r"`(\w+)`", row) == list(EXAMPLE_DATA[event])
