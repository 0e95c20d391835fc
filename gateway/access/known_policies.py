"""Policies of asking that this process read a moment ago, so that decisions cost no query for them."""

from collections.abc import Collection, Mapping
from time import monotonic
from uuid import UUID

from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.stores.asking import Asker
from compliance.stores.async_postgres import Query
from gateway.models import AskPolicy

FRESH_SECONDS = 0.8
"""How long policies are not read again; every process decides by a changed one within a second."""
KEPT = 5_000
NEVER = AskPolicy()

_COLUMNS = [field.attname for field in AskPolicy._meta.concrete_fields]
_OF_TENANTS = f"""
SELECT {", ".join(_COLUMNS)} FROM {AskPolicy._meta.db_table} WHERE tenant_id = ANY($1::uuid[])
"""  # noqa: S608  (only names of columns and of a table are put into the text)


class TenantPolicies:
    """The policies of one tenant; the most specific one counts."""

    def __init__(self) -> None:
        self._found: dict[tuple[UUID | None, UUID | None], AskPolicy] = {}

    def add(self, policy: AskPolicy) -> None:
        self._found[policy.agent_id, policy.route_id] = policy

    def policy_for(self, agent_id: UUID, route_id: UUID | None = None) -> AskPolicy:
        """The policy of the route, else of the agent, else of the tenant, else the one that never asks."""
        if not self._found:
            return NEVER
        of_route = self._found.get((None, route_id)) if route_id is not None else None
        return of_route or self._found.get((agent_id, None)) or self._found.get((None, None)) or NEVER


_known: "BoundedCache[tuple[Environment, UUID], tuple[float, TenantPolicies]]" = BoundedCache(KEPT)


async def find(tenant_ids: Collection[UUID], asker: Asker) -> Mapping[UUID, TenantPolicies]:
    """Find the tenants' policies in the current environment, by one statement or by none."""
    environment, read_at = environments.current(), monotonic()
    known = {name: _known.get((environment, name)) for name in tenant_ids}
    found = {name: kept[1] for name, kept in known.items() if kept and read_at < kept[0] + FRESH_SECONDS}
    stale = [name for name in known if name not in found]
    if stale:
        (rows,), _ = await asker.ask([Query(_OF_TENANTS, [sql.array(stale)])])
        found |= {name: TenantPolicies() for name in stale}
        for row in rows:
            policy = AskPolicy.from_db(environments.alias(), _COLUMNS, row)
            found[policy.tenant_id].add(policy)
        _known.put_all({(environment, name): (read_at, found[name]) for name in stale})
    return found


def forget(tenant_id: UUID) -> None:
    """Read the tenant's policies again at their next use in this process."""
    environment = environments.current()
    environments.on_commit(lambda: _known.drop((environment, tenant_id)))
