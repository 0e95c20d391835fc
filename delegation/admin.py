"""The keys that sign delegation tokens, in the console: read-only; `token_key_rotate` changes them."""

from django.contrib import admin
from unfold.decorators import display

from compliance.console import SystemAdmin
from compliance.console.display import code, pretty_json, status_chip
from compliance.console.filters import ChoicesDropdownFilter
from delegation.models import TokenKey


@admin.register(TokenKey)
class TokenKeyAdmin(SystemAdmin):
    """Which key signs, which is published to sign next, and which still verifies."""

    related_links = ()
    list_display = ("key_id", "state", "published_at", "active_from", "retired_at", "destroyed_at")
    list_filter = (("status", ChoicesDropdownFilter),)
    search_fields = ("kid",)
    ordering = ("-published_at", "-id")
    fieldsets = (
        (None, {"fields": ("key_id", "state", "public_key")}),
        ("Life", {"fields": ("published_at", "active_from", "retired_at", "destroyed_at")}),
    )
    readonly_fields = ("key_id", "state", "public_key")

    @display(description="kid", ordering="kid")
    def key_id(self, key: TokenKey) -> str:
        return code(key.kid)

    @display(description="status", ordering="status")
    def state(self, key: TokenKey) -> str:
        return status_chip(key.status)

    @display(description="public key")
    def public_key(self, key: TokenKey) -> str:
        return pretty_json(key.public_jwk)
