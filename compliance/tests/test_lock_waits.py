"""Writes that wait for a lock in vain: 409, what was not done, and no word of an outage."""

from typing import Any

import pytest
from django.db import connection

from certificates.tests.factories import make_certified_agent
from compliance.core.errors import Busy
from compliance.tests.client import ApiClient
from compliance.tests.owner import locked_table
from tenancy.tests.factories import make_key, make_tenant

HIGH = {"action_type": "unauthorized_access_attempt"}
ISSUER = {"issuer": "https://idp.example", "audiences": ["us"]}
STREAM = {"delivery": {"method": "urn:ietf:rfc:8936"}}
HOOK = {"url": "https://example.com/hook", "events": ["agent.high_risk"]}


@pytest.mark.parametrize(
    ("table", "method", "path", "body"),
    [
        ("agents_agent", "patch", "/v1/agents/{agent}", {"name": "new"}),
        ("agents_agent", "post", "/v1/agents/{agent}/suspend", {"reason": "why"}),
        ("agents_agent", "post", "/v1/agents/{agent}/retire", {"reason": "why"}),
        ("agents_agent", "post", "/v1/agents/{agent}/renew", {}),
        ("agents_agent", "post", "/v1/events", {"agent_id": "{agent}", **HIGH}),
        ("certificates_certificate", "post", "/v1/certificates/{certificate}/revoke", {"reason": "why"}),
        ("certificates_certificate", "post", "/v1/agents/{agent}/suspend", {"reason": "why"}),
        ("tenancy_tenant", "post", "/v1/webhooks", HOOK),
        ("tenancy_tenant", "post", "/v1/trusted-issuers", ISSUER),
        ("tenancy_tenant", "post", "/v1/ssf/streams", STREAM),
        ("webhooks_webhook", "post", "/v1/webhooks", HOOK),
        ("api_idempotencyrecord", "post", "/v1/webhooks", HOOK),
    ],
)
def test_write_that_waits_in_vain_is_409(
    committed: None, api: ApiClient, table: str, method: str, path: str, body: dict[str, Any]
) -> None:
    tenant = make_tenant()
    agent = make_certified_agent(tenant)
    names = {"agent": str(agent.id), "certificate": str(agent.certificates.get().id)}
    given = {name: value.format(**names) if isinstance(value, str) else value for name, value in body.items()}
    client = api.as_key(make_key(tenant))
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 300")
    try:
        with locked_table(f"{table} IN EXCLUSIVE MODE"):
            answer = getattr(client, method)(path.format(**names), given, Idempotency_Key="k")
    finally:
        connection.close()

    assert (answer.status_code, answer.json()) == (409, {"error": Busy.message})
    assert answer.headers["Retry-After"] == "1"


def test_events_that_wait_in_vain_are_409_each_and_leave_the_others(committed: None, api: ApiClient) -> None:
    tenant = make_tenant()
    agent = make_certified_agent(tenant)
    client, rival = api.as_key(make_key(tenant)), connection.copy()
    low, high = ({"agent_id": str(agent.id), "action_type": "api_call"}, {"agent_id": str(agent.id), **HIGH})
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 300")
    try:
        with rival.cursor() as cursor:
            cursor.execute("BEGIN; SELECT FROM agents_agent WHERE id = %s FOR UPDATE", [agent.id])
        answer = client.post("/v1/events/batch", {"events": [low, high, low]}, Idempotency_Key="k")
    finally:
        rival.close()
        connection.close()

    assert [result["status"] for result in answer.json()["data"]] == [201, 409, 201]
