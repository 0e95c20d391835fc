"""Answers about webhooks."""

from dataclasses import dataclass, field
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class Webhook(Record):
    """A Webhook, without its secret."""

    id: str
    url: str
    events: tuple[str, ...]
    active: bool
    description: str
    secret_hint: str
    previous_secret_until: datetime | None
    disabled_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class WebhookWithSecret(Webhook):
    """A Webhook with its new secret."""

    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Attempt(Record):
    """One attempt of a delivery; `duration_ms` is null while it lasts, or if its sender died."""

    number: int
    url: str
    started_at: datetime
    duration_ms: int | None
    response_status: int | None
    response_body: str | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Delivery(Record):
    """The delivery of an event to a webhook, with its attempts."""

    id: str
    webhook_id: str
    event_id: str
    event: str
    status: str
    trigger: str
    attempt_count: int
    max_attempts: int
    next_attempt_at: datetime | None
    created_at: datetime
    completed_at: datetime | None
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, kw_only=True)
class Recovered(Record):
    """The result of a recovery."""

    webhook_id: str
    since: datetime
    redelivered: int
