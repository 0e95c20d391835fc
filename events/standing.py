"""How agents stand at this moment: read afresh for every group of events, in one statement.

What the scorer is told of an agent (its scope and limits) changes seldom and is kept in the process under
the agent's `updated_at`, so that nobody has to be told when it changes.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

import msgspec
import psycopg
from django.db import connections

from agents.models import Agent
from certificates.models import Certificate
from compliance import environments
from compliance.bounded import Bounded
from events.context import context_of
from events.scoring import Context

KEPT = 5_000

_QUERY = f"""
SELECT agent.id, agent.tenant_id, agent.updated_at, agent.risk_score, agent.risk_updated_at,
       agent.status = 'active' AND EXISTS (
           SELECT FROM {Certificate._meta.db_table} AS certificate
           WHERE certificate.agent_id = agent.id
             AND certificate.status = 'active' AND certificate.expires_at >= %s
       )
FROM {Agent._meta.db_table} AS agent
WHERE agent.id = ANY(%s)
"""  # noqa: S608  (only names of tables are put into the text)


class Standing(msgspec.Struct, frozen=True):
    """An agent as an event finds it; `may_report`: it is active and holds an active certificate."""

    id: UUID
    tenant_id: UUID
    updated_at: datetime
    risk_score: float
    risk_updated_at: datetime | None
    may_report: bool
    context: Context


_Row = tuple[UUID, UUID, datetime, float, datetime | None, bool]
_contexts: Bounded[UUID, tuple[datetime, Context]] = Bounded(KEPT)


def of_agents(agent_ids: Collection[UUID], *, now: datetime) -> Mapping[UUID, Standing]:
    """Those of the agents that exist in the current environment, by id."""
    rows = _read(agent_ids, now)
    contexts = _contexts_of({row[0]: row[2] for row in rows})
    return {row[0]: Standing(*row, contexts[row[0]]) for row in rows if row[0] in contexts}


def _read(agent_ids: Collection[UUID], now: datetime) -> list[_Row]:
    connection = connections[environments.current().alias]
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        return cursor.execute(_QUERY, [now, list(agent_ids)], prepare=True, binary=True).fetchall()


def _contexts_of(versions: Mapping[UUID, datetime]) -> dict[UUID, Context]:
    """What the scorer is told of each agent of the given version."""
    found: dict[UUID, Context] = {}
    for agent_id, updated_at in versions.items():
        kept = _contexts.get(agent_id)
        if kept is not None and kept[0] == updated_at:
            found[agent_id] = kept[1]
    missing = versions.keys() - found.keys()
    if missing:
        for agent in Agent.objects.filter(id__in=missing):
            context = context_of(agent)
            _contexts.put(agent.id, (agent.updated_at, context))
            found[agent.id] = context
    return found
