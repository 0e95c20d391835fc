"""Kept answers of idempotent requests, in the console: that they exist, never what they hold."""

from django.contrib import admin

from compliance.api.models import IdempotencyRecord
from compliance.console.admin import SystemAdmin


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(SystemAdmin):
    """For operators, to see whether a client repeats itself."""

    secret_fields = frozenset({"body", "fingerprint"})
    related_links = ()
    list_display = ("created_at", "tenant_id", "api_key_id", "key", "status")
    search_fields = ("key",)
    search_ids = ("pk", "tenant_id", "api_key_id")
    ordering = ("-created_at", "-id")
    fieldsets = ((None, {"fields": ("created_at", "tenant_id", "api_key_id", "key", "status")}),)
