"""Webhooks: that the service sent these octets, and lately."""

import hmac
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from agentid.errors import NotValid, Reason
from agentid.jose import b64_decode, claim, read_object

PREFIX: Final = "whsec_"
TOLERANCE_SECONDS: Final = 300


@dataclass(frozen=True)
class VerifiedWebhook:
    """What happened: `event` is its kind; `id` is the same in every retry."""

    id: str
    event: str
    created_at: datetime
    data: Mapping[str, Any] = field(repr=False)


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    *,
    secret: str,
    now: datetime,
    tolerance_seconds: int = TOLERANCE_SECONDS,
    service_name: str = "Service",
) -> VerifiedWebhook:
    """Check a delivery by its raw body and read it. Raises: NotValid.

    Both of its signatures count: `X-Service-Signature` is over the body, `webhook-signature` also over id and
    time (Standard Webhooks 1.0), so that a delivery recorded earlier is refused. `service_name` is the word
    in the header's name.
    """
    found = {name.lower(): value for name, value in headers.items()}
    header = f"x-{service_name.lower()}-signature"
    expected = "sha256=" + hmac.new(secret.encode(), body, sha256).hexdigest()
    if not _matches(expected, (found.get(each, "") for each in (header, f"{header}-previous"))):
        raise NotValid(Reason.INVALID_SIGNATURE, header)
    name, sent_at = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    made = hmac.new(b64_decode(secret.removeprefix(PREFIX)), f"{name}.{sent_at}.".encode() + body, sha256)
    expected = "v1," + b64encode(made.digest()).decode()
    if not _matches(expected, found.get("webhook-signature", "").split(" ")):
        raise NotValid(Reason.INVALID_SIGNATURE, "webhook-signature")
    if not sent_at.isascii() or not sent_at.isdigit() or len(sent_at) > 12:
        raise NotValid(Reason.MALFORMED, "webhook-timestamp")
    if abs(now.timestamp() - int(sent_at)) > tolerance_seconds:
        raise NotValid(Reason.EXPIRED, "the delivery is too old, or a clock is wrong")
    event = read_object(body)
    kind, data = claim(event, "event", str), claim(event, "data", dict)
    created_at = claim(event, "created_at", str)
    if event.get("id") != name:
        raise NotValid(Reason.MALFORMED, "the body is of another event")
    try:
        return VerifiedWebhook(name, kind, datetime.fromisoformat(created_at), data)
    except ValueError:
        raise NotValid(Reason.MALFORMED, "created_at") from None


def _matches(expected: str, given: Iterable[str]) -> bool:
    """Compare with each in constant time."""
    return sum(hmac.compare_digest(expected.encode(), each.encode()) for each in given) > 0
