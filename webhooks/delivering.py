"""One attempt: all it takes to send it, and the request itself."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from webhooks import sender, signature
from webhooks.models import Pace, retry_delay
from webhooks.sender import Outcome, Rules
from webhooks.services import url_policy


@dataclass(frozen=True)
class Parcel:
    """A claimed attempt: all it takes to send it without the database.

    `secrets`: the webhook's own, and the one before while both are valid.
    """

    delivery_id: UUID
    webhook_id: UUID
    event_id: UUID
    lease: UUID
    number: int
    max_attempts: int
    url: str
    body: bytes
    started_at: datetime
    pace: Pace
    had_failures: bool
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def retry_delay(self) -> timedelta | None:
        return retry_delay(self.number, self.max_attempts)


@dataclass(frozen=True)
class Report:
    """What came of a parcel, and when."""

    parcel: Parcel
    outcome: Outcome
    ended_at: datetime


def rules() -> Rules:
    """How the settings and the current environment let deliveries be sent."""
    return Rules(
        policy=url_policy(),
        timeout_seconds=settings.WEBHOOK_TIMEOUT_SECONDS,
        ca_file=settings.WEBHOOK_CA_FILE or None,
    )


def send(*, parcel: Parcel) -> Outcome:
    """The request itself; takes at most WEBHOOK_TIMEOUT_SECONDS and touches no database."""
    return sender.post(parcel.url, body=parcel.body, headers=headers_of(parcel), rules=rules())


def headers_of(parcel: Parcel) -> dict[str, str]:
    """The signature as specified, and Standard Webhooks' three headers beside it.

    While a rotated secret is valid its signatures stand beside the new one's: in a header of its own, as the
    specified one holds a single value, and in Standard Webhooks' list.
    """
    timestamp = int(parcel.started_at.timestamp())
    current, *previous = parcel.secrets
    name = signature.header_name(settings.SERVICE_NAME)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"{settings.SERVICE_NAME}-webhooks/1.0",
        "Accept-Encoding": "identity",
        "Connection": "close",
        name: signature.sign(parcel.body, current),
        "webhook-id": str(parcel.event_id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            signature.sign_standard(parcel.body, secret, message_id=parcel.event_id, timestamp=timestamp)
            for secret in parcel.secrets
        ),
    }
    for secret in previous:
        headers[f"{name}-Previous"] = signature.sign(parcel.body, secret)
    return headers
