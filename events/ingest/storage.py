"""Writing events: rows, the rolling risks they raise and what waits for review, in one prepared statement."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from compliance.stores import sql
from events.inbox.models import OpenEvent
from events.models import BehaviorEvent, RiskBand
from events.risk.rolling import RAISE
from events.risk.scoring.contract import ScoreReason

_encode = msgspec.json.Encoder().encode


class ScoredEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with its score: a row of `BehaviorEvent`, attribute for attribute, ids as text."""

    id: str
    tenant_id: str
    agent_id: str
    action_type: str
    risk_score: float
    risk_band: str
    occurred_at: datetime
    received_at: datetime
    details: dict[str, Any]
    session_id: str | None
    chain_id: str | None
    reasons: tuple[ScoreReason, ...]
    model_version: str


_TYPES = {
    "id": "uuid", "tenant_id": "uuid", "agent_id": "uuid", "action_type": "text", "risk_score": "float8",
    "risk_band": "text", "occurred_at": "timestamptz", "received_at": "timestamptz", "details": "jsonb",
    "session_id": "text", "chain_id": "uuid", "reasons": "jsonb", "model_version": "text",
}  # fmt: skip
# The rows travel as one JSON document: psycopg's arrays cost ten times as much to write.
_INSERT = f"""
INSERT INTO {BehaviorEvent._meta.db_table} ({", ".join(_TYPES)})
SELECT {", ".join(_TYPES)} FROM json_to_recordset(%(rows)s::json)
AS given ({", ".join(f"{name} {kind}" for name, kind in _TYPES.items())})
"""  # noqa: S608  (only names of columns and types are put into the text)
_OPENED = "event_id", "tenant_id", "agent_id", "action_type", "risk_band", "risk_score", "received_at"
_OPEN = f"""
INSERT INTO {OpenEvent._meta.db_table} ({", ".join(_OPENED)})
SELECT {", ".join(_OPENED)} FROM json_to_recordset(%(opened)s::json)
AS given ({", ".join(f"{name} {_TYPES['id' if name == 'event_id' else name]}" for name in _OPENED)})
"""  # noqa: S608  (only names of columns and types are put into the text)
# By whether risks are to be raised, and whether events are to be opened for review.
_STATEMENTS = {
    (False, False): _INSERT,
    (True, False): f"WITH raised AS ({RAISE}) {_INSERT}",
    (False, True): f"WITH opened AS ({_OPEN}) {_INSERT}",
    (True, True): f"WITH raised AS ({RAISE}), opened AS ({_OPEN}) {_INSERT}",
}


def insert(events: Sequence[ScoredEvent], *, risks: Mapping[str, float]) -> None:
    """Store the events, put those that are not low into the review inbox, and raise rolling risks.

    `risks`: the new rolling risk of each agent whose risk rises. All of it is stored, or nothing. Outside a
    transaction it is durable on return. Raises: Django's errors.
    """
    params: dict[str, Any] = {"rows": _encode(events).decode()}
    opened = [_opened(event) for event in events if event.risk_band != RiskBand.LOW]
    if opened:
        params["opened"] = _encode(opened).decode()
    if risks:
        params |= {"risen": list(risks), "risks": list(risks.values()), "now": events[-1].received_at}
    sql.prepared_write(_STATEMENTS[bool(risks), bool(opened)], params)


def _opened(event: ScoredEvent) -> dict[str, Any]:
    return {name: getattr(event, "id" if name == "event_id" else name) for name in _OPENED}
