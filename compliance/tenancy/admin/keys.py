"""API keys in the console: shown by their hints, and in full only on the page that answers their making."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import display

from auditlog.vocabulary import Actor
from compliance.clock import now
from compliance.console import ActionCall, ConfirmedAction, TenantScopedAdmin, access_of
from compliance.console.access import OPERATORS
from compliance.console.display import chip, chips, code, visible
from compliance.console.filters import DropdownFilter, RangeDateTimeFilter, tenant_filter
from compliance.console.secrets import FreshSecret, secret_page
from compliance.tenancy import services
from compliance.tenancy.forms import NewKeyForm, RollKeyForm
from compliance.tenancy.models import ApiKey


class KeyStateFilter(DropdownFilter):
    """By what a key is good for at this moment."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("usable", "Usable"), ("expired", "Expired"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        moment = now()
        if self.value() == "usable":
            return ApiKey.objects.usable(moment) & queryset
        if self.value() == "expired":
            return queryset.filter(revoked_at=None, expires_at__lte=moment)
        return queryset.exclude(revoked_at=None) if self.value() == "revoked" else queryset


def show_secret(request: HttpRequest, issued: services.IssuedKey, explanation: str) -> HttpResponse:
    """The page that shows a fresh key for the only time."""
    label = f"API key {visible(issued.row.name)}".strip()
    next_url = reverse("admin:tenancy_apikey_change", args=[issued.row.pk])
    return secret_page(request, FreshSecret(label, issued.secret, explanation, next_url))


def roll_key(call: ActionCall) -> HttpResponse:
    hours = call.data["overlap_hours"]
    issued = services.roll_key(
        key_id=call.row.id,
        overlap=timedelta(hours=hours),
        actor=Actor.console_user(call.username),
        now=call.now,
    )
    return show_secret(call.request, issued, f"The old key {call.row.hint} works for {hours} more hours.")


def revoke_key(call: ActionCall) -> str:
    services.revoke_key(key_id=call.row.id, actor=Actor.console_user(call.username), now=call.now)
    return f"{call.row.hint} is revoked; requests with it are refused from now on."


ROLL = ConfirmedAction(
    name="roll",
    label="Roll key",
    icon="autorenew",
    explanation=(
        "Makes a successor with the same name and scopes and shows it once. "
        "The old key works on for the hours you choose, so that software can change over."
    ),
    run=roll_key,
    is_offered=lambda key: key.revoked_at is None and not key.is_expired(now()),
    roles=OPERATORS,
    form_class=RollKeyForm,
)
REVOKE = ConfirmedAction(
    name="revoke",
    label="Revoke key",
    icon="block",
    explanation="Requests with this key are refused from now on, on every server. This can't be undone.",
    run=revoke_key,
    is_offered=lambda key: key.revoked_at is None,
    roles=OPERATORS,
    form_class=forms.Form,
    is_destructive=True,
)


@admin.register(ApiKey)
class ApiKeyAdmin(TenantScopedAdmin):
    """Keys by their hints; operators make, roll and revoke them. The digest is shown to nobody."""

    secret_fields = frozenset({"digest"})
    confirmed_actions = (ROLL, REVOKE)
    form = NewKeyForm
    list_display = ("label", "hint_code", "state", "tenant", "last_used_at", "expires_at", "created_at")
    list_select_related = ("tenant",)
    list_filter = (KeyStateFilter, tenant_filter(), ("last_used_at", RangeDateTimeFilter))
    search_fields = ("name", "hint")
    ordering = ("-created_at", "-id")
    readonly_fields = ("label", "hint_code", "state", "scope_chips", "successor")
    fieldsets = (
        (None, {"fields": ("label", "hint_code", "state", "tenant", "scope_chips")}),
        ("Life", {"fields": ("created_at", "last_used_at", "expires_at", "revoked_at", "successor")}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "name", "scopes", "expires_at")}),)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.readonly_fields if obj else ()

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        data = form.cleaned_data
        issued = services.create_key(
            tenant=data["tenant"],
            name=data["name"],
            scopes=data["scopes"],
            expires_at=data["expires_at"],
            actor=Actor.console_user(request.user.get_username()),
            now=now(),
        )
        obj.pk, obj.hint = issued.row.pk, issued.row.hint
        request.issued_key = issued  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: Any = None) -> HttpResponse:
        return show_secret(request, request.issued_key, "The new key works from now on.")  # type: ignore[attr-defined]

    @display(description="name", ordering="name")
    def label(self, key: ApiKey) -> str:
        return visible(key.name or "(no name)")

    @display(description="key")
    def hint_code(self, key: ApiKey) -> str:
        return code(key.hint)

    @display(description="state")
    def state(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return chip("revoked", "danger")
        return chip("expired") if key.is_expired(now()) else chip("usable", "success")

    @display(description="scopes")
    def scope_chips(self, key: ApiKey) -> str:
        return chips(key.scopes)
