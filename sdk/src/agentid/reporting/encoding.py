"""An event as the line of JSON that is spooled and sent."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args
from uuid import UUID

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
MAX_EVENT_BYTES = 64 * 1024
EARLIEST, MOST_AHEAD = datetime(2000, 1, 1, tzinfo=UTC), timedelta(minutes=5)
MAX_SESSION_ID = 255
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class Unreportable(ValueError):
    """An event that has no JSON form, is too large, or that the service would refuse."""


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
    if not EARLIEST <= moment <= datetime.now(UTC) + MOST_AHEAD:
        raise Unreportable("occurred_at: before 2000 or more than five minutes ahead")
    if action_type not in get_args(ActionType):
        raise Unreportable("action_type: not one that the service knows")
    if session_id is not None and len(str(session_id)) > MAX_SESSION_ID:
        raise Unreportable(f"session_id: longer than {MAX_SESSION_ID} characters")
    if chain_id is not None:
        UUID(str(chain_id))
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
    if _NUL.search(line):
        raise Unreportable("the event contains NUL")
    if b"\\u" in line:
        try:
            json.dumps(json.loads(line), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise Unreportable("the event contains a lone surrogate") from error
    return line


def decode(line: bytes) -> dict[str, Any] | None:
    """The event of a line, or None if the line is not whole."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
