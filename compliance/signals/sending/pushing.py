"""One push of a Security Event Token (RFC 8935): the request, and what its answer means."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from compliance.signals.vocabulary import PUSH_ERRORS_OF_TOKEN
from webhooks.sending import http_client
from webhooks.sending.http_client import Outcome, RequestOptions
from webhooks.services import url_policy

MEDIA_TYPE: Final = "application/secevent+jwt"
MAX_ERROR_LENGTH: Final = 255


@dataclass(frozen=True)
class ClaimedSignal:
    """A signed token in its turn."""

    id: int
    token: str = field(repr=False)
    attempt_count: int = 0


@dataclass(frozen=True)
class ClaimedStream:
    """What it takes to push the oldest signals of a stream without the database; `lease` names the claim."""

    id: UUID
    lease: UUID
    url: str
    authorization: str | None = field(repr=False)
    is_failing: bool
    signals: tuple[ClaimedSignal, ...]


@dataclass(frozen=True)
class PushResult:
    """The result of one push; `is_last` ends the sender's work on the stream for now."""

    stream: ClaimedStream
    signal: ClaimedSignal
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
        """What went wrong, for the tenant; empty after a success."""
        if self.outcome.succeeded:
            return ""
        said = self.outcome.error or f"HTTP {self.outcome.response_status}"
        code = _error_code(self.outcome)
        return (f"{said}: {code}" if code else said)[:MAX_ERROR_LENGTH]


def push(stream: ClaimedStream, signal: ClaimedSignal) -> Outcome:
    """Make the request; takes at most SIGNALS_TIMEOUT_SECONDS and uses no database."""
    options = RequestOptions(url_policy(), settings.SIGNALS_TIMEOUT_SECONDS, settings.WEBHOOK_CA_FILE or None)
    return http_client.post(stream.url, body=signal.token.encode(), headers=_headers(stream), options=options)


def _headers(stream: ClaimedStream) -> dict[str, str]:
    own = {"Authorization": stream.authorization} if stream.authorization else {}
    return {
        "Content-Type": MEDIA_TYPE,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": f"{settings.SERVICE_NAME}-signals/1.0",
        **own,
    }


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
