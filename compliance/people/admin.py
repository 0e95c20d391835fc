"""Console users in the console: made, changed and deactivated by operators, never deleted."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from auditlog.actors.requests import actor_of
from auditlog.vocabulary import PERSON
from compliance.console.access import OPERATORS, access_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import RelatedLink, SystemAdmin
from compliance.console.display import chip, code, column, visible
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.people import recording
from compliance.people.doors import second_factor

ACCESS_EXPLANATION = (
    "Staff may sign in to the console and see the tenants of their memberships. "
    "A superuser is an operator: every tenant, keys, people."
)

TRAIL = RelatedLink(
    "Audit trail", "history", "auditlog_auditentry", "affected_id", lambda user: user.person.id
)
ACTS = RelatedLink(
    "What this person did",
    "person",
    "auditlog_auditentry",
    "actor_id",
    lambda user: f"{PERSON}{user.person.id}",
)


def reset_second_factor(call: ActionCall) -> str:
    second_factor.remove(
        user=call.row, reason=call.data["reason"], actor=actor_of(call.request), now=call.now
    )
    return f"{visible(call.row)} has no second factor any more."


RESET_SECOND_FACTOR = ConfirmedAction(
    name="reset_second_factor",
    label="Reset second factor",
    icon="phonelink_erase",
    explanation=(
        "Removes this person's authenticator app and recovery codes. Make sure who asks for it: from now on "
        "the password alone signs in, and whoever needs a second factor sets up a new one then."
    ),
    run=reset_second_factor,
    is_offered=lambda user: second_factor.authenticator_of(user) is not None,
    roles=OPERATORS,
    is_destructive=True,
)


def _since(user: User) -> str:
    found = second_factor.authenticator_of(user)
    return f"since {found.created_at:%Y-%m-%d %H:%M} UTC" if found else "none"


admin.site.unregister(User)
# Groups give no rights here: memberships do.
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, SystemAdmin):
    """Console users. A page's address has the user's id, or the person's, which the audit log names."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "kind", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email", "first_name", "last_name")
    add_roles = OPERATORS
    confirmed_actions = (RESET_SECOND_FACTOR,)
    related_links = (TRAIL, ACTS)
    fieldsets = (
        (None, {"fields": ("username", "password", "identity")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Second factor", {"fields": ("authenticator",)}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser"), "description": ACCESS_EXPLANATION}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("identity", "authenticator", "last_login", "date_joined")
    add_fieldsets = (
        (None, {"fields": ("username", "is_staff", "usable_password", "password1", "password2")}),
    )

    authenticator = column("authenticator app", _since)
    identity = column("ID", lambda user: code(f"{PERSON}{user.person.id}"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

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

    @display(description="kind")
    def kind(self, user: User) -> str:
        if user.is_superuser:
            return chip("operator", "primary")
        return chip("console user") if user.is_staff else chip("no console", "warning")
