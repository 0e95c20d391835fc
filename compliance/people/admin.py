"""Console users in the console: made, changed and deactivated by operators, never deleted."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from auditlog.actors.requests import actor_of
from compliance.console.access import access_of
from compliance.console.display import chip, code, column
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.people import recording

ACCESS_EXPLANATION = (
    "Staff may sign in to the console and see the tenants of their memberships. "
    "A superuser is an operator: every tenant, keys, people."
)

admin.site.unregister(User)
# Groups give no rights here: memberships do.
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):
    """Console users. A page's address has the user's id, or the person's, which the audit log names."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "kind", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email", "first_name", "last_name")
    actions = None
    fieldsets = (
        (None, {"fields": ("username", "password", "identity")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser"), "description": ACCESS_EXPLANATION}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("identity", "last_login", "date_joined")
    add_fieldsets = (
        (None, {"fields": ("username", "is_staff", "usable_password", "password1", "password2")}),
    )

    identity = column("ID", lambda user: code(f"person:{user.person.id}"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    has_add_permission = has_change_permission = has_module_permission = has_view_permission

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"is_staff": True, **super().get_changeform_initial_data(request)}

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        person = parse_id(object_id)
        if person is None:
            return super().get_object(request, object_id, from_field)
        users: QuerySet[User] = self.get_queryset(request)
        return users.filter(person__id=person).first()

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except ServiceError as error:
            messages.error(request, f"{error.message}.")
            return HttpResponseRedirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        given: dict[str, Any] = {"actor": actor_of(request), "now": now()}
        if not change:
            return recording.store_new(user=obj, **given)
        with recording.recorded_changes(user_id=obj.pk, **given):
            obj.save()
        return None

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:  # noqa: A002
        user = self.get_object(request, id)
        if request.method != "POST" or user is None or not self.has_change_permission(request, user):
            return super().user_change_password(request, id, form_url)
        with recording.recorded_changes(user_id=user.pk, actor=actor_of(request), now=now()):
            return super().user_change_password(request, id, form_url)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Redirect to the audit trail."""
        user = self.get_object(request, object_id)
        query = f"?affected_id={user.person.id}" if user else ""
        return HttpResponseRedirect(reverse("admin:auditlog_auditentry_changelist") + query)

    def log_nothing(self, *args: Any) -> Any:
        """Do nothing: the change is in the audit log."""

    log_addition = log_change = log_deletions = log_nothing  # type: ignore[assignment]

    @display(description="kind")
    def kind(self, user: User) -> str:
        if user.is_superuser:
            return chip("operator", "primary")
        return chip("console user") if user.is_staff else chip("no console", "warning")
