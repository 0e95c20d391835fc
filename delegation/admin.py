"""The console's page of token keys, read-only."""

from django.contrib import admin

from compliance.console.admin import SystemAdmin
from compliance.console.display import code, column, pretty_json, status_chip
from compliance.console.filters import ChoicesDropdownFilter
from compliance.console.navigation import NavigationLine
from delegation.models import TokenKey


@admin.register(TokenKey)
class TokenKeyAdmin(SystemAdmin):
    navigation = NavigationLine("Trust", 5, "Token keys", "vpn_key")
    related_links = ()
    list_display = ("key_id", "state", "published_at", "active_from", "retired_at", "destroyed_at")
    list_filter = (("status", ChoicesDropdownFilter),)
    search_fields = ("kid",)
    ordering = ("-published_at", "-id")
    fieldsets = (
        (None, {"fields": ("key_id", "state", "public_key")}),
        ("Life", {"fields": ("published_at", "active_from", "retired_at", "destroyed_at")}),
    )

    key_id = column("key ID", lambda key: code(key.kid), ordering="kid")
    state = column("status", lambda key: status_chip(key.status), ordering="status")
    public_key = column("public key", lambda key: pretty_json(key.public_jwk))
