"""Routes that this process read a moment ago, so that a busy gateway costs few queries."""

from collections.abc import Collection, Mapping
from time import monotonic
from uuid import UUID

from compliance.core import environments
from compliance.core.bounded_cache import RecentlyRead
from compliance.stores import sql
from compliance.stores.asking import Asker
from compliance.stores.async_postgres import Query
from gateway.models import GatewayCredential, GatewayRoute

PLAIN = GatewayRoute(name="", credentials=GatewayCredential.values)
"""The route of a request that names none: any credential of the tenant's own agents."""
_Name = tuple[UUID, str]
"""A tenant, and the name of its route."""
_known: RecentlyRead[_Name, GatewayRoute] = RecentlyRead(5_000)
_COLUMNS = [field.attname for field in GatewayRoute._meta.concrete_fields]
_NAMED = f"""
SELECT {", ".join(_COLUMNS)} FROM {GatewayRoute._meta.db_table}
WHERE (tenant_id, name) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))
"""  # noqa: S608  (only names of columns and of a table are put into the text)


async def find(names: Collection[_Name], asker: Asker) -> Mapping[_Name, GatewayRoute]:
    """Find the routes of these names in the current environment, by one statement or by none."""
    found, read_at = _known.of(names), monotonic()
    stale = [name for name in names if name not in found]
    if stale:
        asked = Query(_NAMED, [sql.array(tenant for tenant, _ in stale), [name for _, name in stale]])
        (rows,), _ = await asker.ask([asked])
        routes = [GatewayRoute.from_db(environments.alias(), _COLUMNS, row) for row in rows]
        read = {(route.tenant_id, route.name): route for route in routes}
        _known.keep(read, read_at=read_at)
        found |= read
    return found


def forget(tenant_id: UUID, name: str) -> None:
    """Read the route again at its next use in this process."""
    _known.forget((tenant_id, name))
