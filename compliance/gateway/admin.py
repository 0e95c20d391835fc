"""The console's page of routes of gateways."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import display

from auditlog.actors.requests import actor_of
from compliance.console.access import DEVELOPERS, access_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, chips, code, status_chip, visible
from compliance.console.filters import ChoicesDropdownFilter, tenant_filter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from compliance.gateway import services
from compliance.gateway.forms import GatewayRouteForm
from compliance.gateway.models import GatewayRoute


def _remove(call: ActionCall) -> HttpResponse:
    services.delete(
        tenant_id=call.row.tenant_id, route_id=call.row.pk, actor=actor_of(call.request), now=call.now
    )
    messages.success(call.request, "The route is removed.")
    return HttpResponseRedirect(reverse("admin:gateway_gatewayroute_changelist"))


REMOVE = ConfirmedAction(
    "remove",
    "Remove",
    "delete",
    "Gateways that name this route let nothing pass from now on.",
    _remove,
    is_offered=lambda row: True,
    roles=DEVELOPERS,
    form_class=Form,
    is_destructive=True,
)


@admin.register(GatewayRoute)
class GatewayRouteAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 4, "Gateway routes", "door_front")
    form = GatewayRouteForm
    add_roles = DEVELOPERS
    confirmed_actions = (REMOVE,)
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
    add_fieldsets = ((None, {"fields": ("tenant", *services.FIELDS)}),)
    edit_fieldsets = (
        (None, {"fields": services.FIELDS}),
        ("Life", {"fields": ("tenant", "identifier", "created_at", "updated_at")}),
    )

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

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and access_of(request).may(DEVELOPERS, obj.tenant_id)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.add_fieldsets
        may_edit = self.has_change_permission(request, obj)
        return self.edit_fieldsets if may_edit else super().get_fieldsets(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return every field of the page but those that are edited."""
        if obj is None:
            return ()
        shown = flatten_fieldsets(self.get_fieldsets(request, obj))
        return [name for name in shown if name not in services.FIELDS]

    def save_model(self, request: HttpRequest, obj: GatewayRoute, form: Any, change: bool) -> None:
        given, actor = {name: form.cleaned_data[name] for name in services.FIELDS}, actor_of(request)
        if change:
            services.update(tenant_id=obj.tenant_id, route_id=obj.pk, changes=given, actor=actor, now=now())
        else:
            made = services.create(tenant_id=obj.tenant_id, fields=given, actor=actor, now=now())
            obj.pk = made.pk
