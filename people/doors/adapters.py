"""What django-allauth asks of this service: its rules of signing in, audited."""

from datetime import timedelta
from typing import Any, Final

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.usersessions.adapter import DefaultUserSessionsAdapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from auditlog.actors.requests import actor_of
from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encryption import decrypt, encrypt
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from people import relying_party
from people.doors import attempts
from people.doors.second_factor import shown_factor
from people.doors.sessions import record_ended
from people.sso import flow

COOKIE, SALT = "known_browser", "people.browser_of_user"
"""Of a browser that a person has signed in with: its wrong passwords are counted apart."""
KNOWN_FOR: Final = timedelta(days=90)


class AccountAdapter(DefaultAccountAdapter):
    """Signs in staff, by user name."""

    get_client_ip = staticmethod(attempts.address_of)

    def get_login_stages(self) -> list[str]:
        return [
            f"people.doors.stages.{name}"
            for name in ("FirstFactorStage", "SecondFactorStage", "EnrolmentStage", "StillValidStage")
        ]

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # Guessing from elsewhere keeps nobody out (OWASP, device cookies).
        username = credentials["username"]
        return f"{username.lower()}:{_browser_of(request, username)}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        if settings.OIDC_ONLY:
            # Before anything is compared with the password.
            self._record_wrong_password(request, credentials["username"], password_is_off=True)
            raise ValidationError("Nobody signs in with a password here.")
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            self._record_wrong_password(request, credentials["username"], locked_out=True)
            raise

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if isinstance(user, User) and not user.is_staff:
            self.authentication_failed(request, **credentials)
            return None
        request.session.pop(flow.SIGN_ON, None)
        return user

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        self._record_wrong_password(request, credentials["username"])

    def login(self, request: HttpRequest, user: Any) -> None:
        factor = shown_factor(request, user)
        with environments.use(Environment.LIVE), environments.atomic():
            Session.objects.filter(expire_date__lt=now()).delete()
            super().login(request, user)
            mark = request.session.get(flow.SIGN_ON)
            facts = {"second_factor": factor, **({"sign_on": mark["issuer"]} if mark else {})}
            attempts.record_own(request, AuditAction.PERSON_SIGNED_IN, "signed in", now=now(), **facts)

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = super().post_login(request, user, **kwargs)
        # Its name is good for so long again each time.
        name = _browser_of(request, user.get_username()) or str(new_id())
        answer.set_cookie(
            COOKIE,
            signing.dumps([user.pk, name], salt=SALT),
            max_age=KNOWN_FOR,
            path="/admin/",
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
        return answer

    def logout(self, request: HttpRequest) -> None:
        attempts.record_own(request, AuditAction.PERSON_SIGNED_OUT, "signed out", now=now())
        super().logout(request)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("mfa_index")

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        # Nothing can be asked of somebody whom the identity provider alone signs in.
        return bool(self.get_reauthentication_methods(self.request.user))

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Return the ways to prove who one is again: second factors, keys first, else the password."""
        found = super().get_reauthentication_methods(user)
        factors = [method for method in found if method["id"].startswith("mfa")]
        return sorted(factors, key=lambda method: "webauthn" not in method["id"]) or found

    def _record_wrong_password(self, request: HttpRequest, account: str, **more: Any) -> None:
        if request.user.is_authenticated:
            attempts.record_wrong_proof(request, proof="password", now=now(), **more)
        else:
            attempts.record_failure(request, account=account, now=now(), **more)


class SessionsAdapter(DefaultUserSessionsAdapter):
    """Audits the sessions that people end."""

    def end_sessions(self, sessions: list[UserSession]) -> None:
        user: Any = context.request.user
        with environments.use(Environment.LIVE), environments.atomic():
            super().end_sessions(sessions)
            record_ended(user, len(sessions), actor=actor_of(context.request), now=now())


class FactorAdapter(DefaultMFAAdapter):
    """Encrypts secrets, and names the console to apps and keys."""

    def encrypt(self, text: str) -> str:
        return encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text.encode()).decode()

    def get_totp_label(self, user: Any) -> str:
        return str(user.get_username())

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": relying_party.current().id, "name": settings.SERVICE_TITLE}


def _browser_of(request: HttpRequest, username: str) -> str:
    """Return the browser's name if the person has signed in with it; else nothing."""
    try:
        found: Any = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return ""
    owner, name = found
    # By its id: a name may go to another person.
    return str(name) if User.objects.filter(pk=owner, username__iexact=username).exists() else ""
