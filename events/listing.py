"""Pages of a tenant's events: a prepared statement for each kind of question, rows straight into the answer.

Planning over all partitions costs more than reading a page; prepared, it is done once for each connection.
What decides about a partial index (the band) or a plan (the page's size) stands in the text itself.
"""

from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
import orjson

from agents.models import Agent
from compliance import sql
from compliance.api.pagination import Cursor
from events.models import BehaviorEvent, RiskBand

SHOWN = ("id", "agent_id", "action_type", "risk_score", "risk_band", "occurred_at", "details")


class Question(msgspec.Struct, frozen=True):
    """Which of a tenant's events, newest first: past `cursor`, at most `limit`; None filters nothing."""

    tenant_id: UUID
    limit: int
    agent_id: UUID | None = None
    band: str | None = None
    action_type: str | None = None
    cursor: Cursor | None = None


class EventPage(msgspec.Struct, frozen=True):
    """Events as the API shows them, and the cursor of the next page, None on the last."""

    rows: list[dict[str, Any]]
    next_cursor: str | None


def page_of(question: Question) -> EventPage:
    """The page that answers the question; an agent of another tenant has no events."""
    found = sql.prepared(*statement(question))
    rows = [dict(zip(SHOWN, (*row[:-1], orjson.Fragment(row[-1])), strict=True)) for row in found]
    if len(rows) <= question.limit:
        return EventPage(rows, None)
    last = found[question.limit - 1]
    return EventPage(rows[: question.limit], str(Cursor(last[5], UUID(last[0]))))


def statement(question: Question) -> tuple[str, dict[str, Any]]:
    """The query and its parameters."""
    cursor = question.cursor
    text = _sql(
        by_agent=question.agent_id is not None,
        band=RiskBand(question.band) if question.band else None,
        by_type=question.action_type is not None,
        past="nothing" if cursor is None else "moment" if cursor.id is None else "row",
        limit=question.limit + 1,
    )
    return text, {
        "tenant": question.tenant_id,
        "agent": question.agent_id,
        "type": question.action_type,
        "at": cursor.at if cursor else None,
        "id": cursor.id if cursor else None,
    }


@lru_cache(maxsize=1024)
def _sql(*, by_agent: bool, band: RiskBand | None, by_type: bool, past: str, limit: int) -> str:
    """Only names, bands and numbers of our own are put into the text."""
    tenant = "tenant_id = %(tenant)s"
    conditions = [f"agent_id = %(agent)s AND EXISTS (SELECT FROM {Agent._meta.db_table} agent WHERE"
                  f" agent.id = %(agent)s AND agent.{tenant})" if by_agent else tenant]  # fmt: skip
    if band:
        conditions.append(f"risk_band = '{band.value}'")
    if by_type:
        conditions.append("action_type = %(type)s")
    if past != "nothing":
        row = "occurred_at < %(at)s" if past == "moment" else "(occurred_at, id) < (%(at)s, %(id)s)"
        conditions.append(row)
    return (
        "SELECT event.id::text, agent_id::text, action_type, risk_score, risk_band, occurred_at,"  # noqa: S608
        f" details::text FROM {BehaviorEvent._meta.db_table} event WHERE {' AND '.join(conditions)}"
        f" ORDER BY occurred_at DESC, event.id DESC LIMIT {limit:d}"
    )
