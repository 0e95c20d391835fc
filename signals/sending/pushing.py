"""One push of a Security Event Token (RFC 8935): the request, and what its answer means."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from compliance.outbound import http_client
from compliance.outbound.http_client import Outcome, RequestOptions
from signals.models import MAX_REASON, Signal, Stream
from webhooks.services import url_policy

MEDIA_TYPE: Final = "application/secevent+jwt"
PUSH_ERRORS_OF_TOKEN: Final = ("invalid_request", "invalid_key", "invalid_issuer", "invalid_audience")
"""RFC 8935 §2.4: errors that name the token; the others name the sender's access."""


@dataclass(frozen=True)
class ClaimedStream:
    """A stream and its oldest signals, signed, to push without the database; `lease` names the claim."""

    row: Stream
    lease: UUID
    authorization: str | None = field(repr=False)
    signals: Sequence[Signal] = field(repr=False)


@dataclass(frozen=True)
class PushResult:
    """The result of one push; `is_last` ends the sender's work on the stream for now."""

    stream: ClaimedStream
    signal: Signal
    outcome: Outcome
    ended_at: datetime
    is_last: bool

    @property
    def refusal(self) -> str | None:
        """The receiver's error code (RFC 8935 §2.3) if it blames the token; None otherwise."""
        code = _error_code(self.outcome)
        return code if code in PUSH_ERRORS_OF_TOKEN else None

    @property
    def problem(self) -> str:
        """The problem, in words for the tenant; empty after a success."""
        if self.outcome.succeeded:
            return ""
        said = self.outcome.error or f"HTTP {self.outcome.response_status}"
        code = _error_code(self.outcome)
        return (f"{said}: {code}" if code else said)[:MAX_REASON]


def push(stream: ClaimedStream, signal: Signal) -> Outcome:
    """Make the request; takes at most SIGNALS_TIMEOUT_SECONDS and uses no database."""
    headers = {
        "Content-Type": MEDIA_TYPE,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": f"{settings.SERVICE_NAME}-signals/1.0",
    }
    if stream.authorization:
        headers["Authorization"] = stream.authorization
    options = RequestOptions(url_policy(), settings.SIGNALS_TIMEOUT_SECONDS, settings.WEBHOOK_CA_FILE or None)
    body = signal.token.encode()
    return http_client.send(stream.row.endpoint_url, body=body, headers=headers, options=options)


def _error_code(outcome: Outcome) -> str | None:
    """Read `err` of an error's JSON; None for every other answer."""
    if outcome.response_status != 400 or not outcome.response_body:
        return None
    try:
        found = json.loads(outcome.response_body)
    except (ValueError, RecursionError):
        return None
    code = found.get("err") if isinstance(found, dict) else None
    return code[:64] if isinstance(code, str) and code.isascii() and code.isprintable() else None
