"""How the demo judges its steps, and what its receiver accepts."""

import hashlib
import hmac
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from threading import Thread

import pytest
import requests

from compliance.core.environments import Environment
from ops.demo.scenario import DemoClient, receiver
from ops.demo.transcript import ExpectationFailed, Transcript, expect


@pytest.fixture
def out() -> StringIO:
    return StringIO()


def test_missed_target_is_noted_and_the_demo_goes_on(out: StringIO) -> None:
    transcript = Transcript(out)

    with transcript.step("Verify", target=0.5) as step:
        step.seconds = 0.6
        step.note = "active"

    assert "!  1. Verify" in out.getvalue()
    assert "0.600 s (target 0.5 s)  active" in out.getvalue()
    assert transcript.slow == [1]


def test_failed_expectation_ends_the_demo(out: StringIO) -> None:
    transcript = Transcript(out)

    with pytest.raises(ExpectationFailed, match="revoked"), transcript.step("Verify"):
        expect(False, "status is revoked")

    assert "✗  1. Verify" in out.getvalue()


def test_receiver_keeps_what_is_signed_and_refuses_the_rest() -> None:
    body = b'{"event": "agent.created"}'
    signature = "sha256=" + hmac.new(b"secret", body, hashlib.sha256).hexdigest()

    with receiver("X-Signature") as inbox:
        inbox.secret = "secret"
        statuses = [
            requests.post(inbox.url, body, headers={"X-Signature": sent}, timeout=5).status_code
            for sent in (signature, "sha256=wrong")
        ]

    assert statuses == [204, 401]
    assert inbox.wait_for("agent.created", seconds=0) == {"event": "agent.created"}
    assert inbox.wait_for("agent.high_risk", seconds=0) is None
    assert inbox.rejected == 1


def test_client_waits_as_a_rate_limit_asks(capsys: pytest.CaptureFixture[str]) -> None:
    answers = [(429, {"Retry-After": "0"}), (200, {})]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = answers.pop(0)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "11"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b'{"data": 1}')

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        client = DemoClient(f"http://127.0.0.1:{server.server_port}", "key", Environment.TEST)
        found = client.get("/v1/verify/00", public=True)
        server.shutdown()
        thread.join()

    assert found == 1
    assert answers == []
    assert "/v1/verify/00 is rate-limited: waiting 0 s" in capsys.readouterr().err
