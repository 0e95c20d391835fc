"""Answers about messages."""

from dataclasses import dataclass
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class Signature(Record):
    """A signature over the payload's canonical JSON (RFC 8785)."""

    agent_id: str
    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str
    signed_at: datetime
    event_id: str
    jws: str | None = None


@dataclass(frozen=True, kw_only=True)
class MessageVerification(Record):
    """Whether a message is valid, and the `reason` if not."""

    valid: bool
    agent_id: str
    certificate_serial: str
    certificate_status: str
    payload_hash: str
    algorithm: str
    event_id: str | None = None
    reason: str | None = None
