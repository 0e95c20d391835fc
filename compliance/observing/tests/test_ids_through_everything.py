"""The ids of one request, from its answer to audit entries, tasks and the webhooks that it causes."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core import environments, tasks
from compliance.core.clock import now
from compliance.observing import correlation
from compliance.observing.correlation import Correlation
from compliance.outbound.tests.receivers import answers, receiving
from compliance.serving.tests import served
from compliance.tests.web import Worker
from delegation.oauth.tests.oauth_clients import FORM
from tenancy.tests.factories import make_key, make_tenant
from webhooks.models import Message
from webhooks.tests.factories import make_webhook
from webhooks.tests.steps import deliver
from webhooks.vocabulary import EventName

pytestmark = pytest.mark.usefixtures("committed")

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
IDS = [("x-request-id", "order-7"), ("traceparent", f"00-{TRACE}-{SPAN}-01")]


def post(web: Worker, path: str, key: str, body: Any, kind: str = "application/json") -> Any:
    octets = (urlencode(body) if kind == FORM else json.dumps(body)).encode()
    named = {"host": "testserver", "content-type": kind, "content-length": str(len(octets))}
    headers = [*named.items(), ("authorization", f"Bearer {key}"), *IDS]
    return web.run(web.exchange("POST", path, headers, octets))


def ids_of(entry: AuditEntry) -> tuple[Any, Any]:
    metadata = entry.metadata or {}
    return metadata.get("request_id"), metadata.get("trace_id")


def test_view_hands_its_ids_on_to_audit_entries(web: Worker) -> None:
    key = make_key(make_tenant())

    answer = post(web, "/v1/agents", key, {"name": "bot", "model_hash": "sha256:ab"})

    assert answer.status == 201
    made = AuditEntry.objects.of_type("agent.created").get(affected_id=json.loads(answer.body)["data"]["id"])
    assert ids_of(made) == ("order-7", TRACE)


def test_deferred_event_hands_its_ids_on_to_entries_and_webhooks(web: Worker, settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES = settings.WEBHOOK_ALLOW_HTTP = True
    tenant = make_tenant()
    agent, key = make_certified_agent(tenant), make_key(tenant)
    with receiving(answers(200)) as receiver:
        make_webhook(tenant, receiver.url, [EventName.RISK_ALERT.value])

        answer = post(web, "/v1/events", key, high_event(str(agent.id)))
        deliver(now())

        assert answer.status == 201, answer.body
        assert json.loads(answer.body)["data"]["risk_band"] == "high"
        (sent,) = receiver.received
    high = AuditEntry.objects.for_tenant(tenant.id).of_type("event.high_risk")
    assert {ids_of(one) for one in high} == {("order-7", TRACE)}
    message = Message.objects.get(tenant=tenant)
    assert message.request_id == sent.headers["x-request-id"] == "order-7"
    caused = correlation.parse_traceparent(message.traceparent)
    told = correlation.parse_traceparent(sent.headers["traceparent"])
    assert caused is not None
    assert told is not None
    assert (caused[0], told[0], told[2]) == (TRACE, TRACE, 1)
    assert len({SPAN, caused[1], told[1]}) == 3


def high_event(agent_id: str) -> dict[str, Any]:
    """An act that scores high whatever came before it."""
    return {
        "agent_id": agent_id,
        "action_type": "unauthorized_access_attempt",
        "details": {"severity": "critical"},
    }


def test_task_has_the_ids_of_the_request_that_enqueued_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Correlation | None] = []
    name = "compliance.observing.tests.look"

    def look(**kwargs: Any) -> None:
        found.append(correlation.current())

    tasks.app.task(name=name)(look)
    headers: dict[str, str] = {}
    monkeypatch.setattr(tasks.app, "send_task", lambda *args, **options: headers.update(options["headers"]))
    try:
        with (
            environments.use(environments.Environment.LIVE),
            correlation.use(Correlation("order-7", TRACE, SPAN)),
        ):
            tasks.enqueue(name)
        tasks.app.tasks[name].apply(headers=headers)
        tasks.app.tasks[name].apply(headers={tasks.ENVIRONMENT_HEADER: "live"})
    finally:
        tasks.app.tasks.unregister(name)

    caused, scheduled = found
    assert caused is not None
    assert scheduled is not None
    assert (caused.request_id, caused.trace_id) == ("order-7", TRACE)
    assert caused.span_id != SPAN
    assert scheduled.trace_id != TRACE
    assert correlation.current() is None


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: order-7\r\n\r\n",
        b"GET / HTTP/1.1\r\nX-Request-Id: order-7\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX-Request-Id: order-7\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n",
    ],
    ids=["answer", "two hosts", "too large"],
)
def test_server_answers_with_the_id_it_was_sent(octets: bytes) -> None:
    with served.serving() as server:
        answer = server.tell(octets, half_close=True).lower()

    assert answer.count(b"\r\nx-request-id: order-7\r\n") == 1


@pytest.mark.parametrize(
    "octets", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: a b\r\n\r\n"]
)
def test_server_makes_an_id_where_none_is_good(octets: bytes) -> None:
    with served.serving() as server:
        answer = server.tell(octets, half_close=True).decode().lower()

    (made,) = [line.partition(": ")[2] for line in answer.splitlines() if line.startswith("x-request-id")]
    assert correlation.is_request_id(made)
    assert made != "a b"


def test_django_alone_answers_with_an_id(client: Client) -> None:
    assert client.get("/nowhere", headers={"x-request-id": "order-7"})["x-request-id"] == "order-7"
    assert client.get("/nowhere")["x-request-id"] != client.get("/nowhere")["x-request-id"]
