"""Tenants in the console."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.decorators import display

from auditlog.vocabulary import Actor
from compliance.clock import now
from compliance.console import RelatedLink, TenantScopedAdmin, access_of
from compliance.console.admin import AUDIT_TRAIL
from compliance.console.display import code
from compliance.tenancy import services
from compliance.tenancy.models import Tenant


@admin.register(Tenant)
class TenantAdmin(TenantScopedAdmin):
    """Operators make tenants; everybody else sees their own."""

    tenant_field = "id"
    list_display = ("name", "identifier", "created_at")
    search_fields = ("name",)
    ordering = ("name", "id")
    readonly_fields = ("identifier", "created_at")
    fieldsets = ((None, {"fields": ("name", "identifier", "created_at")}),)
    add_fieldsets = ((None, {"fields": ("name",)}),)
    related_links = (
        RelatedLink("Agents", "smart_toy", "agents_agent", "tenant__id__exact"),
        RelatedLink("API keys", "key", "tenancy_apikey", "tenant__id__exact"),
        RelatedLink("Memberships", "badge", "tenancy_membership", "tenant_id"),
        AUDIT_TRAIL,
    )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        actor = Actor.console_user(request.user.get_username())
        made = services.create_tenant(name=form.cleaned_data["name"], actor=actor, now=now())
        obj.pk, obj.created_at = made.pk, made.created_at

    @display(description="ID")
    def identifier(self, tenant: Tenant) -> str:
        return code(tenant.pk)
