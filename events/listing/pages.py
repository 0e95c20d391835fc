"""Pages of a tenant's events: a prepared statement for each kind of question, rows straight into the answer.

Planning over all partitions costs more than reading a page; prepared, it is done once for each connection.
The band, which decides about partial indexes, and the page's size, about the plan, stand in the text itself.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
import orjson
from django.conf import settings

from agents.models import Agent
from compliance.api.pagination import FULL_PAGE, Cursor, read_choice, read_cursor, read_id, read_limit
from compliance.stores.async_postgres import Query
from events.models import ActionType, BehaviorEvent, RiskBand

PLAIN_OCTETS = 2_000  # longer details are compressed and apart; to know their length they must be read
BANDS, TYPES = tuple(RiskBand.values), tuple(ActionType.values)


class EventQuery(msgspec.Struct, frozen=True):
    """Which of a tenant's events, newest first: past `cursor`, at most `limit`; None filters nothing."""

    tenant_id: UUID
    limit: int
    agent_id: UUID | None = None
    band: str | None = None
    action_type: str | None = None
    cursor: Cursor | None = None


class EventPage(msgspec.Struct, frozen=True):
    """Events as the API shows them, fewer than `limit` if they fill a page (`FULL_PAGE`)."""

    rows: list[dict[str, Any]]
    next_cursor: str | None


def read_query(params: Mapping[str, str], *, tenant_id: UUID) -> EventQuery:
    """What a request's query asks of the tenant's events; raises `Invalid`."""
    return EventQuery(
        tenant_id=tenant_id,
        agent_id=read_id(params, "agent_id"),
        band=read_choice(params, "band", BANDS),
        action_type=read_choice(params, "action_type", TYPES),
        cursor=read_cursor(params),
        limit=read_limit(params),
    )


def page_from(found: Sequence[Sequence[Any]], *, limit: int) -> EventPage:
    rows = [
        {
            "id": event,
            "agent_id": agent,
            "action_type": action_type,
            "risk_score": score,
            "risk_band": band,
            "occurred_at": at,
            "details": orjson.Fragment(details),
        }
        for event, agent, action_type, score, band, at, details in found[:limit]
        if details is not None
    ]
    if len(rows) == len(found):
        return EventPage(rows, None)
    last = rows[-1]
    return EventPage(rows, str(Cursor(last["occurred_at"], UUID(last["id"]))))


def statement(asked: EventQuery) -> Query:
    """What finds the question's rows, and more where there is a next page; those that a full page has no room
    for come without their details."""
    cursor = asked.cursor
    text, names = _sql(
        by_agent=asked.agent_id is not None,
        band=RiskBand(asked.band) if asked.band else None,
        by_type=asked.action_type is not None,
        is_divided=settings.DATABASE_CITUS,
        past="nothing" if cursor is None else "moment" if cursor.id is None else "row",
        limit=asked.limit + 1,
    )
    values = {
        "tenant": asked.tenant_id,
        "agent": asked.agent_id,
        "type": asked.action_type,
        "at": cursor.at if cursor else None,
        "id": cursor.id if cursor else None,
    }
    return Query(text, [values[name] for name in names])


@lru_cache(maxsize=1024)
def _sql(
    *, by_agent: bool, band: RiskBand | None, by_type: bool, is_divided: bool, past: str, limit: int
) -> tuple[str, tuple[str, ...]]:
    """The text, into which only names, bands and numbers of our own are put, and what its parameters are."""
    names = ["tenant"]

    def place(name: str) -> str:
        names.append(name)
        return f"${len(names)}"

    conditions = ["tenant_id = $1"]
    if by_agent:
        agent = place("agent")
        own = f"agent.id = {agent} AND agent.tenant_id = $1"
        exists = f"EXISTS (SELECT 1 FROM {Agent._meta.db_table} agent WHERE {own})"  # noqa: S608
        # Citus finds the node only by a condition on the events' own tenant.
        conditions = [*(conditions if is_divided else []), f"agent_id = {agent}", exists]
    if band:
        conditions.append(f"risk_band = '{band.value}'")
    if by_type:
        conditions.append(f"action_type = {place('type')}")
    if past == "moment":
        conditions.append(f"occurred_at < {place('at')}")
    elif past == "row":
        conditions.append(f"(occurred_at, id) < ({place('at')}, {place('id')})")
    return (
        "SELECT id::text, agent_id::text, action_type, risk_score, risk_band, occurred_at,"  # noqa: S608
        f" CASE WHEN octets_to_here - octets < {FULL_PAGE:d} THEN details::text END FROM"
        " (SELECT *, sum(octets) OVER (ORDER BY occurred_at DESC, id DESC) AS octets_to_here FROM"
        " (SELECT id, agent_id, action_type, risk_score, risk_band, occurred_at, details,"
        f" CASE WHEN pg_column_size(details) < {PLAIN_OCTETS:d} THEN pg_column_size(details)"
        " ELSE octet_length(details::text) END AS octets"
        f" FROM {BehaviorEvent._meta.db_table} event WHERE {' AND '.join(conditions)}"
        f" ORDER BY occurred_at DESC, id DESC LIMIT {limit:d}) AS asked) AS measured"
        " ORDER BY occurred_at DESC, measured.id DESC"
    ), tuple(names)
