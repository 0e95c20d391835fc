"""Who must have a second factor, who has one, and whether a session began with it."""

from typing import Any, Final

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.http import HttpRequest

from compliance.core.errors import Forbidden
from people.checks import Requirement

NAMES: Final = {
    "totp": "app",
    "recovery_codes": "recovery_code",
    "webauthn": "security_key",
    "provider": "provider",
}
"""How the audit log names the second factors of django-allauth, and the identity provider's own."""


def is_required_of(user: Any) -> bool:
    """Whether the user must sign in with a second factor. An unknown setting requires it of everyone."""
    if settings.SECOND_FACTOR == Requirement.NOBODY:
        return False
    return bool(user.is_superuser) or settings.SECOND_FACTOR != Requirement.OPERATORS


def shown_factor(request: HttpRequest, user: Any) -> str | None:
    """Return the second factor that the session's person showed last; None if none was."""
    kinds = [record.get("type") for record in get_authentication_records(request, user)]
    return next((NAMES[kind] for kind in reversed(kinds) if kind), None)


def is_met(request: HttpRequest) -> bool:
    """Whether the request's session began with a second factor, or need not have."""
    return not is_required_of(request.user) or shown_factor(request, request.user) is not None


def is_shown(request: HttpRequest) -> bool:
    """Whether the session's person showed a second factor, or the service demands one of nobody."""
    return settings.SECOND_FACTOR == Requirement.NOBODY or shown_factor(request, request.user) is not None


def check_shown(request: HttpRequest, to: str) -> None:
    """Raises: Forbidden if the session's person must show a second factor `to` do something."""
    if not is_shown(request):
        raise Forbidden(f"Nothing was changed: sign in with a second factor to {to}.")


def has_second_factor(user: Any) -> bool:
    """Whether the user has an authenticator app or a security key."""
    return bool(is_mfa_enabled(user, [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]))
