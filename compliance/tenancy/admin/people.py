"""Console users, their groups and their memberships; operators only."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from auditlog.vocabulary import Actor
from compliance.clock import now
from compliance.console import SystemAdmin, access_of
from compliance.console.display import chip, visible
from compliance.console.filters import ChoicesDropdownFilter, tenant_filter, with_tenant_name
from compliance.tenancy import memberships
from compliance.tenancy.forms import MembershipForm
from compliance.tenancy.models import Membership, Role


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in user as the audit log names them."""
    return Actor.console_user(request.user.get_username())


@admin.register(Membership)
class MembershipAdmin(SystemAdmin):
    """Who may do what for which tenant; every change is audited in the tenant's live log."""

    form = MembershipForm
    autocomplete_fields = ("user",)
    list_display = ("username", "tenant", "role_chip", "created_at")
    list_select_related = ("user",)
    list_filter = (("role", ChoicesDropdownFilter), tenant_filter())
    search_fields = ("user__username", "user__email")
    search_ids = ("pk", "tenant_id")
    readonly_fields = ("username", "tenant", "created_at")
    fieldsets = ((None, {"fields": ("username", "tenant", "role", "created_at")}),)
    add_fieldsets = ((None, {"fields": ("user", "tenant", "role")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_tenant_name(super().get_queryset(request))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    has_change_permission = has_add_permission
    has_delete_permission = has_add_permission

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.readonly_fields if obj else ()

    def get_autocomplete_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return self.autocomplete_fields

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        tenant_id = obj.tenant_id if change else form.cleaned_data["tenant"].id
        role = Role(form.cleaned_data["role"])
        saved = memberships.grant(
            user=obj.user, tenant_id=tenant_id, role=role, actor=actor_of(request), now=now()
        )
        obj.pk, obj.tenant_id = saved.pk, saved.tenant_id

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        memberships.withdraw(membership=obj, actor=actor_of(request), now=now())

    @display(description="user", ordering="user__username")
    def username(self, membership: Membership) -> str:
        return visible(membership.user.get_username())

    @display(description="tenant")
    def tenant(self, membership: Any) -> str:
        return visible(membership.tenant_name or membership.tenant_id)

    @display(description="role", ordering="role")
    def role_chip(self, membership: Membership) -> str:
        return chip(membership.get_role_display(), "primary")


class OperatorsOnly:
    """Django's own tables of people: no permission of Django's opens them, only being an operator."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return access_of(request).is_operator

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(OperatorsOnly, DjangoUserAdmin, ModelAdmin):
    """People are deactivated, never deleted: the audit log names them."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "kind", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email", "first_name", "last_name")
    actions = None
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "Access",
            {
                "fields": ("is_active", "is_staff", "is_superuser"),
                "description": "Staff may sign in to the console and see the tenants of their memberships. "
                "A superuser is an operator: every tenant, keys, people.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    add_fieldsets = (
        (None, {"fields": ("username", "is_staff", "usable_password", "password1", "password2")}),
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"is_staff": True, **super().get_changeform_initial_data(request)}

    @display(description="kind")
    def kind(self, user: User) -> str:
        if user.is_superuser:
            return chip("operator", "primary")
        return chip("console user") if user.is_staff else chip("no console", "warning")


@admin.register(Group)
class GroupAdmin(OperatorsOnly, DjangoGroupAdmin, ModelAdmin):
    """Django's groups; the console's own rights come from memberships."""

    actions = None
