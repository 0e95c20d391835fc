"""Writing events: rows, the rolling risks they raise and what waits for review.

Plain PostgreSQL takes one prepared statement; Citus, which changes one table or one tenant in a statement,
several in one transaction.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from django.conf import settings
from psycopg.types.json import Json

from compliance.core import environments
from compliance.stores import sql
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
    decision_id: str | None = None


_COLUMNS = ", ".join(field.name for field in msgspec.structs.fields(ScoredEvent))
# The rows travel as one JSON document: psycopg's arrays cost ten times as much to write.
_INSERT = f"""
INSERT INTO {BehaviorEvent._meta.db_table} ({_COLUMNS})
SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{BehaviorEvent._meta.db_table}, %(rows)s)
"""  # noqa: S608  (only names of tables and columns are put into the text)
_OPENED = "event_id", "tenant_id", "agent_id", "action_type", "risk_band", "risk_score", "received_at"
_OPEN = f"""
INSERT INTO {OpenEvent._meta.db_table} ({", ".join(_OPENED)})
SELECT {", ".join(_OPENED)} FROM json_populate_recordset(NULL::{OpenEvent._meta.db_table}, %(opened)s)
"""  # noqa: S608  (only names of tables and columns are put into the text)


@cache
def _statement(*, raises: bool, opens: bool) -> str:
    """The statement that also raises risks, and opens events for review."""
    parts = [f"raised AS ({RAISE_RISKS})"] if raises else []
    parts += [f"opened AS ({_OPEN})"] if opens else []
    return f"WITH {', '.join(parts)} {_INSERT}" if parts else _INSERT


def insert(events: Sequence[ScoredEvent], *, risks: Mapping[str, float]) -> None:
    """Store the events, put those that are not low into the review inbox, and raise rolling risks.

    `risks`: the new rolling risk of each agent whose risk rises. All of it is stored, or nothing. Outside a
    transaction it is durable on return. Raises: Django's errors.
    """
    if settings.DATABASE_CITUS:
        _insert_on_citus(events, risks)
        return
    params: dict[str, Any] = {"rows": Json(events, dumps=_encode)}
    if opened := [_open_event(event) for event in events if event.risk_band != RiskBand.LOW]:
        params["opened"] = Json(opened, dumps=_encode)
    if risen := _risen(events, risks):
        params |= risen
    sql.prepared_write(_statement(raises=bool(risen), opens=bool(opened)), params)


def _insert_on_citus(events: Sequence[ScoredEvent], risks: Mapping[str, float]) -> None:
    by_tenant: defaultdict[str, list[ScoredEvent]] = defaultdict(list)
    for event in events:
        by_tenant[event.tenant_id].append(event)
    with environments.atomic():
        sql.insert(*(_as_model(event) for event in events))
        opened = [event for event in events if event.risk_band != RiskBand.LOW]
        sql.insert(*(OpenEvent(**_open_event(event)) for event in opened))
        for tenant, own in by_tenant.items():
            if risen := _risen(own, risks):
                sql.prepared_write(RAISE_RISKS_OF_TENANT, risen | {"tenant": tenant})


def _risen(events: Sequence[ScoredEvent], risks: Mapping[str, float]) -> dict[str, Any]:
    """The parameters that raise risks of the events' agents; none if no risk rises."""
    risen = {event.agent_id: risks[event.agent_id] for event in events if event.agent_id in risks}
    if not risen:
        return {}
    return {"risen": list(risen), "risks": list(risen.values()), "now": events[-1].received_at}


def _open_event(event: ScoredEvent) -> dict[str, Any]:
    return {name: getattr(event, "id" if name == "event_id" else name) for name in _OPENED}


def _as_model(event: ScoredEvent) -> BehaviorEvent:
    reasons = {"reasons": msgspec.to_builtins(event.reasons)}
    return BehaviorEvent(**msgspec.structs.asdict(event) | reasons)
