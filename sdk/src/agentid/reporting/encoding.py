"""An event as the line of JSON that is spooled and sent."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

ActionType = Literal[
    "api_call",
    "authentication_attempt",
    "authentication_failure",
    "data_access",
    "data_mutation",
    "transaction_initiated",
    "transaction_anomaly",
    "unauthorized_access_attempt",
    "message_signed",
    "message_verification_failed",
]
MAX_EVENT_BYTES = 256 * 1024


class Unreportable(ValueError):
    """An event that has no JSON form, or one that is too large."""


def encode(
    *,
    agent_id: str,
    action_type: str,
    details: Mapping[str, Any],
    occurred_at: datetime,
    session_id: str | None,
    chain_id: str | None,
) -> bytes:
    """The event in one line of ASCII, without its end; values that JSON lacks are written by `str()`.

    Raises: Unreportable.
    """
    moment = occurred_at if occurred_at.tzinfo else occurred_at.replace(tzinfo=UTC)
    event = {
        "agent_id": agent_id,
        "action_type": action_type,
        "occurred_at": moment.astimezone(UTC).isoformat(),
        "details": dict(details),
    }
    event |= {"session_id": session_id} if session_id is not None else {}
    event |= {"chain_id": chain_id} if chain_id is not None else {}
    try:
        line = json.dumps(event, allow_nan=False, separators=(",", ":"), default=str).encode("ascii")
    except Exception as error:  # `str()` of a stranger's object may raise anything
        raise Unreportable(f"the event can't be written as JSON: {type(error).__name__}") from error
    if len(line) > MAX_EVENT_BYTES:
        raise Unreportable(f"the event takes more than {MAX_EVENT_BYTES} bytes")
    return line


def decode(line: bytes) -> dict[str, Any] | None:
    """The event of a line, or None if the line is not whole."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
