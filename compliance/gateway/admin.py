"""Routes of gateways in the console, to read; they are changed through the API."""

from django.contrib import admin
from unfold.decorators import display

from compliance.console.admin import AUDIT_TRAIL, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, chips, code, status_chip, visible
from compliance.console.filters import ChoicesDropdownFilter, tenant_filter
from compliance.console.navigation import NavigationLine
from compliance.gateway.models import GatewayRoute


@admin.register(GatewayRoute)
class GatewayRouteAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 4, "Gateway routes", "door_front")
    related_links = (AUDIT_TRAIL,)
    list_display = ("label", "credential_chips", "demanded", "band", "root", "agents", "tenant", "updated_at")
    list_select_related = ("tenant",)
    list_filter = (("agents", ChoicesDropdownFilter), ("root", ChoicesDropdownFilter), tenant_filter())
    search_fields = ("name", "action", "audience")
    ordering = ("name", "id")
    fieldsets = (
        (None, {"fields": ("label", "tenant", "credential_chips", "demanded", "expected_audience")}),
        ("Limits", {"fields": ("band", "root", "agents", "nonce_required")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at")}),
    )
    readonly_fields = ("label", "credential_chips", "demanded", "expected_audience", "band", "identifier")

    label = display(lambda self, row: code(row.name), description="name", ordering="name")
    credential_chips = display(lambda self, row: chips(row.credentials), description="credentials")
    demanded = display(
        lambda self, row: chip(row.action, verbatim=True) if row.action else "named by the gateway",
        description="action",
        ordering="action",
    )
    expected_audience = display(
        lambda self, row: visible(row.audience) if row.audience else EMPTY, description="audience"
    )
    band = display(
        lambda self, row: status_chip(row.highest_band), description="highest band", ordering="highest_band"
    )
    identifier = display(lambda self, row: code(row.pk), description="ID")
