"""Every metric is documented, and none is dead: the life of an agent, and what goes wrong, move each."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError
from redis.exceptions import RedisError

from auditlog import tasks as auditlog_tasks
from certificates.tests.factories import make_certified_agent
from compliance.core import tasks
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.observing.metrics import note_refused
from compliance.observing.tests.catalogue import collectors, documented_names
from compliance.outbound.tests.receivers import answers, receiving
from compliance.serving.tests import served
from compliance.stores import redis, sql
from compliance.tests.web import Worker
from delegation import services as delegation
from signals.models import Signal, Stream
from signals.sending.sender import SignalSender
from signals.tests.factories import derive, make_push_stream
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant
from webhooks.models import Delivery, Pace, Webhook
from webhooks.sending.sender import Sender
from webhooks.tests.factories import make_delivery, make_webhook
from webhooks.vocabulary import EventName

DOCUMENT = Path(settings.BASE_DIR) / "docs/observability.md"


def test_document_has_every_metric_with_its_labels() -> None:
    section = DOCUMENT.read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^- `(\w+)` \(([^)]*)\): ", section, re.MULTILINE)

    written = {f"compliance_{name}": set(labels.replace(",", " ").split()) for name, labels in rows}

    assert written == documented_names()


@pytest.fixture
def tenant(committed: None, settings: Any) -> Tenant:
    """A tenant, and nothing to send that other tests left behind; receivers on this machine are allowed."""
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = settings.WEBHOOK_ALLOW_HTTP = True
    Signal.objects.all().delete()
    Stream.objects.all().delete()
    Delivery.objects.pending().update(status="cancelled", next_attempt_at=None, completed_at=now())
    delegation.bootstrap(now=now())
    return make_tenant()


def totals() -> dict[str, float]:
    """How much each metric has counted, over all labels."""
    return {
        one._name: sum(
            sample.value
            for family in one.collect()
            for sample in family.samples
            if sample.name.endswith(("_total", "_count"))
        )
        for one in collectors()
    }


def test_life_of_an_agent_moves_every_metric(web: Worker, tenant: Tenant) -> None:
    before = totals()

    with receiving(answers(200)) as receiver:
        make_webhook(tenant, receiver.url, EventName.values)
        make_push_stream(tenant, receiver.url)
        live_and_be_stopped(web, tenant)
        Sender(Environment.LIVE, size=4).run_until_idle(seconds=30)
        derive()
        SignalSender(Environment.LIVE, size=4).run_until_idle(seconds=30)
    fail()

    after = totals()
    assert {name for name in after if after[name] <= before[name]} == set()


@pytest.mark.parametrize(
    "changes", [{"pace": Pace.SLOW}, {"consecutive_failures": 1}], ids=["slow", "failing"]
)
def test_bad_endpoint_does_not_make_the_service_look_late(tenant: Tenant, changes: dict[str, Any]) -> None:
    with receiving(answers(200)) as receiver:
        webhook = make_webhook(tenant, receiver.url)
        Webhook.objects.filter(id=webhook.id).update(**changes)
        make_delivery(webhook, at=now() - timedelta(hours=1))
        before = totals()

        Sender(Environment.LIVE, size=8).run_until_idle(seconds=30)

    after = totals()
    assert len(receiver.received) == 1
    assert after["compliance_webhook_attempts"] > before["compliance_webhook_attempts"]
    assert after["compliance_webhook_delay_seconds"] == before["compliance_webhook_delay_seconds"]


def live_and_be_stopped(web: Worker, tenant: Tenant) -> None:
    """Register and certify, then three events that stop the agent."""
    agent, key = make_certified_agent(tenant), make_key(tenant)
    body = {
        "agent_id": str(agent.id),
        "action_type": "unauthorized_access_attempt",
        "details": {"severity": "critical"},
    }
    octets = json.dumps(body).encode()
    headers = [("host", "testserver"), ("content-type", "application/json")]
    headers += [("content-length", str(len(octets))), ("authorization", f"Bearer {key}")]

    statuses = [web.run(web.exchange("POST", "/v1/events", headers, octets)).status for _ in range(4)]

    assert statuses == [201, 201, 201, 422]
    auditlog_tasks.seal.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)


def fail() -> None:
    """A statement and a round trip that fail, and a request that is refused before its end."""
    with pytest.raises(DatabaseError):
        sql.prepared("SELECT 1 / 0", ())
    with pytest.raises(RedisError):
        redis.Script("return redis.error_reply('no')").run((1, "any"))
    with served.serving(refused=note_refused) as server:
        assert server.tell(b"nonsense\r\n\r\n", half_close=True).startswith(b"HTTP/1.1 400")


WAITING = [f"{tasks._PREFIX}{queue}" for queue in tasks.QUEUES]


def test_message_tells_how_long_it_has_waited() -> None:
    redis.broker().delete(*WAITING)
    none = tasks.oldest_waiting()
    began = now() - timedelta(seconds=1)

    tasks.enqueue("webhooks.sweep")
    first = tasks.oldest_waiting()
    tasks.enqueue("webhooks.sweep")
    tasks.enqueue("auditlog.seal")

    assert none is None
    assert first is not None
    assert began < first <= now()
    assert (tasks.oldest_waiting(), tasks.waiting()) == (first, 3)
    redis.broker().delete(*WAITING)


@pytest.mark.parametrize("message", [b"x", b"[]", b"{}", b'{"headers": {}}', b'{"headers": null}'])
def test_message_that_does_not_say_is_no_fault(message: bytes) -> None:
    redis.broker().delete(*WAITING)
    redis.broker().lpush(WAITING[0], message)

    found = tasks.oldest_waiting()

    redis.broker().delete(*WAITING)
    assert found is None
