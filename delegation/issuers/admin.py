"""The console's page of trusted issuers."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from auditlog.actors.requests import actor_of
from compliance.console.access import DEVELOPERS
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import chip, chips, code, column, pretty_json
from compliance.console.filters import tenant_filter
from compliance.console.navigation import NavigationLine
from compliance.core.clock import now
from delegation.issuers import services
from delegation.issuers.console_actions import ISSUER_ACTIONS
from delegation.issuers.forms import TrustedIssuerForm
from delegation.issuers.models import TrustedIssuer

GIVEN = ("issuer", "jwks_uri", "audiences", "algorithms", "subject_claim", "max_age_seconds")


@admin.register(TrustedIssuer)
class TrustedIssuerAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 3, "Trusted issuers", "verified_user")
    form = TrustedIssuerForm
    add_roles = DEVELOPERS
    confirmed_actions = ISSUER_ACTIONS
    list_display = ("address", "state", "audience_chips", "subject_claim", "tenant", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("active", tenant_filter())
    search_fields = ("issuer",)
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("address", "state", "audience_chips", "algorithm_chips", "tenant")}),
        ("ID tokens", {"fields": ("subject_claim", "claims", "max_age_seconds")}),
        ("Keys", {"fields": ("jwks_uri", "pinned")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at")}),
    )
    readonly_fields = (
        *("address", "state", "audience_chips", "algorithm_chips", "claims", "pinned", "identifier"),
    )
    add_fieldsets = ((None, {"fields": ("tenant", *GIVEN)}),)

    address = column("issuer", lambda row: code(row.issuer), ordering="issuer")
    state = column(
        "state",
        lambda row: chip("active", "success") if row.active else chip("switched off", "warning"),
        ordering="active",
    )
    audience_chips = column("audiences", lambda row: chips(row.audiences))
    algorithm_chips = column("algorithms", lambda row: chips(row.algorithms))
    claims = column("required claims", lambda row: pretty_json(row.required_claims))
    pinned = column("pinned keys", lambda row: pretty_json(row.jwks))
    identifier = column("ID", lambda row: code(row.pk))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fieldsets(request, obj) if obj is not None else self.add_fieldsets

    def save_model(self, request: HttpRequest, obj: TrustedIssuer, form: Any, change: bool) -> None:
        given = {name: form.cleaned_data[name] for name in GIVEN}
        made = services.create(tenant_id=obj.tenant_id, **given, actor=actor_of(request), now=now())
        obj.pk = made.pk
