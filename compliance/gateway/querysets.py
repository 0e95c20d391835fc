"""Queries for routes of gateways."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models

from compliance.core.identifiers import parse_id
from compliance.gateway.errors import RouteNotFound

if TYPE_CHECKING:
    from compliance.gateway.models import GatewayRoute


class GatewayRouteQuerySet(models.QuerySet["GatewayRoute"]):
    def for_tenant(self, tenant_id: UUID) -> "GatewayRouteQuerySet":
        return self.filter(tenant_id=tenant_id)

    def locked(self) -> "GatewayRouteQuerySet":
        return self.select_for_update(of=("self",))

    def find(self, route_id: Any) -> "GatewayRoute":
        """Return the route with an id from a client; raises `RouteNotFound`, also if malformed."""
        route = self.filter(id=parse_id(str(route_id))).first()
        if route is None:
            raise RouteNotFound()
        return route
