"""Tenants, keys and memberships in the console."""

from django.contrib import admin

from compliance.console import TenantScopedAdmin
from compliance.tenancy.models import ApiKey, Membership, Tenant


@admin.register(Tenant)
class TenantAdmin(TenantScopedAdmin):
    tenant_field = "id"
    list_display = ("name", "id", "created_at")
    search_fields = ("name",)


@admin.register(ApiKey)
class ApiKeyAdmin(TenantScopedAdmin):
    list_display = ("name", "hint", "tenant", "created_at", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("tenant",)
    exclude = ("digest",)


@admin.register(Membership)
class MembershipAdmin(TenantScopedAdmin):
    list_display = ("user", "tenant_id", "role", "created_at")
    list_filter = ("role",)
    view_roles = frozenset({"operator"})
