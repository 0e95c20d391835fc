"""One attempt at a delivery: what was claimed, the request made of it, and its result."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings

from compliance.api.answers import service_header
from compliance.observing.correlation import Correlation, headers_of
from compliance.outbound import http_client
from compliance.outbound.http_client import Outcome, RequestOptions
from webhooks.models import DeliveryStatus, Format, Pace, retry_delay
from webhooks.sending import formats, signature
from webhooks.services import url_policy


@dataclass(frozen=True)
class ClaimedAttempt:
    """The data to send an attempt without the database; `lease` names the claim."""

    tenant_id: UUID
    delivery_id: UUID
    webhook_id: UUID
    event_id: UUID
    lease: UUID
    number: int
    max_attempts: int
    url: str
    body: bytes
    pace: Pace
    had_failures: bool
    started_at: datetime
    event: str
    created_at: datetime
    """When the delivery was made, which is when the event happened or a redelivery was asked for."""
    format: Format
    secrets: tuple[str, ...] = field(repr=False)  # the current one, and the previous one while it is valid
    correlation: Correlation | None = None  # of the request that caused the message


@dataclass(frozen=True)
class AttemptResult:
    attempt: ClaimedAttempt
    outcome: Outcome
    ended_at: datetime

    @property
    def retry_at(self) -> datetime | None:
        """The time of the delivery's next attempt; None when it is finished.

        A busy receiver may ask for more time than the schedule gives, never for less.
        """
        delay = retry_delay(self.attempt.number, self.attempt.max_attempts)
        if self.outcome.succeeded or self.outcome.is_gone or delay is None:
            return None
        return self.ended_at + max(delay, self.outcome.retry_after)

    @property
    def status(self) -> DeliveryStatus:
        if self.outcome.succeeded:
            return DeliveryStatus.SUCCEEDED
        return DeliveryStatus.PENDING if self.retry_at else DeliveryStatus.FAILED


def send(attempt: ClaimedAttempt) -> Outcome:
    """Make the request; takes at most WEBHOOK_TIMEOUT_SECONDS and uses no database.

    The request has the specified signature's header and the three of Standard Webhooks. A previous secret
    signs too: in a header of its own, and second in the list of Standard Webhooks.
    """
    body = formats.formed(attempt.body, attempt.format)
    timestamp = int(attempt.started_at.timestamp())
    name = service_header("Signature")
    signatures = (signature.sign(body, secret) for secret in attempt.secrets)
    standard = (
        signature.sign_standard(body, secret, message_id=attempt.event_id, timestamp=timestamp)
        for secret in attempt.secrets
    )
    headers = {
        **({} if attempt.correlation is None else headers_of(attempt.correlation)),
        "Content-Type": formats.CONTENT_TYPES[attempt.format],
        "User-Agent": f"{settings.SERVICE_NAME}-webhooks/1.0",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "webhook-id": str(attempt.event_id),
        "webhook-timestamp": str(timestamp),
        **dict(zip((name, f"{name}-Previous"), signatures, strict=False)),
        "webhook-signature": " ".join(standard),
    }
    ca_file = settings.WEBHOOK_CA_FILE or None
    options = RequestOptions(url_policy(), settings.WEBHOOK_TIMEOUT_SECONDS, ca_file)
    return http_client.send(attempt.url, body=body, headers=headers, options=options)
