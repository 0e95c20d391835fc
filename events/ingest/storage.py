"""Writing events: rows, the rolling risks they raise and what waits for review, in one prepared statement."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings

from compliance.stores import sql
from events.inbox.models import OpenEvent
from events.models import BehaviorEvent, RiskBand
from events.risk.rolling import raise_risks
from events.risk.scoring.contract import ScoreReason

NOBODY = str(UUID(int=0))
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


_COLUMNS = ", ".join(field.name for field in msgspec.structs.fields(ScoredEvent))
# The rows travel as one JSON document: psycopg's arrays cost ten times as much to write.
_INSERT = f"""
INSERT INTO {BehaviorEvent._meta.db_table} ({_COLUMNS})
SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{BehaviorEvent._meta.db_table}, %(rows)s::json)
"""  # noqa: S608  (only names of tables and columns are put into the text)
_OPENED = "event_id", "tenant_id", "agent_id", "action_type", "risk_band", "risk_score", "received_at"
_OPEN = f"""
INSERT INTO {OpenEvent._meta.db_table} ({", ".join(_OPENED)})
SELECT {", ".join(_OPENED)} FROM json_populate_recordset(NULL::{OpenEvent._meta.db_table}, %(opened)s::json)
"""  # noqa: S608  (only names of tables and columns are put into the text)
MOST_TENANTS = 64
"""The tenants whose risks one statement raises on Citus; those of more follow with their next events."""


@cache
def _statement(raised: int, *, of_tenant: bool, opens: bool) -> str:
    """The statement that raises so many groups of risks, and opens events for review."""
    parts = [f"raised_{nth} AS ({raise_risks(nth, of_tenant=of_tenant)})" for nth in range(raised)]
    parts += [f"opened AS ({_OPEN})"] if opens else []
    return f"WITH {', '.join(parts)} {_INSERT}" if parts else _INSERT


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
        params["now"] = events[-1].received_at
    groups = _groups(events, risks)
    for nth, (tenant, found) in enumerate(groups):
        params |= {f"tenant_{nth}": tenant, f"risen_{nth}": list(found), f"risks_{nth}": list(found.values())}
    statement = _statement(len(groups), of_tenant=settings.DATABASE_CITUS, opens=bool(opened))
    sql.prepared_write(statement, params)


def _groups(
    events: Sequence[ScoredEvent], risks: Mapping[str, float]
) -> list[tuple[str, Mapping[str, float]]]:
    """The risks that are raised together: all of them, on Citus those of each tenant with its id."""
    if not risks or not settings.DATABASE_CITUS:
        return [(NOBODY, risks)] if risks else []
    found: dict[str, dict[str, float]] = {}
    for event in events:
        if event.agent_id in risks and (event.tenant_id in found or len(found) < MOST_TENANTS):
            found.setdefault(event.tenant_id, {})[event.agent_id] = risks[event.agent_id]
    # Few statements are prepared: for 1, 2, 4, … tenants, the last of them nobody's.
    spare = (1 << (len(found) - 1).bit_length()) - len(found)
    return [*found.items(), *[(NOBODY, {})] * spare]


def _opened(event: ScoredEvent) -> dict[str, Any]:
    return {name: getattr(event, "id" if name == "event_id" else name) for name in _OPENED}
