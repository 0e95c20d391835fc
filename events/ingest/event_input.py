"""An event as a client sends it: both documented spellings in, one `EventInput` out, or an error."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.utils.dateparse import parse_datetime

from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import canonical_id
from compliance.core.json_values import MAX_OCTETS, octets_of, same_json
from events.errors import InvalidActionType, SpellingsDisagree
from events.models import ActionType

SPELLINGS = {
    "agentId": "agent_id",
    "actionType": "action_type",
    "chainId": "chain_id",
    "decisionId": "decision_id",
    "sessionId": "session_id",
    "occurredAt": "occurred_at",
    "payload": "details",
}
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
MOST_AHEAD = timedelta(minutes=5)
MAX_SESSION_ID = 255
MAX_BATCH = 1_000
ACTION_TYPES = frozenset(ActionType.values)
NAMES = frozenset(SPELLINGS.values())


class EventInput(msgspec.Struct, frozen=True, gc=False):
    """An event as sent, checked; ids as canonical text, `occurred_at` None: when it is received."""

    agent_id: str
    action_type: str
    details: dict[str, Any] = {}
    occurred_at: datetime | None = None
    session_id: str | None = None
    chain_id: str | None = None
    decision_id: str | None = None


def read_event(data: Any, *, now: datetime) -> EventInput:
    """The event in a parsed body. Raises: Invalid with the first field at fault."""
    if not isinstance(data, dict):
        raise Invalid("An event must be a JSON object")
    fields = one_spelling(data)
    return EventInput(
        _id(fields, "agent_id", required=True),
        _action_type(fields),
        _details(fields),
        _occurred_at(fields, now) if "occurred_at" in fields else None,
        _session_id(fields) if "session_id" in fields else None,
        _id(fields, "chain_id") if "chain_id" in fields else None,
        _id(fields, "decision_id") if "decision_id" in fields else None,
    )


def read_batch(data: Any) -> list[Any]:
    """The unread items of `{"events": [...]}`. Raises: Invalid."""
    items = data.get("events") if isinstance(data, dict) else None
    if not isinstance(items, list):
        raise Invalid('Request body must be an object with a list "events", or NDJSON')
    if not 1 <= len(items) <= MAX_BATCH:
        raise Invalid(f"events: Must hold 1 to {MAX_BATCH} events.")
    return items


def read_or_refuse(item: Any, *, now: datetime) -> EventInput | ServiceError:
    """The event in one item of a batch, or the error in its place."""
    if isinstance(item, ServiceError):
        return item
    try:
        return read_event(item, now=now)
    except ServiceError as error:
        return error


def one_spelling(data: dict[str, Any]) -> dict[str, Any]:
    """The body with snake_case names; null counts as left out; raises `SpellingsDisagree`."""
    if data.keys() <= NAMES and None not in data.values():
        return data
    found: dict[str, Any] = {}
    for name, value in data.items():
        canonical = SPELLINGS.get(name, name)
        if value is None:
            continue
        if canonical in found and not same_json(found[canonical], value):
            raise SpellingsDisagree(f"{canonical} is given in two spellings with different values")
        found[canonical] = value
    return found


def _id(fields: dict[str, Any], name: str, *, required: bool = False) -> Any:
    value = fields.get(name)
    if value is None and required:
        raise Invalid(f"{name}: This field is required.")
    found = canonical_id(value) if isinstance(value, str) else None
    if found is None:
        raise Invalid(f"{name}: Must be a valid UUID.")
    return found


def _action_type(fields: dict[str, Any]) -> str:
    value = fields.get("action_type")
    if value is None:
        raise Invalid("action_type: This field is required.")
    if not isinstance(value, str) or value not in ACTION_TYPES:
        raise InvalidActionType()
    return value


def _details(fields: dict[str, Any]) -> dict[str, Any]:
    value = fields.get("details", {})
    if not isinstance(value, dict):
        raise Invalid("details: Must be an object.")
    if octets_of(value) > MAX_OCTETS:
        raise Invalid(f"details: Must take at most {MAX_OCTETS} octets as JSON.")
    return value


def _session_id(fields: dict[str, Any]) -> str:
    value = fields["session_id"]
    if not isinstance(value, str):
        raise Invalid("session_id: Must be a string.")
    if len(value) > MAX_SESSION_ID:
        raise Invalid(f"session_id: Must have at most {MAX_SESSION_ID} characters.")
    return value


def _occurred_at(fields: dict[str, Any], now: datetime) -> datetime:
    value = fields["occurred_at"]
    try:
        # Its patterns take the digits of every script.
        moment = parse_datetime(value) if isinstance(value, str) and value.isascii() else None
        if moment is None:
            raise Invalid("occurred_at: Must be an ISO 8601 date-time.")
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid("occurred_at: Must be an ISO 8601 date-time.") from error
    if not EARLIEST <= moment <= now + MOST_AHEAD:
        raise Invalid("occurred_at: Must be after 1999 and at most 5 minutes ahead.")
    return moment
