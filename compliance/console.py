"""The base of the console's pages: rows of the session's environment and of the user's tenants only.

Who sees what is decided once per request, by the tenancy's middleware, and hangs on `request.console`.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from compliance.environments import Environment


@dataclass(frozen=True)
class ConsoleAccess:
    """What a console user sees and may do; `tenant_ids` None means every tenant (an operator)."""

    environment: Environment
    tenant_ids: frozenset[UUID] | None
    role: str

    @property
    def is_operator(self) -> bool:
        return self.tenant_ids is None


NO_ACCESS = ConsoleAccess(Environment.LIVE, frozenset(), "")


def access_of(request: HttpRequest) -> ConsoleAccess:
    """The request's access; none at all where no middleware granted any."""
    return getattr(request, "console", NO_ACCESS)


class TenantScopedAdmin(ModelAdmin):  # type: ignore[misc]
    """A read-only page of rows that carry a tenant; subclasses open what people may do, by role."""

    tenant_field = "tenant_id"
    view_roles: frozenset[str] = frozenset({"operator", "officer", "auditor", "developer"})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        access = access_of(request)
        if access.tenant_ids is None:
            return rows
        return rows.filter(**{f"{self.tenant_field}__in": access.tenant_ids})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).role in self.view_roles

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
