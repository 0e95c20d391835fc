"""Requests that are cut off in transit, to a running stack: nothing of them is stored, claimed or done."""

import json
from collections.abc import Callable
from contextlib import closing, suppress
from uuid import uuid4

import pytest

from compliance.tests.stack import Stack
from events.tests.raw_http import Connection, body_for

pytestmark = [pytest.mark.slow, pytest.mark.drill]

CHUNKED = "Transfer-Encoding: chunked"


def half_close(connection: Connection) -> None:
    connection.finish()
    with suppress(ConnectionError):
        assert connection.receive().status == 400


def malformed(connection: Connection) -> None:
    connection.send(b"zz\r\n")
    assert connection.receive().status == 400


ENDINGS = [half_close, malformed, Connection.close, Connection.reset]


def cut_off(connection: Connection, end: Callable[[Connection], None], head: bytes, body: bytes) -> None:
    """Send a head and one whole chunk, and never the last one."""
    with closing(connection):
        connection.send(head + b"%x\r\n%s\r\n" % (len(body), body))
        end(connection)


@pytest.mark.parametrize("end", ENDINGS)
def test_batch_is_not_stored_and_its_idempotency_key_stays_free(
    stack: Stack, end: Callable[[Connection], None]
) -> None:
    agent, key = stack.new_agent(), uuid4()
    assert stack.certify(agent).status_code == 201
    lines = [body_for(agent, sessionId=f"{number}") + b"\n" for number in range(6)]
    options = {"content_type": "application/x-ndjson", "path": "/v1/events/batch"}
    broken = Connection(stack)

    cut_off(broken, end, broken.head(CHUNKED, f"Idempotency-Key: {key}", **options), b"".join(lines[:3]))

    whole = b"".join(lines)
    with closing(Connection(stack)) as again:
        head = again.head(f"Content-Length: {len(whole)}", f"Idempotency-Key: {key}", **options)
        assert again.ask(head + whole).status in (200, 201)
    assert len(stack.call("GET", f"/v1/events?agent_id={agent}").json()["data"]) == 6


@pytest.mark.parametrize("end", ENDINGS)
def test_secret_is_not_rotated(stack: Stack, end: Callable[[Connection], None]) -> None:
    made = stack.call("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1/", "events": ["risk.alert"]})
    webhook = made.json()["data"]["id"]
    broken = Connection(stack)
    body = json.dumps({"overlap_seconds": 0}).encode()

    cut_off(broken, end, broken.head(CHUNKED, path=f"/v1/webhooks/{webhook}/rotate-secret"), body)

    audit = stack.call("GET", "/v1/audit-log?event_type=webhook.secret_rotated&limit=100").json()["data"]
    assert webhook not in {entry["affected_id"] for entry in audit}
