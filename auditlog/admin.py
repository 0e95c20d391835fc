"""The audit log in the console: read-only."""

from django.contrib import admin

from auditlog.models import AuditEntry
from compliance.console import TenantScopedAdmin


@admin.register(AuditEntry)
class AuditEntryAdmin(TenantScopedAdmin):
    list_display = ("created_at", "event_type", "actor_type", "actor_id", "affected_id", "description")
    list_filter = ("event_type", "actor_type")
    search_fields = ("affected_id", "actor_id")
    date_hierarchy = "created_at"
    list_per_page = 50
