"""Answers about certificates."""

from dataclasses import dataclass
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class Certificate(Record):
    """An agent's certificate."""

    id: str
    agent_id: str
    serial_number: str
    kms_key_arn: str
    certificate_pem: str
    status: str
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    revocation_reason: str | None
    key_storage: str = "resident"


@dataclass(frozen=True, kw_only=True)
class Revocation(Record):
    """When and why a certificate was revoked."""

    certificate_id: str
    status: str
    revoked_at: datetime
    reason: str


@dataclass(frozen=True, kw_only=True)
class Scope(Record):
    """What the certificate lets the agent do."""

    permitted_actions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PastStanding(Record):
    """The status of the certificate at the requested time; the agent's status then is not known."""

    time: datetime
    valid: bool
    standing: str
    revoked_since: bool


@dataclass(frozen=True, kw_only=True)
class Verification(Record):
    """The identity in a certificate, and its status now."""

    serial_number: str
    status: str
    agent_id: str
    agent_status: str
    issued_at: datetime
    expires_at: datetime
    not_before: datetime
    not_after: datetime
    revoked_at: datetime | None
    revocation_reason: str | None
    operator: str
    did: str
    model: str | None
    model_version: str | None
    model_hash: str | None
    permitted_actions: tuple[str, ...]
    scope: Scope
    scope_declared: bool
    risk_score: float
    risk_band: str
    environment: str
    at: PastStanding | None = None
