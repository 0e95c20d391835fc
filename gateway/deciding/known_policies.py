"""Approval policies that this process read a moment ago, so that decisions cost no query for them."""

from collections.abc import Collection, Mapping
from time import monotonic
from uuid import UUID

from compliance.core import environments
from compliance.core.bounded_cache import RecentlyRead
from compliance.core.json_values import from_stored
from compliance.stores import sql
from compliance.stores.asking import Asker
from compliance.stores.async_postgres import Query
from gateway.models import AskPolicy

NEVER = AskPolicy()

_OF_BLUEPRINTS = """
SELECT tenant_id, id, ask_policy::text FROM agents_blueprint
WHERE tenant_id = ANY($1::uuid[]) AND ask_policy IS NOT NULL
"""
_BLUEPRINTS = """
SELECT id, blueprint_id FROM agents_agent
WHERE id = ANY($1::uuid[]) AND tenant_id = ANY($2::uuid[]) AND blueprint_id IS NOT NULL
"""
_COLUMNS = [field.attname for field in AskPolicy._meta.concrete_fields]
_OF_TENANTS = f"""
SELECT {", ".join(_COLUMNS)} FROM {AskPolicy._meta.db_table} WHERE tenant_id = ANY($1::uuid[])
"""  # noqa: S608  (only names of columns and of a table are put into the text)


class TenantPolicies:
    """The policies of one tenant; the most specific one counts."""

    def __init__(self) -> None:
        self._found: dict[tuple[UUID | None, UUID | None], AskPolicy] = {}
        self.of_blueprints: dict[UUID, AskPolicy] = {}
        self.blueprints: dict[UUID, UUID | None] = {}  # of the agents asked about

    def add(self, policy: AskPolicy) -> None:
        self._found[policy.agent_id, policy.route_id] = policy

    def policy_for(self, agent_id: UUID, route_id: UUID | None = None) -> AskPolicy:
        """The policy of the route, else the agent, its blueprint or the tenant, else one that never asks."""
        of_route = self._found.get((None, route_id)) if route_id is not None else None
        blueprint_id = self.blueprints.get(agent_id)
        of_blueprint = self.of_blueprints.get(blueprint_id) if blueprint_id else None
        of_agent = self._found.get((agent_id, None)) or of_blueprint
        return of_route or of_agent or self._found.get((None, None)) or NEVER


_known: RecentlyRead[UUID, TenantPolicies] = RecentlyRead(5_000)


async def find(agents: Collection[tuple[UUID, UUID]], asker: Asker) -> Mapping[UUID, TenantPolicies]:
    """Find the policies for agents, given as tenant and agent, by few statements or by none."""
    tenant_ids = {tenant_id for tenant_id, _ in agents}
    found, read_at = _known.of(tenant_ids), monotonic()
    stale = [name for name in tenant_ids if name not in found]
    if stale:
        queries = [Query(text, [sql.array(stale)]) for text in (_OF_TENANTS, _OF_BLUEPRINTS)]
        (rows, of_blueprints), _ = await asker.ask(queries)
        found |= {name: TenantPolicies() for name in stale}
        for row in rows:
            policy = AskPolicy.from_db(environments.alias(), _COLUMNS, row)
            found[policy.tenant_id].add(policy)
        for tenant_id, blueprint_id, fields in of_blueprints:
            found[tenant_id].of_blueprints[blueprint_id] = AskPolicy(**from_stored(fields))
        _known.keep({name: found[name] for name in stale}, read_at=read_at)
    unknown = [
        (tenant_id, agent_id)
        for tenant_id, agent_id in agents
        if found[tenant_id].of_blueprints and agent_id not in found[tenant_id].blueprints
    ]
    if unknown:
        tenants, ids = ([*{*names}] for names in zip(*unknown, strict=True))
        (rows,), _ = await asker.ask([Query(_BLUEPRINTS, [sql.array(ids), sql.array(tenants)])])
        of_agents: dict[UUID, UUID] = dict(rows)
        for tenant_id, agent_id in unknown:
            found[tenant_id].blueprints[agent_id] = of_agents.get(agent_id)
    return found


def forget(tenant_id: UUID) -> None:
    """Read the tenant's policies again at their next use in this process."""
    _known.forget(tenant_id)
