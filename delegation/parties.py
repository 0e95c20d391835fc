"""The agents that a token is issued by and comes from, each with its latest certificate.

Both are read in one round trip, by statements that the server plans once.
"""

from collections.abc import Collection
from typing import Any, Final, NamedTuple
from uuid import UUID

from agents.errors import AgentNotFound
from agents.models import Agent
from certificates.models import Certificate
from compliance.core.identifiers import parse_id
from compliance.stores import sql

_AGENT: Final = "WHERE tenant_id = %s AND id = %s"
_LATEST: Final = "WHERE agent_id = %s ORDER BY issued_at DESC, id DESC LIMIT 1"
_AGENTS: Final = "WHERE id = ANY(%s::uuid[])"
_LATEST_OF_EACH: Final = f"""
WHERE id = ANY(ARRAY(
    SELECT (SELECT id FROM {Certificate._meta.db_table} AS certificate
        WHERE certificate.agent_id = asked.id ORDER BY issued_at DESC, id DESC LIMIT 1)
    FROM unnest(%s::uuid[]) AS asked (id)))
"""  # noqa: S608  (a name of ours)


class Party(NamedTuple):
    """An agent, and its latest certificate in any state, if it ever had one."""

    agent: Agent
    certificate: Certificate | None


def party(*, tenant_id: UUID, agent_id: Any, locked: bool = False) -> Party:
    """The agent with an id from a client; raises `AgentNotFound`, also if malformed.

    `locked`: locked until the transaction ends, and its certificate as it was when the lock was acquired.
    """
    parsed = parse_id(str(agent_id))
    agents, certificates = sql.read_together(
        (Agent, f"{_AGENT} FOR NO KEY UPDATE" if locked else _AGENT, (tenant_id, parsed)),
        (Certificate, _LATEST, (parsed,)),
    )
    if not agents:
        raise AgentNotFound()
    return Party(agents[0], certificates[0] if certificates else None)


def parties(agent_ids: Collection[UUID]) -> dict[UUID, Party]:
    """The agents of any tenant that there are among these, by id."""
    ids = sql.array(agent_ids)
    agents, certificates = sql.read_together((Agent, _AGENTS, (ids,)), (Certificate, _LATEST_OF_EACH, (ids,)))
    latest = {certificate.agent_id: certificate for certificate in certificates}
    return {agent.id: Party(agent, latest.get(agent.id)) for agent in agents}
