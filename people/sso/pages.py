"""The pages of single sign-on: to the provider, back from it, and what is linked on *Your account*."""

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST
from django.views.generic import View

from auditlog.actors.requests import actor_of
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from people.doors import attempts, links
from people.doors.link_pages import LINK
from people.doors.links import LinkIsOver
from people.models import Person
from people.sso import flow as flows, identities
from people.sso.configuration import ProviderUnavailable, is_on
from people.sso.flow import Flow, Purpose, Shown
from people.sso.identities import IdentityExists, IdentityTaken
from people.sso.tokens import SignOnRefused

log = logging.getLogger(__name__)

FRESH_FOR: Final = timedelta(minutes=10)
RETRY_SECONDS: Final = 10
EXPLANATIONS: Final = {
    "state": "This sign-in was not begun in this browser, or was finished already. Begin again.",
    "too_late": "This sign-in took longer than ten minutes. Begin again.",
    "provider_access_denied": "The identity provider did not let you in.",
    "not_allowed": "Your account there does not open this console.",
    "not_linked": (
        "Nobody here is linked to your account there. Sign in with your password and link it under "
        "“Your account”, or ask an operator of this service."
    ),
    "inactive": "Your account here is not active. Ask an operator of this service.",
    "taken": "This account of the identity provider is linked to somebody else here.",
    "linked": "Your account here is linked to an account of the identity provider already.",
    "link_is_over": "The one-time link was used, replaced or is too old. Ask for a new one.",
    "signed_out": "You were signed out meanwhile. Sign in, and link the account again.",
    "locked_out": "Too many failed attempts came from your address. Try again in an hour.",
}
OTHERWISE: Final = "The identity provider's answer was not accepted."


def context_of(user: Any = None) -> dict[str, Any]:
    """Return what the pages of signing in show of single sign-on; with a user, of theirs."""
    found = {"sign_on": is_on(), "sign_on_label": settings.OIDC_LABEL, "password_is_off": settings.OIDC_ONLY}
    if found["sign_on"] and user is not None:
        found["sign_on_identity"] = identities.identity_of(user, settings.OIDC_ISSUER)
        found["may_unlink"] = identities.may_unlink(user)
    return found


@never_cache
@csrf_protect
@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Send somebody who is not signed in to the provider, and then to the page they wanted, if it is here."""
    wanted = request.POST.get("next", "")
    is_own = wanted.startswith("/admin/") and url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return _leave(request, Purpose.SIGN_IN, next_url=wanted if is_own else reverse("admin:index"))


@never_cache
@csrf_protect
@require_POST
def accept_invitation(request: HttpRequest) -> HttpResponse:
    """Send the person whose one-time link was opened to the provider, to link an account."""
    token = request.session.get(LINK, "")
    link = links.find(token, now())
    if link is None or link.signs_in:
        return HttpResponseRedirect(reverse("admin:link_password"))
    return _leave(request, Purpose.INVITATION, next_url=reverse("admin:index"), about=token)


@require_POST
def own_identity(request: HttpRequest) -> HttpResponse:
    """Begin to link an account to one's own, or unlink it."""
    _demand_on()
    user: Any = request.user
    account, moment = reverse("mfa_index"), now()
    if request.POST.get("do") == "unlink":
        given: dict[str, Any] = {"issuer": settings.OIDC_ISSUER, "reason": "by the person", "by_person": True}
        try:
            identities.unlink(user=user, **given, actor=actor_of(request), now=moment)
            messages.success(request, f"{settings.OIDC_LABEL} does not sign you in any more.")
        except ServiceError as error:
            messages.error(request, f"{error.message}.")
        return HttpResponseRedirect(account)
    # A session left open links no account.
    records = get_authentication_records(request, user)
    if not records or moment.timestamp() - records[-1]["at"] >= FRESH_FOR.total_seconds():
        messages.error(request, "You signed in a while ago. Sign out and in again, then link the account.")
        return HttpResponseRedirect(account)
    return _leave(request, Purpose.LINK, next_url=account, about=str(user.pk))


@method_decorator(never_cache, name="dispatch")
class CallbackView(View):
    """Takes the provider's answer, and does what the account is shown for."""

    http_method_names = ["get"]
    moment: datetime
    shown: Shown | None = None
    """The account, once it is proved."""

    def get(self, request: HttpRequest) -> HttpResponse:
        _demand_on()
        self.moment = now()
        # Not one that is repeated: which counts is read differently by everyone (RFC 6749 §3.1).
        answer = {name: str(values[0]) for name, values in request.GET.lists() if len(values) == 1}
        try:
            flow = flows.take(request, answer.get("state", ""), self.moment)
        except SignOnRefused as refusal:
            # Any site can send a browser here: that closes no address.
            return self.refused(refusal.reason)
        if not _count_failure(request, dry_run=True):
            return self.refused("locked_out")
        try:
            self.shown = flows.finish(flow, answer=answer, now=self.moment)
            _demand_allowed(self.shown.claims.values)
            if flow.purpose == Purpose.LINK:
                return self.link_own(flow, self.shown)
            return self.enter(flow, self.shown)
        except (SignOnRefused, IdentityTaken, IdentityExists, LinkIsOver) as refusal:
            _count_failure(request)
            return self.refused(refusal.reason)
        except ProviderUnavailable as error:
            return _unavailable(request, error)

    def link_own(self, flow: Flow, shown: Shown) -> HttpResponse:
        """Link the account to the person who is signed in, and was when this began."""
        user: Any = self.request.user
        if not admin.site.has_permission(self.request) or str(user.pk) != flow.about:
            raise SignOnRefused("signed_out")
        self.link(user, shown, via="account", actor=actor_of(self.request))
        messages.success(self.request, f"{settings.OIDC_LABEL} signs you in from now on.")
        return HttpResponseRedirect(flow.next_url)

    def enter(self, flow: Flow, shown: Shown) -> HttpResponse:
        """Sign in the person of the account, up to the second factor unless the provider's own stands for it.

        Of an invitation it is the person whose one-time link was opened, which ends it and links the account.
        """
        if flow.purpose == Purpose.INVITATION:
            with environments.use(Environment.LIVE), environments.atomic():
                user: Any = links.spend(token=flow.about, signs_in=False, now=self.moment)
                self.link(user, shown, via="invitation", actor=Actor.person(user.person.id))
        else:
            user = identities.user_of(issuer=flow.issuer, subject=shown.claims.subject)
            if user is None and not settings.OIDC_CREATE_PEOPLE:
                raise SignOnRefused("not_linked")
            user = user or identities.create(claims=shown.claims, now=self.moment)
        if not (user.is_active and user.is_staff):
            raise SignOnRefused("inactive")
        # Whatever the session held before, of somebody else perhaps, is over.
        logout(self.request)
        flows.mark(self.request, shown=shown)
        factor = "provider" if _is_second_factor(shown.claims.values) else None
        record_authentication(self.request, user, "socialaccount", type=factor)
        answer: HttpResponse = perform_login(self.request, user, redirect_url=flow.next_url)
        return answer

    def link(self, user: User, shown: Shown, *, via: str, actor: Actor) -> None:
        account = {"issuer": settings.OIDC_ISSUER, "subject": shown.claims.subject}
        identities.link(user=user, **account, via=via, actor=actor, now=self.moment)

    def refused(self, reason: str) -> HttpResponse:
        """Audit a single sign-on that failed, bounded as by password, and say why."""
        metadata: dict[str, Any] = {"sign_on": settings.OIDC_ISSUER, "reason": reason}
        with environments.use(Environment.LIVE):
            person = None
            if self.shown is not None:
                account = {"issuer": settings.OIDC_ISSUER, "subject": self.shown.claims.subject}
                person = Person.objects.filter(user=identities.user_of(**account)).first()
                metadata["subject"] = self.shown.claims.subject
            metadata["address"] = attempts.address_of(self.request)
            text = f"Single sign-on failed: {reason}"
            attempts.record_bounded(
                AuditAction.PERSON_SIGN_IN_FAILED, person, text, metadata, attempts.DOOR, self.moment
            )
        return _told(self.request, "Not signed in", EXPLANATIONS.get(reason, OTHERWISE), reason, status=403)


def _count_failure(request: HttpRequest, *, dry_run: bool = False) -> bool:
    """Count a failed sign-on of the address; whether there was room for one more in the hour."""
    given: dict[str, Any] = {"app": "allauth.account", "action": "sign_on_failed"}
    return ratelimit.consume(request, limit_get=True, dry_run=dry_run, **given) is not None


def _is_second_factor(values: dict[str, Any]) -> bool:
    """Whether the claims name a factor that stands for ours."""
    methods, level = values.get("amr"), values.get("acr")
    if isinstance(methods, list) and any(method in settings.OIDC_SECOND_FACTOR_AMR for method in methods):
        return True
    return isinstance(level, str) and level in settings.OIDC_SECOND_FACTOR_ACR


def _demand_allowed(values: dict[str, Any]) -> None:
    """Raise SignOnRefused if the claim that opens the console is not there."""
    if not settings.OIDC_ALLOWED_CLAIM:
        return
    said = values.get(settings.OIDC_ALLOWED_CLAIM)
    for value in said if isinstance(said, list) else [said]:
        # A claim that is true or false is compared as JSON writes it.
        if (str(value).lower() if isinstance(value, bool) else value) in settings.OIDC_ALLOWED_VALUES:
            return
    raise SignOnRefused("not_allowed")


def _demand_on() -> None:
    if not is_on():
        raise Http404


def _leave(request: HttpRequest, purpose: Purpose, *, next_url: str, about: str = "") -> HttpResponse:
    _demand_on()
    try:
        address = flows.begin(request, purpose=purpose, next_url=next_url, about=about, now=now())
    except ProviderUnavailable as error:
        return _unavailable(request, error)
    return leaving(request, address)


def leaving(request: HttpRequest, address: str) -> HttpResponse:
    """Return a page that goes to the provider at once.

    No redirect: browsers let a form lead to no other site here (`form-action` of the security policy).
    """
    context = {**admin.site.each_context(request), "title": settings.OIDC_LABEL, "address": address}
    return TemplateResponse(request, "admin/people/sso/leaving.html", context)


def _unavailable(request: HttpRequest, error: ProviderUnavailable) -> HttpResponse:
    log.warning("the identity provider %s", error.message)
    text = f"{settings.OIDC_LABEL} does not answer as it should. Try again in a moment."
    page = _told(request, "Sign-on unavailable", text, "", status=503)
    page.headers["Retry-After"] = str(error.retry_after or RETRY_SECONDS)
    return page


def _told(request: HttpRequest, title: str, text: str, reason: str, *, status: int) -> HttpResponse:
    context = {**admin.site.each_context(request), "title": title, "text": text, "reason": reason}
    return TemplateResponse(request, "admin/people/sso/told.html", context, status=status)
