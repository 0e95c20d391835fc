"""Console users in the console: made, changed and deactivated by operators, never deleted."""

import logging
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from auditlog.actors.requests import actor_of
from auditlog.vocabulary import PERSON
from compliance.console.access import OPERATORS, access_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import RelatedLink, SystemAdmin
from compliance.console.display import chip, code, column, facts, visible
from compliance.console.secrets import secret_page
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from compliance.core.wording import counted
from compliance.people import recording
from compliance.people.doors import links, second_factor, sessions
from compliance.people.models import SecurityKey
from compliance.people.passkeys import keys

MOST_SESSIONS = 20
log = logging.getLogger(__name__)

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
        "Removes this person's authenticator app, keys and recovery codes. Make sure who asks for it: "
        "from now on the password alone signs in, and whoever needs a second factor sets up a new one. "
        "Signs this person out everywhere."
    ),
    run=reset_second_factor,
    is_offered=second_factor.is_set_up,
    roles=OPERATORS,
    is_destructive=True,
)


def make_link(call: ActionCall) -> HttpResponse:
    user = call.row
    token, link = links.make(user=user, actor=actor_of(call.request), now=call.now)
    address = f"{settings.BASE_URL}{reverse('admin:link', args=[token])}"
    try:
        was_sent = links.mail(user=user, address=address, link=link)
    except OSError as error:
        log.warning("a one-time link could not be sent by e-mail: %s", type(error).__name__)
        was_sent = False
    sent = "It was sent by e-mail." if was_sent else "Hand it over in a way that only this person reads."
    return secret_page(
        call.request,
        label=f"One-time link for {visible(user)}",
        secret=address,
        explanation=f"It sets a password, once, until {link.expires_at:%Y-%m-%d %H:%M} UTC. {sent}",
        next_url=reverse("admin:auth_user_change", args=[user.pk]),
    )


MAKE_LINK = ConfirmedAction(
    name="link",
    label="Make one-time link",
    icon="link",
    explanation=(
        "Makes a link by which this person sets a password, once: for a new person or a forgotten password. "
        "Earlier links stop working. It replaces no second factor."
    ),
    run=make_link,
    is_offered=lambda user: user.is_active and user.is_staff,
    roles=OPERATORS,
    form_class=forms.Form,
)


def end_sessions(call: ActionCall) -> str:
    count = sessions.end(
        user=call.row, reason=call.data["reason"], actor=actor_of(call.request), now=call.now
    )
    return f"{counted(count, 'session')} of {visible(call.row)} ended."


END_SESSIONS = ConfirmedAction(
    name="end_sessions",
    label="End sessions",
    icon="logout",
    explanation="Signs this person out everywhere, at once. Deactivate the person to keep them out.",
    run=end_sessions,
    is_offered=lambda user: bool(sessions.living(user, now())),
    roles=OPERATORS,
    is_destructive=True,
)


def _sessions(user: User) -> SafeString | str:
    found = sessions.living(user, now())[:MOST_SESSIONS]
    rows = [(f"{one.started_at:%Y-%m-%d %H:%M} UTC", f"{one.address}, {one.browser}") for one in found]
    return facts(rows) if rows else "none"


def _since(user: User) -> str:
    found = second_factor.authenticator_of(user)
    return f"since {found.created_at:%Y-%m-%d %H:%M} UTC" if found else "none"


def _keys(user: User) -> SafeString | str:
    rows = [
        (f"{key.created_at:%Y-%m-%d %H:%M} UTC", f"{visible(key.name)}, {_last_use(key)}")
        for key in keys.of(user)
    ]
    return facts(rows) if rows else "none"


def _last_use(key: SecurityKey) -> str:
    return f"last used {key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never used"


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
    confirmed_actions = (MAKE_LINK, END_SESSIONS, RESET_SECOND_FACTOR)
    related_links = (TRAIL, ACTS)
    fieldsets = (
        (None, {"fields": ("username", "password", "identity")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Signing in", {"fields": ("authenticator", "security_keys", "signed_in")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser"), "description": ACCESS_EXPLANATION}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("identity", "authenticator", "security_keys", "signed_in", "last_login", "date_joined")
    add_fieldsets = (
        (None, {"fields": ("username", "email", "is_staff", "usable_password", "password1", "password2")}),
    )

    authenticator = column("authenticator app", _since)
    security_keys = column("security keys since", _keys)
    signed_in = column("sessions since", _sessions)
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

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        given: dict[str, Any] = {"actor": actor_of(request), "now": now()}
        if not change:
            return recording.store_new(user=obj, **given)
        with recording.recorded_changes(user_id=obj.pk, **given):
            # Only these: the others may have changed since the form's row was read, the password too.
            obj.save(update_fields=form.changed_data)
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
