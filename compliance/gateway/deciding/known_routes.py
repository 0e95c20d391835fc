"""Routes that this process read a moment ago, so that a busy gateway costs few queries."""

from collections.abc import Collection, Mapping
from time import monotonic
from uuid import UUID

from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.environments import Environment
from compliance.gateway.deciding.rules import RouteRules
from compliance.gateway.models import GatewayRoute
from compliance.stores import sql
from compliance.stores.async_postgres import Query
from compliance.stores.trips import Steps, Trip

FRESH_SECONDS = 0.8
"""How long a route is not read again; every process decides by a changed one within a second."""
KEPT = 5_000

_Name = tuple[UUID, str]
"""A tenant, and the name of its route."""
_known: "BoundedCache[tuple[Environment, _Name], tuple[float, RouteRules]]" = BoundedCache(KEPT)
_COLUMNS = [field.attname for field in GatewayRoute._meta.concrete_fields]
_NAMED = f"""
SELECT {", ".join(_COLUMNS)} FROM {GatewayRoute._meta.db_table}
WHERE (tenant_id, name) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))
"""  # noqa: S608  (only names of columns and of a table are put into the text)


def find_in_steps(names: Collection[_Name]) -> Steps[Mapping[_Name, RouteRules]]:
    """Find the routes of these names in the current environment, by one statement or by none."""
    fresh = {name: rules for name in names if (rules := _fresh(name)) is not None}
    stale = [name for name in names if name not in fresh]
    if not stale:
        return fresh
    read_at = monotonic()
    asked = Query(_NAMED, [sql.array(tenant for tenant, _ in stale), [name for _, name in stale]])
    (rows,), _ = yield Trip([asked])
    routes = (GatewayRoute.from_db(environments.alias(), _COLUMNS, row) for row in rows)
    read = {(route.tenant_id, route.name): RouteRules.of(route) for route in routes}
    for name, rules in read.items():
        _known.put((environments.current(), name), (read_at, rules))
    return {**fresh, **read}


def forget(tenant_id: UUID, name: str) -> None:
    """Read the route again at its next use in this process."""
    environment = environments.current()
    environments.on_commit(lambda: _known.drop((environment, (tenant_id, name))))


def _fresh(name: _Name) -> RouteRules | None:
    found = _known.get((environments.current(), name))
    return found[1] if found is not None and monotonic() < found[0] + FRESH_SECONDS else None
