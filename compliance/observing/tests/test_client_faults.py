"""What clients do wrong fills no log: a line a minute at most for each kind; tracebacks are for defects."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from compliance.api.answers import Headers
from compliance.api.gate import Scope
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.observing.logs import ClientFaultFilter
from compliance.tests.web import Worker
from tenancy import keys
from tenancy.tests.factories import make_key, make_tenant

pytestmark = pytest.mark.usefixtures("committed")

TIMES = 20
JSON = ("content-type", "application/json")
FORM = ("content-type", "application/x-www-form-urlencoded")
WRONG = ("authorization", "Bearer " + keys.new_secret(Environment.LIVE))
SANDBOX = ("authorization", "Bearer " + keys.new_secret(Environment.TEST))
KEY = ("authorization", "a key of ours")
NARROW = ("authorization", "a key with one scope")
SERIAL = "4" * 40

BAD: dict[str, tuple[str, str, list[tuple[str, str]], bytes]] = {
    "no key": ("GET", "/v1/agents", [], b""),
    "another scheme": ("GET", "/v1/agents", [("authorization", "Basic eDp5")], b""),
    "wrong key": ("GET", "/v1/agents", [WRONG], b""),
    "wrong key at the fast path": ("GET", "/v1/events", [WRONG], b""),
    "wrong sandbox key at the fast path": ("POST", "/v1/events", [SANDBOX, JSON], b"{}"),
    "scope": ("POST", "/v1/agents", [NARROW, JSON], b"{}"),
    "unknown path": ("GET", "/wp-login.php", [], b""),
    "malformed path": ("GET", "/v1/agents/%ff%00", [], b""),
    "bytes in the path": ("GET", "/v1/\x01\xff", [], b""),
    "unknown host": ("GET", "/v1/agents", [("host", "evil.example")], b""),
    "no host": ("GET", "/v1/agents", [("host", "")], b""),
    "malformed host": ("GET", "/v1/crl", [("host", "a b/\x01c")], b""),
    "unknown host at the fast path": ("GET", f"/v1/verify/{SERIAL}", [("host", "evil.example")], b""),
    "method": ("DELETE", "/v1/agents", [KEY], b""),
    "made-up method": ("BREW", "/v1/agents", [KEY], b""),
    "JSON": ("POST", "/v1/agents", [KEY, JSON], b"{"),
    "event": ("POST", "/v1/events", [KEY, JSON], b"{"),
    "fields": ("POST", "/v1/agents", [KEY, JSON], b'{"name": 1}'),
    "media type": ("POST", "/v1/agents", [KEY, FORM], b"a=b"),
    "multipart": ("POST", "/v1/agents", [KEY, ("content-type", "multipart/form-data")], b"x"),
    "size": ("POST", "/v1/agents", [KEY, JSON], b'"' + b"x" * 1024 * 1024 + b'"'),
    "idempotency": ("POST", "/v1/agents", [KEY, JSON, ("idempotency-key", "é")], b"{}"),
    "query": ("GET", "/v1/events?limit=x&limit=0&band=%00", [KEY], b""),
    "many parameters": ("GET", "/v1/events?" + "&".join("a=1" for _ in range(2_000)), [KEY], b""),
    "unknown agent": ("GET", f"/v1/agents/{new_id()}", [KEY], b""),
    "event of nobody": (
        "POST", "/v1/events", [KEY, JSON],
        json.dumps({"agent_id": str(new_id()), "action_type": "api_call"}).encode(),
    ),
    "unknown serial": ("GET", f"/v1/verify/{SERIAL}", [], b""),
    "no serial": ("GET", "/v1/verify/x", [], b""),
    "message": ("POST", "/v1/verify/message", [JSON], b"{}"),
    "token": ("POST", "/v1/delegation/verify", [JSON], b'{"token": "a.b.c"}'),
    "OCSP": ("POST", "/v1/ocsp", [("content-type", "application/ocsp-request")], b"x"),
    "OCSP in the address": ("GET", "/v1/ocsp/%2525", [], b""),
    "DID": ("GET", "/1.0/identifiers/did:service:x", [], b""),
    "environment": ("GET", "/v1/crl?environment=x", [], b""),
    "list of no CA": ("GET", f"/v1/crl/{SERIAL}/delta", [], b""),
    "form of the description": ("GET", "/v1/schema?format=x", [], b""),
    "cookies": ("GET", "/admin/live/", [("cookie", "sessionid=\x01; csrftoken=x; messages=x")], b""),
    "console": ("GET", "/admin/test/agents/agent/", [], b""),
    "sign-in without a token": ("POST", "/admin/live/login/", [FORM], b"username=a&password=b"),
    "many fields": ("POST", "/admin/live/login/", [FORM], b"&".join(b"a=1" for _ in range(2_000))),
    "static file": ("GET", "/static/../../etc/passwd", [], b""),
}  # fmt: skip


@pytest.fixture
def lines(settings: Settings) -> Iterator[io.StringIO]:
    """What the service's own handler writes."""
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, 100_000)
    (handler,) = [
        found for found in logging.getLogger().handlers
        if any(isinstance(one, ClientFaultFilter) for one in found.filters)
    ]  # fmt: skip
    assert isinstance(handler, logging.StreamHandler)
    found = io.StringIO()
    before = handler.setStream(found)
    yield found
    handler.setStream(before)


@pytest.mark.parametrize("kind", BAD)
def test_bad_requests_leave_a_line_at_most(web: Worker, lines: io.StringIO, kind: str) -> None:
    method, path, more, body = BAD[kind]
    tenant = make_tenant()
    own = {KEY: make_key(tenant), NARROW: make_key(tenant, scopes=[Scope.AUDIT_READ])}
    named: dict[str, str] = {"host": "testserver", "content-length": str(len(body)), **dict(more)}
    for placeholder, key in own.items():
        if placeholder in more:
            named["authorization"] = f"Bearer {key}"
    headers: Headers = list(named.items())
    lines.seek(0)
    lines.truncate()

    statuses = {web.run(web.exchange(method, path, headers, body)).status for _ in range(TIMES)}

    written = lines.getvalue().splitlines()
    assert all(status in {200, 302} or 400 <= status < 500 for status in statuses), statuses
    assert len(written) <= 1, written
    assert "Traceback" not in lines.getvalue()


def test_defects_are_logged_with_their_traceback(lines: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("agents.views.AgentViewSet.list", broken)
    web = Worker()
    headers = [("host", "testserver"), ("authorization", f"Bearer {make_key(make_tenant())}")]

    answer = web.run(web.exchange("GET", "/v1/agents", headers))
    web.close()

    assert answer.status == 500
    assert "ZeroDivisionError" in lines.getvalue()
