"""Pages of a tenant's events: a prepared statement for each kind of question, rows straight into the answer.

Planning over all partitions costs more than reading a page; prepared, it is done once for each connection.
What decides about a partial index (the band) or a plan (the page's size) stands in the text itself.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import orjson

from agents.models import Agent
from compliance import sql
from compliance.api.pagination import FULL_PAGE, Cursor, read_choice, read_cursor, read_id, read_limit
from events.models import ActionType, BehaviorEvent, RiskBand

PLAIN_OCTETS = 2_000
"""PostgreSQL keeps longer details compressed and apart; to know their length they must be read."""

BANDS, TYPES = tuple(RiskBand.values), tuple(ActionType.values)


class Question(msgspec.Struct, frozen=True):
    """Which of a tenant's events, newest first: past `cursor`, at most `limit`; None filters nothing."""

    tenant_id: UUID
    limit: int
    agent_id: UUID | None = None
    band: str | None = None
    action_type: str | None = None
    cursor: Cursor | None = None


class Statement(NamedTuple):
    """What PostgreSQL is asked; parameter n stands as `$n` in the text."""

    text: str
    params: list[Any]


class EventPage(msgspec.Struct, frozen=True):
    """Events as the API shows them, and the cursor of the next page, None on the last.

    It has fewer than `limit` where those before the next one fill it already (`FULL_PAGE`).
    """

    rows: list[dict[str, Any]]
    next_cursor: str | None


def read_question(params: Mapping[str, str], *, tenant_id: UUID) -> Question:
    """What a request's query asks of the tenant's events; raises `Invalid`."""
    return Question(
        tenant_id=tenant_id,
        agent_id=read_id(params, "agent_id"),
        band=read_choice(params, "band", BANDS),
        action_type=read_choice(params, "action_type", TYPES),
        cursor=read_cursor(params),
        limit=read_limit(params),
    )


def page_of(question: Question) -> EventPage:
    """The page that answers the question; an agent of another tenant has no events."""
    return page_from(sql.asked(*statement(question)), limit=question.limit)


def page_from(found: Sequence[Sequence[Any]], *, limit: int) -> EventPage:
    """The page that the rows of a question's statement make."""
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


def statement(question: Question) -> Statement:
    """What finds the question's rows, and more where there is a next page; those that a full page has no room
    for come without their details."""
    cursor = question.cursor
    text, names = _sql(
        by_agent=question.agent_id is not None,
        band=RiskBand(question.band) if question.band else None,
        by_type=question.action_type is not None,
        past="nothing" if cursor is None else "moment" if cursor.id is None else "row",
        limit=question.limit + 1,
    )
    values = {
        "tenant": question.tenant_id,
        "agent": question.agent_id,
        "type": question.action_type,
        "at": cursor.at if cursor else None,
        "id": cursor.id if cursor else None,
    }
    return Statement(text, [values[name] for name in names])


@lru_cache(maxsize=1024)
def _sql(
    *, by_agent: bool, band: RiskBand | None, by_type: bool, past: str, limit: int
) -> tuple[str, tuple[str, ...]]:
    """The text, into which only names, bands and numbers of our own are put, and what its parameters are."""
    names = ["tenant"]

    def place(name: str) -> str:
        names.append(name)
        return f"${len(names)}"

    conditions = ["tenant_id = $1"]
    if by_agent:
        agent = place("agent")
        conditions = [f"agent_id = {agent} AND EXISTS (SELECT FROM {Agent._meta.db_table} agent WHERE"
                      f" agent.id = {agent} AND agent.tenant_id = $1)"]  # fmt: skip
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
