"""Create, change and delete the routes of a tenant's gateways; each change is audited."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import Conflict, Invalid
from gateway.deciding import known_routes
from gateway.models import GatewayCredential, GatewayRoot, GatewayRoute
from tenancy.models import Tenant

MOST_ROUTES: Final = 200
FIELDS: Final = (
    *("name", "credentials", "action", "audience", "highest_band", "root", "agents", "nonce_required"),
    "uncertified_agents",
)


class RouteNameTaken(Conflict):
    message = "The tenant has a gateway route of this name"


class TooManyRoutes(Conflict):
    message = "The tenant has as many gateway routes as it can have"


class InconsistentRoute(Invalid):
    message = "The settings of the route contradict each other"


def create(*, tenant_id: UUID, fields: Mapping[str, Any], actor: Actor, now: datetime) -> GatewayRoute:
    """Create a route. Raises `InconsistentRoute`, `RouteNameTaken`, `TooManyRoutes`."""
    route = GatewayRoute(tenant_id=tenant_id, created_at=now, updated_at=now, **fields)
    with environments.atomic():
        # Routes of one tenant are made one after the other, so that the limit holds.
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        if GatewayRoute.objects.for_tenant(tenant_id).count() >= MOST_ROUTES:
            raise TooManyRoutes()
        _check(route)
        route.save(force_insert=True)
        stated = {name: getattr(route, name) for name in FIELDS}
        _record(route, AuditAction.GATEWAY_ROUTE_CREATED, "created", actor, now, fields=stated)
    return route


def update(
    *, tenant_id: UUID, route_id: Any, changes: Mapping[str, Any], actor: Actor, now: datetime
) -> GatewayRoute:
    """Set fields of a route. Raises `RouteNotFound`, `InconsistentRoute`, `RouteNameTaken`."""
    with environments.atomic():
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        route = GatewayRoute.objects.for_tenant(tenant_id).locked().find(route_id)
        changed = [name for name, value in changes.items() if getattr(route, name) != value]
        if not changed:
            return route
        before = {name: getattr(route, name) for name in changed}
        for name in changed:
            setattr(route, name, changes[name])
        _check(route)
        route.updated_at = now
        route.save(update_fields=[*changed, "updated_at"])
        differences = {
            name: {"before": before[name], "after": getattr(route, name)} for name in sorted(changed)
        }
        _record(route, AuditAction.GATEWAY_ROUTE_UPDATED, "changed", actor, now, changes=differences)
        for name in {route.name, before.get("name", route.name)}:
            known_routes.forget(tenant_id, name)
    return route


def delete(*, tenant_id: UUID, route_id: Any, actor: Actor, now: datetime) -> None:
    """Delete a route: its gateway is refused from the next second on. Raises `RouteNotFound`."""
    with environments.atomic():
        route = GatewayRoute.objects.for_tenant(tenant_id).locked().find(route_id)
        _record(route, AuditAction.GATEWAY_ROUTE_DELETED, "deleted", actor, now)
        route.delete()
        known_routes.forget(tenant_id, route.name)


def contradictions(
    credentials: Collection[str], root: str, nonce_required: bool
) -> Iterator[tuple[str, str]]:
    """Yield each field of a route that its credentials contradict, with what to do about it."""
    if root == GatewayRoot.VERIFIED and GatewayCredential.SERIAL in credentials:
        yield "root", "A serial number has no verified root; leave it out of credentials."
    if root == GatewayRoot.VERIFIED and GatewayCredential.HTTPSIG in credentials:
        yield "root", "A signed request has no verified root; leave httpsig out of credentials."
    if nonce_required and GatewayCredential.DPOP not in credentials:
        yield "nonce_required", "Only proofs carry nonces; add dpop to credentials."


def _check(route: GatewayRoute) -> None:
    for field, contradiction in contradictions(route.credentials, route.root, route.nonce_required):
        raise InconsistentRoute(f"{field}: {contradiction}")
    others = GatewayRoute.objects.for_tenant(route.tenant_id).exclude(id=route.id)
    if others.filter(name=route.name).exists():
        raise RouteNameTaken()


def _record(
    route: GatewayRoute, action: AuditAction, verb: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    description = f"Gateway route {route.name} {verb}"
    metadata = {"name": route.name, **metadata}
    auditlog.record(of=route, action=action, description=description, metadata=metadata, actor=actor, now=now)
