"""Filters of lists; that of tenants, like their column, names only those that the user may see.

Django's own filter over a relation lists every row of the related table; no page here uses it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.apps import apps
from django.db.models import Model, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter, RangeDateTimeFilter

from compliance.console.access import access_of

__all__ = [
    "ChoicesDropdownFilter",
    "ConditionFilter",
    "DropdownFilter",
    "RangeDateTimeFilter",
    "TenantFilter",
    "condition_filter",
    "tenants_of",
    "with_tenant_name",
]


def _tenants() -> QuerySet[Any]:
    """Return the tenants of the current environment. This room must not import theirs, so look it up."""
    model: type[Model] = apps.get_model("tenancy", "Tenant")
    return model._default_manager.order_by("name", "pk")


def with_tenant_name(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate `rows`, which have a tenant's id but no foreign key, with `tenant_name`."""
    name = Subquery(_tenants().filter(pk=OuterRef("tenant_id")).values("name")[:1])
    named: QuerySet[Any] = rows.annotate(tenant_name=name)
    return named


def tenants_of(request: HttpRequest) -> list[Any]:
    """Return the tenants to choose from, for users who see several; else none."""
    access = access_of(request)
    if not access.shows_many_tenants:
        return []
    return list(_tenants() if access.is_operator else _tenants().filter(pk__in=access.roles))


class ConditionFilter(DropdownFilter):
    """Filters by one of some conditions, each with the label that offers it."""

    conditions: ClassVar[Mapping[str, tuple[str, Q]]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, label) for value, (label, _) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        _, condition = self.conditions.get(self.value() or "", ("", Q()))
        return queryset.filter(condition)


def condition_filter(name: str, conditions: Mapping[str, tuple[str, Q]]) -> type[ConditionFilter]:
    """Return a filter by one of some conditions; `name` is its title and its query parameter."""
    own = {"title": name, "parameter_name": name, "conditions": conditions}
    return type("ConditionFilter", (ConditionFilter,), own)


class TenantFilter(DropdownFilter):
    """Filters by tenant, for users who see several."""

    title = "tenant"
    parameter_name = "tenant"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(row.pk), str(row)) for row in tenants_of(request)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        offered = {value for value, _ in self.lookup_choices}
        return queryset.filter(tenant_id=self.value()) if self.value() in offered else queryset
