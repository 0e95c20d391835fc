"""Console users in the console: made, changed and deactivated by operators, never deleted."""

import logging
from typing import Any

from allauth.account.admin import EmailAddressAdmin
from allauth.mfa.admin import AuthenticatorAdmin
from allauth.mfa.models import Authenticator
from allauth.usersessions.admin import UserSessionAdmin
from allauth.usersessions.models import UserSession
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
from compliance.console.actions import ActionCall, confirmed_action
from compliance.console.admin import RelatedLink, SystemAdmin
from compliance.console.display import chip, code, column, facts, visible
from compliance.console.navigation import NavigationLine
from compliance.console.secrets import refuse_repeated, secret_page
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from compliance.core.wording import counted
from people import recording
from people.doors import factors, links, sessions
from people.doors.second_factor import has_second_factor
from people.sso import actions as sign_on

MOST_SESSIONS = 20
log = logging.getLogger(__name__)

HELP = {
    "username": "The name to sign in with.",
    "is_active": "Whether the person may sign in; people are deactivated, not deleted.",
    "is_staff": "Whether the person may open the console.",
    "is_superuser": "Whether the person is an operator.",
}
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


@confirmed_action(
    "reset_second_factor",
    "Reset second factor",
    "phonelink_erase",
    is_offered=has_second_factor,
    roles=OPERATORS,
    is_destructive=True,
)
def reset_second_factor(call: ActionCall) -> str:
    """Removes this person's authenticator app, keys and recovery codes, and signs the person out everywhere.
    Check who asks for it: until a new second factor is set up, the password alone signs in.
    """
    factors.remove(user=call.row, reason=call.data["reason"], actor=actor_of(call.request), now=call.now)
    return f"{visible(call.row)} has no second factor any more."


@confirmed_action(
    "link",
    "Make one-time link",
    "link",
    is_offered=lambda user: user.is_active and user.is_staff,
    roles=OPERATORS,
    form_class=forms.Form,
)
def make_link(call: ActionCall) -> HttpResponse:
    """Makes a link by which this person sets a password, once: for a new person or a forgotten password.
    Earlier links stop working. It replaces no second factor.
    """
    refuse_repeated(call.request)
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


@confirmed_action(
    "end_sessions",
    "End sessions",
    "logout",
    is_offered=lambda user: bool(UserSession.objects.purge_and_list(user)),
    roles=OPERATORS,
    is_destructive=True,
)
def end_sessions(call: ActionCall) -> str:
    """Signs this person out everywhere, at once. Deactivate the person to keep them out."""
    reason, actor = call.data["reason"], actor_of(call.request)
    count = sessions.end(user=call.row, reason=reason, actor=actor, now=call.now)
    return f"{counted(count, 'session')} of {visible(call.row)} ended."


def _sessions(user: User) -> SafeString | str:
    found = UserSession.objects.purge_and_list(user)[:MOST_SESSIONS]
    rows = [(f"{one.created_at:%Y-%m-%d %H:%M} UTC", f"{one.ip}, {one.user_agent}") for one in found]
    return facts(rows) if rows else "none"


def _since(user: User) -> str:
    found = Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).first()
    return f"since {found.created_at:%Y-%m-%d %H:%M} UTC" if found else "none"


def _keys(user: User) -> SafeString | str:
    rows = []
    for key in Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).order_by("pk"):
        use = f"last used {key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never used"
        rows.append((f"{key.created_at:%Y-%m-%d %H:%M} UTC", f"{visible(key)}, {use}"))
    return facts(rows) if rows else "none"


admin.site.unregister(User)
# Groups give no rights here: memberships do.
admin.site.unregister(Group)
# What a person's page shows of them is enough.
for page in (EmailAddressAdmin, AuthenticatorAdmin, UserSessionAdmin):
    admin.site.unregister([row for row, one in admin.site._registry.items() if isinstance(one, page)])


class UserAdmin(DjangoUserAdmin, SystemAdmin):
    """Console users. A page's address has the user's id, or the person's, which the audit log names.

    `tenancy` registers it, with the memberships of a new person.
    """

    navigation = NavigationLine("Access", 3, "Users", "person")
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "kind", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email", "first_name", "last_name")
    add_roles = OPERATORS
    confirmed_actions = (make_link, end_sessions, reset_second_factor, sign_on.link, sign_on.unlink)
    related_links = (TRAIL, ACTS)
    fieldsets = (
        (None, {"fields": ("username", "password", "identity")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Signing in", {"fields": ("authenticator", "security_keys", "single_sign_on", "signed_in")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser"), "description": ACCESS_EXPLANATION}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = (
        *("identity", "authenticator", "security_keys", "single_sign_on", "signed_in"),
        *("last_login", "date_joined"),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "email", "is_staff", "usable_password", "password1", "password2")}),
    )

    authenticator = column("authenticator app", _since)
    security_keys = column("security keys since", _keys)
    single_sign_on = column("single sign-on", sign_on.shown)
    signed_in = column("sessions since", _sessions)
    identity = column("ID", lambda user: code(f"{PERSON}{user.person.id}"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request).is_operator

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in HELP:
            kwargs["help_text"] = HELP[db_field.name]
        return super().formfield_for_dbfield(db_field, request, **kwargs)

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
