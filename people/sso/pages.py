"""The pages of single sign-on: to the provider, back from it, and what is linked on *Your account*."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.core.internal import ratelimit
from django.contrib import admin, messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_GET, require_POST

from auditlog.actors.requests import actor_of
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from people.doors import attempts, links
from people.doors.link_pages import LINK
from people.errors import IdentityTaken, LinkIsOver, ProviderUnavailable, SignOnRefused
from people.models import Person
from people.sso import flow as flows
from people.sso import identities, marks
from people.sso.configuration import SignOn, is_only_way, sign_on
from people.sso.flow import Flow, Purpose, Shown

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
    config = sign_on()
    found: dict[str, Any] = {"sign_on": config, "password_is_off": is_only_way()}
    if config is not None and user is not None:
        found["sign_on_identity"] = identities.identity_of(user, config.issuer)
        found["may_unlink"] = identities.may_unlink(user)
    return found


@never_cache
@csrf_protect
@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Send somebody who is not signed in to the provider."""
    return _leave(request, Purpose.SIGN_IN, next_url=_own_address(request, request.POST.get("next")))


@never_cache
@csrf_protect
@require_POST
def accept_invitation(request: HttpRequest) -> HttpResponse:
    """Send the person whose one-time link was opened to the provider, to link an account."""
    token = request.session.get(LINK, "")
    if links.user_of(token, now()) is None or links.signs_in(token):
        return HttpResponseRedirect(reverse("admin:link_password"))
    return _leave(request, Purpose.INVITATION, next_url=reverse("admin:index"), about=token)


@require_POST
def own_identity(request: HttpRequest) -> HttpResponse:
    """Begin to link an account to one's own, or unlink it."""
    user: Any = request.user
    config, account = _configured(), reverse("mfa_index")
    if request.POST.get("do") == "unlink":
        given: dict[str, Any] = {"actor": actor_of(request), "now": now()}
        try:
            identities.unlink(
                user=user, issuer=config.issuer, reason="by the person", by_person=True, **given
            )
            messages.success(request, f"{config.label} does not sign you in any more.")
        except ServiceError as error:
            messages.error(request, f"{error.message}.")
        return HttpResponseRedirect(account)
    if not _is_fresh(request, now()):
        messages.error(request, "You signed in a while ago. Sign out and in again, then link the account.")
        return HttpResponseRedirect(account)
    return _leave(request, Purpose.LINK, next_url=account, about=str(user.pk))


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Take the provider's answer."""
    config, moment = _configured(), now()
    # Not one that is repeated: which counts is read differently by everyone (RFC 6749 §3.1).
    answer = {name: str(values[0]) for name, values in request.GET.lists() if len(values) == 1}
    try:
        flow = flows.take(request, answer.get("state", ""), moment)
    except SignOnRefused as refusal:
        # Any site can send a browser here: that closes no address.
        return _refused(request, refusal, config, moment)
    if not _count_failure(request, dry_run=True):
        return _refused(request, SignOnRefused("locked_out"), config, moment)
    try:
        shown = flows.finish(flow, answer=answer, config=config, now=moment)
    except SignOnRefused as refusal:
        _count_failure(request)
        return _refused(request, refusal, config, moment)
    except ProviderUnavailable as error:
        return _unavailable(request, error, config)
    return _go_in(request, flow, shown, config, moment)


def _go_in(request: HttpRequest, flow: Flow, shown: Shown, config: SignOn, moment: datetime) -> HttpResponse:
    """Do what the account was shown for."""
    try:
        _demand_allowed(shown, config)
        return PURPOSES[flow.purpose](request, flow, shown, config, moment)
    except SignOnRefused as refusal:
        _count_failure(request)
        subject = shown.claims.subject
        user = identities.user_of(issuer=config.issuer, subject=subject)
        return _refused(request, refusal, config, moment, subject=subject, user=user)


def _sign_in(
    request: HttpRequest, flow: Flow, shown: Shown, config: SignOn, moment: datetime
) -> HttpResponse:
    """Sign in the person of the account, or make one."""
    user = identities.user_of(issuer=config.issuer, subject=shown.claims.subject)
    if user is None:
        if not config.creates_people:
            raise SignOnRefused("not_linked")
        try:
            user = identities.create(claims=shown.claims, config=config, now=moment)
        except IdentityTaken as error:
            raise SignOnRefused("taken") from error
    return _enter(request, user, flow, shown, config)


def _accept(request: HttpRequest, flow: Flow, shown: Shown, config: SignOn, moment: datetime) -> HttpResponse:
    """Link the account to the person whose one-time link was opened, which ends it; and sign in."""
    try:
        with environments.use(Environment.LIVE), environments.atomic():
            user = links.spend(token=flow.about, signs_in=False, now=moment)
            _link(user, shown, config, "invitation", Actor.person(Person.objects.get(user=user).id), moment)
    except LinkIsOver as error:
        raise SignOnRefused("link_is_over") from error
    return _enter(request, user, flow, shown, config)


def _link_own(
    request: HttpRequest, flow: Flow, shown: Shown, config: SignOn, moment: datetime
) -> HttpResponse:
    """Link the account to the person who is signed in, and was when this began."""
    user: Any = request.user
    if not admin.site.has_permission(request) or str(user.pk) != flow.about:
        raise SignOnRefused("signed_out")
    _link(user, shown, config, "account", actor_of(request), moment)
    messages.success(request, f"{config.label} signs you in from now on.")
    return HttpResponseRedirect(flow.next_url)


PURPOSES: Final[dict[Purpose, Callable[[HttpRequest, Flow, Shown, SignOn, datetime], HttpResponse]]] = {
    Purpose.SIGN_IN: _sign_in,
    Purpose.INVITATION: _accept,
    Purpose.LINK: _link_own,
}


def _link(user: User, shown: Shown, config: SignOn, via: str, actor: Actor, moment: datetime) -> None:
    subject = shown.claims.subject
    try:
        identities.link(user=user, issuer=config.issuer, subject=subject, via=via, actor=actor, now=moment)
    except IdentityTaken as error:
        raise SignOnRefused("taken") from error
    except ServiceError as error:
        raise SignOnRefused("linked") from error


def _enter(request: HttpRequest, user: Any, flow: Flow, shown: Shown, config: SignOn) -> HttpResponse:
    """Go on to the second factor, unless the provider's own stands for it."""
    if not (user.is_active and user.is_staff):
        raise SignOnRefused("inactive")
    # Whatever the session held before, of somebody else perhaps, is over.
    logout(request)
    marks.begin(
        request,
        issuer=config.issuer,
        subject=shown.claims.subject,
        id_token=shown.id_token,
        provider=shown.provider,
    )
    factor = "provider" if _is_second_factor(shown.claims.values, config) else None
    record_authentication(request, user, "socialaccount", type=factor)
    answer: HttpResponse = perform_login(request, user, redirect_url=flow.next_url)
    return answer


def _count_failure(request: HttpRequest, *, dry_run: bool = False) -> bool:
    """Count a failed sign-on of the address; whether there was room for one more in the hour."""
    given: dict[str, Any] = {"app": "allauth.account", "action": "sign_on_failed"}
    return ratelimit.consume(request, limit_get=True, dry_run=dry_run, **given) is not None


def _is_second_factor(values: dict[str, Any], config: SignOn) -> bool:
    methods, level = values.get("amr"), values.get("acr")
    shown = {method for method in methods if isinstance(method, str)} if isinstance(methods, list) else set()
    return not config.factor_amr.isdisjoint(shown) or (isinstance(level, str) and level in config.factor_acr)


def _demand_allowed(shown: Shown, config: SignOn) -> None:
    """Raise SignOnRefused if the claim that opens the console is not there."""
    if not config.allowed_claim:
        return
    said = shown.claims.values.get(config.allowed_claim)
    values = said if isinstance(said, list) else [said]
    # A claim that is true or false is compared as JSON writes it.
    found = {str(value).lower() if isinstance(value, bool) else value for value in values if _is_word(value)}
    if config.allowed_values.isdisjoint(found):
        raise SignOnRefused("not_allowed")


def _is_word(value: Any) -> bool:
    return isinstance(value, str | bool)


def _is_fresh(request: HttpRequest, moment: datetime) -> bool:
    """Whether the person has signed in a moment ago: a session left open links no account."""
    records = get_authentication_records(request, request.user)
    return bool(records) and moment.timestamp() - records[-1]["at"] < FRESH_FOR.total_seconds()


def _configured() -> SignOn:
    found = sign_on()
    if found is None:
        raise Http404
    return found


def _leave(request: HttpRequest, purpose: Purpose, *, next_url: str, about: str = "") -> HttpResponse:
    config, moment = _configured(), now()
    try:
        address = flows.begin(
            request, config=config, purpose=purpose, next_url=next_url, about=about, now=moment
        )
    except ProviderUnavailable as error:
        return _unavailable(request, error, config)
    return leaving(request, address, config.label)


def leaving(request: HttpRequest, address: str, label: str) -> HttpResponse:
    """Return a page that goes to the provider at once.

    No redirect: browsers let a form lead to no other site here (`form-action` of the security policy).
    """
    context = {**admin.site.each_context(request), "title": label, "address": address}
    return TemplateResponse(request, "admin/people/sso/leaving.html", context)


def _own_address(request: HttpRequest, wanted: str | None) -> str:
    """Return where to go on, which is here."""
    is_own = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and is_own and wanted.startswith("/admin/") else reverse("admin:index")


def _refused(
    request: HttpRequest,
    refusal: SignOnRefused,
    config: SignOn,
    moment: datetime,
    *,
    subject: str | None = None,
    user: User | None = None,
) -> HttpResponse:
    reason = refusal.reason
    _record_failure(request, reason=reason, issuer=config.issuer, subject=subject, user=user, now=moment)
    text = EXPLANATIONS.get(reason, OTHERWISE)
    return _told(request, "Not signed in", text, reason, status=403)


def _unavailable(request: HttpRequest, error: ProviderUnavailable, config: SignOn) -> HttpResponse:
    log.warning("the identity provider %s", error.message)
    text = f"{config.label} does not answer as it should. Try again in a moment."
    page = _told(request, "Sign-on unavailable", text, "", status=503)
    page.headers["Retry-After"] = str(error.retry_after or RETRY_SECONDS)
    return page


def _told(request: HttpRequest, title: str, text: str, reason: str, *, status: int) -> HttpResponse:
    context = {**admin.site.each_context(request), "title": title, "text": text, "reason": reason}
    return TemplateResponse(request, "admin/people/sso/told.html", context, status=status)


def _record_failure(
    request: HttpRequest, *, reason: str, issuer: str, subject: str | None, user: User | None, now: datetime
) -> None:
    """Audit a single sign-on that failed, bounded as by password; `subject` and `user` are proved."""
    with environments.use(Environment.LIVE):
        person = Person.objects.filter(user=user).first() if user else None
        metadata: dict[str, Any] = {"sign_on": issuer, "reason": reason}
        metadata |= {"subject": subject} if subject else {}
        metadata |= {"address": attempts.address_of(request)}
        text = f"Single sign-on failed: {reason}"
        attempts.record_bounded(AuditAction.PERSON_SIGN_IN_FAILED, person, text, metadata, attempts.DOOR, now)
