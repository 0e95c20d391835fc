"""Writing events: any number of rows, and the rolling risks they raise, in one prepared statement."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from compliance.stores import sql
from events.models import BehaviorEvent
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
_INSERT_AND_RAISE = f"WITH raised AS ({RAISE}) {_INSERT}"


def insert(events: Sequence[ScoredEvent], *, risks: Mapping[str, float]) -> None:
    """Store the events, and raise the rolling risk of each agent in `risks` to the score given, all or none.

    Outside a transaction both are durable on return. Raises: Django's errors.
    """
    rows = {"rows": _encode(events).decode()}
    if not risks:
        sql.prepared_write(_INSERT, rows)
        return
    raised = {"risen": list(risks), "risks": list(risks.values()), "now": events[-1].received_at}
    sql.prepared_write(_INSERT_AND_RAISE, {**rows, **raised})
