"""Answers about delegation."""

from dataclasses import dataclass, field
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class ChainActor(Record):
    """One of those who act for one another."""

    sub: str
    type: str


@dataclass(frozen=True, kw_only=True)
class Root(Record):
    """Who stands behind the root of a chain."""

    assurance: str
    issuer: str | None = None
    subject: str | None = None
    vouched_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Delegation(Record):
    """A token that was issued."""

    token: str = field(repr=False)
    chain: tuple[ChainActor, ...]
    principal: str
    scope: str
    issued_at: datetime
    expires_at: datetime
    token_id: str
    root: Root
    bound_to: str | None


@dataclass(frozen=True, kw_only=True)
class DelegationVerdict(Record):
    """Whether a token is valid: its `reason` if not, the other fields if it is."""

    valid: bool
    reason: str | None = None
    principal: str | None = None
    chain: tuple[ChainActor, ...] = ()
    chain_display: str | None = None
    scope: str | None = None
    agent_id: str | None = None
    expires_at: datetime | None = None
    audience: str | None = None
    certificate_serial: str | None = None
    environment: str | None = None
    token_id: str | None = None
    root: Root | None = None
    bound_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class IssuedToken(Record):
    """An issued token without its text, and how it stands now."""

    token_id: str
    agent_id: str
    certificate_serial: str | None
    parent_token_id: str | None
    principal: str
    chain: tuple[ChainActor, ...]
    scope: str
    audience: str | None
    root: Root
    bound_to: str | None
    state: str
    reason: str | None
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    revocation_reason: str | None
