"""Writing events: rows, the rolling risks they raise and what waits for review, in one prepared statement.

On Citus they are several, in one transaction of the node that holds the tenants' rows.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from django.conf import settings

from compliance.stores import sql
from compliance.stores.postgresql import tenant_nodes
from events.inbox.models import OpenEvent
from events.models import BehaviorEvent, RiskBand
from events.risk.rolling import RAISE_RISKS, RAISE_RISKS_OF_TENANT
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
Statement = tuple[str, dict[str, Any]]


@cache
def _statement(*, raises: bool, opens: bool) -> str:
    """The statement that also raises risks, and opens events for review."""
    parts = [f"raised AS ({RAISE_RISKS})"] if raises else []
    parts += [f"opened AS ({_OPEN})"] if opens else []
    return f"WITH {', '.join(parts)} {_INSERT}" if parts else _INSERT


def insert(events: Sequence[ScoredEvent], *, risks: Mapping[str, float]) -> None:
    """Store the events, put those that are not low into the review inbox, and raise rolling risks.

    `risks`: the new rolling risk of each agent whose risk rises. All of it is stored, or nothing; on Citus
    the events are of one group of `tenant_nodes.divided()`. Outside a transaction it is durable on return.
    Raises: Django's errors.
    """
    params: dict[str, Any] = {"rows": _encode(events).decode()}
    opened = [_opened(event) for event in events if event.risk_band != RiskBand.LOW]
    if opened:
        params["opened"] = _encode(opened).decode()
    if settings.DATABASE_CITUS:
        tenant_nodes.write(events[0].tenant_id, _apart(params, events, risks))
        return
    if risks:
        params |= {"risen": list(risks), "risks": list(risks.values()), "now": events[-1].received_at}
    sql.prepared_write(_statement(raises=bool(risks), opens=bool(opened)), params)


def _apart(
    params: Mapping[str, Any], events: Sequence[ScoredEvent], risks: Mapping[str, float]
) -> list[Statement]:
    """The same in several statements: Citus changes rows of one table, or of one tenant, in each."""
    found: list[Statement] = [(_INSERT, {"rows": params["rows"]})]
    if "opened" in params:
        found.append((_OPEN, {"opened": params["opened"]}))
    risen: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for event in events:
        if event.agent_id in risks:
            risen[event.tenant_id][event.agent_id] = risks[event.agent_id]
    now = events[-1].received_at
    for tenant, own in risen.items():
        given = {"tenant": tenant, "risen": list(own), "risks": list(own.values()), "now": now}
        found.append((RAISE_RISKS_OF_TENANT, given))
    return found


def _opened(event: ScoredEvent) -> dict[str, Any]:
    return {name: getattr(event, "id" if name == "event_id" else name) for name in _OPENED}
