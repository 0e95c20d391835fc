"""How the demo judges its steps, and what its receiver accepts."""

import hashlib
import hmac
from io import StringIO

import pytest
import requests

from compliance.ops.demo.receiver import receiver
from compliance.ops.demo.transcript import ExpectationFailed, Transcript, expect


@pytest.fixture
def out() -> StringIO:
    return StringIO()


def test_step_within_its_target_is_ticked(out: StringIO) -> None:
    transcript = Transcript(out)

    with transcript.step("Verify", target=0.5) as step:
        step.seconds = 0.5

    assert "✓  1. Verify" in out.getvalue()
    assert not transcript.slow


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
