"""Tenants, API keys and memberships in the console."""

import json
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.forms import UserCreationForm
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
)

from auditlog.actors.requests import actor_of
from compliance.api.gate import Scope
from compliance.console.access import OPERATORS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, SystemAdmin, TenantScopedAdmin
from compliance.console.display import chip, chips, code, column, visible
from compliance.console.filters import (
    ChoicesDropdownFilter,
    RangeDateTimeFilter,
    TenantFilter,
    condition_filter,
    with_tenant_name,
)
from compliance.console.navigation import NavigationLine
from compliance.console.secrets import refuse_repeated, secret_page
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.wording import spoken
from people.admin import UserAdmin
from tenancy import memberships, services
from tenancy.console_actions import SET_OWNER_REQUIRED, SET_TENANT_BUDGET, SET_TENANT_MODE, mode_chip
from tenancy.models import ApiKey, Membership, Role, Tenant

LONGEST_OVERLAP_HOURS = 7 * 24
ROLE_FIELDS = {f"{role}_of": role for role in Role}
PRESETS = {
    "Agent at work: asks, reports events, delegates, signs": (
        *(Scope.AGENTS_READ, Scope.DECISIONS_EVALUATE, Scope.EVENTS_WRITE),
        *(Scope.DELEGATIONS_ISSUE, Scope.MESSAGES_SIGN),
    ),
    "Provisioning: registers and certifies agents": (
        *(Scope.AGENTS_READ, Scope.AGENTS_WRITE),
        *(Scope.CERTIFICATES_ISSUE, Scope.CERTIFICATES_REVOKE),
    ),
    "Resource server: asks whether tokens stand": (Scope.TOKENS_INTROSPECT,),
    "Review: reads and judges events": (Scope.AGENTS_READ, Scope.EVENTS_READ, Scope.EVENTS_REVIEW),
    "Incidents: reads them and states what is known": (Scope.INCIDENTS_READ, Scope.INCIDENTS_WRITE),
    "Read only": tuple(scope for scope in Scope if scope.endswith(":read")),
    "Integration: webhooks": (Scope.WEBHOOKS_READ, Scope.WEBHOOKS_WRITE),
    "Everything": tuple(Scope),
}


@admin.register(Tenant)
class TenantAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Access", 1, "Tenants", "apartment")
    tenant_field = "id"
    add_roles = OPERATORS
    confirmed_actions = (SET_TENANT_MODE, SET_TENANT_BUDGET, SET_OWNER_REQUIRED)
    list_display = ("name", "mode", "identifier", "created_at")
    list_filter = (("enforcement", ChoicesDropdownFilter),)
    search_fields = ("name",)
    readonly_fields = ("mode", "rule", "alarm_budget", "owner_required", "identifier", "created_at")
    fieldsets = ((None, {"fields": ("name", *readonly_fields)}),)
    add_fieldsets = ((None, {"fields": ("name",)}),)
    related_links = (
        RelatedLink("Agents", "smart_toy", "agents_agent", "tenant__id__exact"),
        RelatedLink("API keys", "key", "tenancy_apikey", "tenant__id__exact"),
        RelatedLink("Memberships", "badge", "tenancy_membership", "tenant_id"),
        AUDIT_TRAIL,
    )

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        made = services.create_tenant(name=form.cleaned_data["name"], actor=actor_of(request), now=now())
        obj.pk, obj.created_at = made.pk, made.created_at

    rule = column(
        "rule",
        lambda tenant: (
            f"{settings.HIGH_RISK_STRIKES} high-risk events within {spoken(settings.HIGH_RISK_WINDOW)} stop "
            "an agent and revoke its certificate, unless it is only observed."
        ),
    )
    mode = column("mode", lambda tenant: mode_chip(tenant.enforcement), ordering="enforcement")


class NewKeyForm(forms.ModelForm):
    preset = forms.ChoiceField(
        choices=[("", "None: the scopes ticked below"), *((name, name) for name in PRESETS)],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Ticks the scopes that this kind of software needs; tick more or fewer as you like.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What the key may do; a request beyond its scopes is answered with 403.",
    )
    expires_at = forms.SplitDateTimeField(
        required=False, widget=UnfoldAdminSplitDateTimeWidget, help_text="UTC; empty: until it is revoked."
    )

    class Meta:
        model = ApiKey
        fields = ("tenant", "name", "scopes", "expires_at")

    class Media:
        js = ("console/presets.js",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "preset" in self.fields:
            presets = {name: [scope.value for scope in scopes] for name, scopes in PRESETS.items()}
            self.fields["preset"].widget.attrs |= {
                "data-ticks": "scopes",
                "data-presets": json.dumps(presets),
            }

    def clean(self) -> dict[str, Any]:
        """Take the preset's scopes if none is ticked: without scripts it ticks nothing."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        data["scopes"] = data.get("scopes") or [
            scope.value for scope in PRESETS.get(data.get("preset", ""), ())
        ]
        if not data["scopes"] and not self.has_error("scopes"):
            self.add_error("scopes", "Choose a preset or tick at least one scope.")
        return data

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        if moment is not None and moment <= now():
            raise forms.ValidationError("This moment has passed.")
        return moment


class RollKeyForm(forms.Form):
    overlap_hours = forms.IntegerField(
        initial=24,
        min_value=0,
        max_value=LONGEST_OVERLAP_HOURS,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"The old key works for this long; 0 to {LONGEST_OVERLAP_HOURS} hours.",
    )


KEY_STATES = {
    "usable": ("Usable", Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now()))),
    "expired": ("Expired", Q(revoked_at=None, expires_at__lte=Now())),
    "revoked": ("Revoked", Q(revoked_at__isnull=False)),
}


def show_secret(request: HttpRequest, issued: services.IssuedKey, explanation: str) -> HttpResponse:
    label = f"API key {visible(issued.row.name)}".strip()
    url = reverse("admin:tenancy_apikey_change", args=[issued.row.pk])
    return secret_page(request, label=label, secret=issued.secret, explanation=explanation, next_url=url)


def roll_key(call: ActionCall) -> HttpResponse:
    refuse_repeated(call.request)
    hours, actor = call.data["overlap_hours"], actor_of(call.request)
    issued = services.roll_key(key_id=call.row.id, overlap=timedelta(hours=hours), actor=actor, now=call.now)
    return show_secret(call.request, issued, f"The old key {call.row.hint} works for {hours} more hours.")


def revoke_key(call: ActionCall) -> str:
    actor, reason = actor_of(call.request), call.data["reason"]
    services.revoke_key(key_id=call.row.id, reason=reason, actor=actor, now=call.now)
    return f"{call.row.hint} is revoked; requests with it are refused from now on."


ROLL = ConfirmedAction(
    name="roll",
    label="Roll key",
    icon="autorenew",
    explanation=(
        "Makes a successor with the same name and scopes and shows it once. "
        "The old key stays valid for the hours you choose, so that software can change over."
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
    is_destructive=True,
)


@admin.register(ApiKey)
class ApiKeyAdmin(TenantScopedAdmin):
    """API keys, which operators create, roll and revoke. The digest is never shown."""

    navigation = NavigationLine("Integration", 3, "API keys", "key")
    secret_fields = frozenset({"digest"})
    add_roles = OPERATORS
    confirmed_actions = (ROLL, REVOKE)
    form = NewKeyForm
    list_display = ("label", "hint_code", "state", "tenant", "last_used_at", "expires_at", "created_at")
    list_select_related = ("tenant",)
    list_filter = (condition_filter("state", KEY_STATES), TenantFilter, ("last_used_at", RangeDateTimeFilter))
    search_fields = ("name", "hint")
    fieldsets = (
        (None, {"fields": ("label", "hint_code", "state", "tenant", "scope_chips")}),
        ("Life", {"fields": ("created_at", "last_used_at", "expires_at", "revoked_at", "successor")}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", "name", "preset", "scopes", "expires_at")}),)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        refuse_repeated(request)
        data = form.cleaned_data
        issued = services.create_key(
            tenant=data["tenant"],
            name=data["name"],
            scopes=data["scopes"],
            expires_at=data["expires_at"],
            actor=actor_of(request),
            now=now(),
        )
        obj.pk, obj.hint = issued.row.pk, issued.row.hint
        shown = show_secret(request, issued, "The new key works from now on.")
        request.secret_page = shown  # type: ignore[attr-defined]

    label = column("name", lambda key: visible(key.name or "(no name)"), ordering="name")
    hint_code = column("key", lambda key: code(key.hint))
    scope_chips = column("scopes", lambda key: chips(key.scopes))
    state = column(
        "state",
        lambda key: (
            chip("revoked", "danger")
            if key.revoked_at
            else chip("expired")
            if key.is_expired(now())
            else chip("usable", "success")
        ),
    )


class MembershipForm(forms.ModelForm):
    tenant = forms.ModelChoiceField(
        Tenant.objects.using(Environment.LIVE.alias),
        widget=UnfoldAdminSelectWidget,
        empty_label="Select value",
    )

    class Meta:
        model = Membership
        fields = ("user", "role")


@admin.register(Membership)
class MembershipAdmin(SystemAdmin):
    """The role of a user in a tenant; changes are audited in the tenant's live log."""

    navigation = NavigationLine("Access", 2, "Memberships", "badge")
    form = MembershipForm
    add_roles = OPERATORS
    autocomplete_fields = ("user",)
    list_display = ("username", "tenant", "role_chip", "created_at")
    list_select_related = ("user",)
    list_filter = (("role", ChoicesDropdownFilter), TenantFilter)
    search_fields = ("user__username", "user__email")
    search_ids = ("pk", "tenant_id")
    edit_roles = OPERATORS
    edited = ("role",)
    readonly_fields = ("username", "tenant", "created_at")
    fieldsets = ((None, {"fields": ("username", "tenant", "role", "created_at")}),)
    add_fieldsets = ((None, {"fields": ("user", "tenant", "role")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_tenant_name(super().get_queryset(request))

    has_delete_permission = SystemAdmin.has_change_permission

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        tenant_id = obj.tenant_id if change else form.cleaned_data["tenant"].id
        role = Role(form.cleaned_data["role"])
        saved = memberships.grant(
            user=obj.user, tenant_id=tenant_id, role=role, actor=actor_of(request), now=now()
        )
        obj.pk, obj.tenant_id = saved.pk, saved.tenant_id

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        memberships.withdraw(membership=obj, actor=actor_of(request), now=now())

    username = column("user", lambda row: visible(row.user), ordering="user__username")
    tenant = column("tenant", lambda row: visible(row.tenant_name or row.tenant_id))
    role_chip = column("role", lambda row: chip(row.get_role_display(), "primary"), ordering="role")


def tenants_field(role: Role) -> forms.ModelMultipleChoiceField:
    return forms.ModelMultipleChoiceField(
        Tenant.objects.using(Environment.LIVE.alias),
        required=False,
        label=f"{role.label} of",
        widget=UnfoldAdminSelectMultipleWidget,
        help_text="Hold Ctrl, or Command, to choose several tenants.",
    )


class NewUserForm(UserCreationForm):
    """A new person, and for each role the tenants in which the person has it."""

    officer_of = tenants_field(Role.OFFICER)
    officer_webhooks_of = tenants_field(Role.OFFICER_WEBHOOKS)
    auditor_of = tenants_field(Role.AUDITOR)
    developer_of = tenants_field(Role.DEVELOPER)

    def clean(self) -> dict[str, Any]:
        """Refuse two roles in one tenant."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        taken: set[Tenant] = set()
        for name in ROLE_FIELDS:
            chosen = set(data.get(name, ()))
            if taken & chosen:
                self.add_error(name, "A person has one role in a tenant; this one has another already.")
            taken |= chosen
        return data


@admin.register(User)
class InvitingUserAdmin(UserAdmin):
    """Console users; a new one is given memberships in the same form."""

    add_form = NewUserForm
    add_fieldsets: Any = (
        *UserAdmin.add_fieldsets,
        ("Memberships", {"fields": tuple(ROLE_FIELDS), "description": "An operator needs none."}),
    )

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change:
            return
        actor, moment = actor_of(request), now()
        for name, role in ROLE_FIELDS.items():
            for tenant in form.cleaned_data[name]:
                memberships.grant(user=obj, tenant_id=tenant.id, role=role, actor=actor, now=moment)
