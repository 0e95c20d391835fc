"""How agents stand at this moment: read afresh for every group of events, in one statement.

The scorer's context of an agent (its certified scope, its limits, its alarm budget, the places marked for its
tenant) changes seldom and is cached in the process under the agent's `updated_at`, its certificate, its
tenant's budget and the marks' version, so that no message is needed when it changes.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from agents.models import Agent
from certificates.models import AGENT_AND_LATEST, Certificate, certified_actions
from compliance.core.bounded_cache import BoundedCache
from compliance.stores import sql
from events.models import TenantMarks
from events.risk import marks
from events.risk.marks import context_of
from events.risk.rolling import HALF_LIFE
from events.risk.scoring.contract import NO_MARKS, Context
from tenancy.models import Tenant

KEPT = 5_000

# Ids and versions as text, which costs neither side much; the risk as it has faded by now.
_STANDING = f"""
SELECT agent.id::text, concat(agent.updated_at, ' ', marks.version, ' ', tenant.alarm_budget, ' ', latest.id),
       CASE WHEN agent.risk_updated_at IS NULL THEN 0 ELSE agent.risk_score * power(
           0.5, greatest(date_part('epoch', %s - agent.risk_updated_at), 0) / {HALF_LIFE.total_seconds()}
       ) END,
       agent.status = 'active' AND coalesce(latest.status = 'active' AND latest.expires_at >= %s, false)
FROM {AGENT_AND_LATEST}
JOIN {Tenant._meta.db_table} AS tenant ON tenant.id = agent.tenant_id
LEFT JOIN {TenantMarks._meta.db_table} AS marks ON marks.tenant_id = agent.tenant_id
WHERE agent.id = ANY(%s::uuid[]) AND agent.tenant_id = ANY(%s::uuid[])
"""  # noqa: S608  (only names of tables and a number are put into the text)
_OF_AGENTS = "WHERE id = ANY(%s::uuid[])"
_LATEST_OF_AGENTS = f"WHERE id IN (SELECT latest.id FROM {AGENT_AND_LATEST} WHERE agent.id = ANY(%s::uuid[]))"  # noqa: S608
_TENANT_IDS = f"(SELECT tenant_id FROM {Agent._meta.db_table} {_OF_AGENTS})"  # noqa: S608


class ScoringProfile(msgspec.Struct, frozen=True):
    """Data of an agent, cached until its version changes; `tenant_text` is the tenant's id as text.

    `scope`: the permitted actions to the letter, as `certificates.models.certified_actions`.
    """

    tenant_id: UUID
    tenant_text: str
    context: Context
    scope: Collection[str] | None


class AgentStanding(msgspec.Struct, frozen=True):
    """An agent as an event finds it; `may_report`: it is active and holds an active certificate."""

    id: str
    present_risk: float
    may_report: bool
    profile: ScoringProfile

    @property
    def has_limits(self) -> bool:
        return self.profile.context.financial_scope is not None


_profiles: BoundedCache[str, tuple[str, ScoringProfile]] = BoundedCache(KEPT)


def of_agents(agents: Collection[tuple[UUID, str]], *, now: datetime) -> Mapping[str, AgentStanding]:
    """Those of the agents that exist, by id; each is given with the tenant that names it.

    An agent of another tenant may be among them: its profile says whose it is.
    """
    found: dict[str, AgentStanding] = {}
    changed: dict[str, tuple[str, float, bool]] = {}
    for agent_id, version, risk, may_report in _read(agents, now):
        kept = _profiles.get(agent_id)
        if kept is not None and kept[0] == version:
            found[agent_id] = AgentStanding(agent_id, risk, may_report, kept[1])
        else:
            changed[agent_id] = (version, risk, may_report)
    for agent, context, scope in _described(changed):
        version, risk, may_report = changed[str(agent.id)]
        profile = ScoringProfile(agent.tenant_id, str(agent.tenant_id), context, scope)
        _profiles.put(str(agent.id), (version, profile))
        found[str(agent.id)] = AgentStanding(str(agent.id), risk, may_report, profile)
    return found


def _read(agents: Collection[tuple[UUID, str]], now: datetime) -> list[tuple[str, str, float, bool]]:
    tenants, ids = zip(*agents, strict=True)
    params = [now, now, sql.array(ids), sql.array(set(tenants))]
    return sql.read_again(lambda: sql.prepared(_STANDING, params))


def _described(agent_ids: Collection[str]) -> list[tuple[Agent, Context, list[str] | None]]:
    if not agent_ids:
        return []
    ids = [sql.array(agent_ids)]
    agents, tenants, versions, certificates = sql.read_together(
        (Agent, _OF_AGENTS, ids),
        (Tenant, f"WHERE id IN {_TENANT_IDS}", ids),
        (TenantMarks, f"WHERE tenant_id IN {_TENANT_IDS}", ids),
        (Certificate, _LATEST_OF_AGENTS, ids),
    )
    found = {tenant.id: tenant for tenant in tenants}
    for agent in agents:
        agent.tenant = found[agent.tenant_id]
    marked = marks.of_tenants(versions)
    certified = {certificate.agent_id: certificate for certificate in certificates}
    return [
        (
            agent,
            context_of(agent, certified.get(agent.id), marked.get(agent.tenant_id, NO_MARKS)),
            certified_actions(agent, certified.get(agent.id)),
        )
        for agent in agents
    ]
