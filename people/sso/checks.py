"""System checks of the settings of single sign-on."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from compliance.settings.declaring import read_text
from people.sso.configuration import has_secret, is_safe_address, sign_on
from people.sso.tokens import KEY_TYPES


def check_sign_on(**kwargs: Any) -> list[CheckMessage]:
    """Check that single sign-on is configured as a whole, or not at all."""
    problems = [*_of_parts(), *_of_issuer(), *_of_values()]
    return [checks.Error(text, hint="See docs/settings.md.", id=f"people.{name}") for name, text in problems]


def check_who_enters(**kwargs: Any) -> list[CheckMessage]:
    """Check that not everyone who has an account of the provider becomes a person here."""
    if sign_on() is None or not settings.OIDC_CREATE_PEOPLE or settings.OIDC_ALLOWED_CLAIM:
        return []
    text = "Every account of the identity provider makes a person here (OIDC_CREATE_PEOPLE)."
    return [checks.Warning(text, hint="Name a claim in OIDC_ALLOWED_CLAIM.", id="people.W003")]


def _of_parts() -> list[tuple[str, str]]:
    parts = {
        "OIDC_ISSUER": bool(settings.OIDC_ISSUER),
        "OIDC_CLIENT_ID": bool(settings.OIDC_CLIENT_ID),
        "OIDC_CLIENT_SECRET or OIDC_CLIENT_SECRET_FILE": has_secret(),
    }
    missing = [name for name, is_given in parts.items() if not is_given]
    found = []
    if missing and (len(missing) < len(parts) or settings.OIDC_ONLY or settings.OIDC_CREATE_PEOPLE):
        found.append(("E005", f"Single sign-on is half configured: {', '.join(missing)} is missing."))
    if settings.OIDC_CLIENT_SECRET and settings.OIDC_CLIENT_SECRET_FILE:
        found.append(("E005", "Both OIDC_CLIENT_SECRET and OIDC_CLIENT_SECRET_FILE are set."))
    for name in ("OIDC_CLIENT_SECRET_FILE", "OIDC_CA_FILE"):
        path = getattr(settings, name)
        if path and not _is_readable(path):
            found.append(("E005", f"{name} cannot be read."))
    return found


def _of_issuer() -> list[tuple[str, str]]:
    issuer = settings.OIDC_ISSUER
    if not issuer:
        return []
    if not is_safe_address(issuer) or urlsplit(issuer).query or urlsplit(issuer).fragment:
        return [("E003", "OIDC_ISSUER is no https:// address (http:// is for this machine alone).")]
    if len(issuer) > 255:
        return [("E003", "OIDC_ISSUER is longer than 255 characters.")]
    return []


def _of_values() -> list[tuple[str, str]]:
    found = []
    if bool(settings.OIDC_ALLOWED_CLAIM) != bool(settings.OIDC_ALLOWED_VALUES):
        found.append(("E005", "Only one of OIDC_ALLOWED_CLAIM and OIDC_ALLOWED_VALUES is set."))
    if not settings.OIDC_ALGORITHMS or not set(settings.OIDC_ALGORITHMS) <= set(KEY_TYPES):
        found.append(("E004", f"OIDC_ALGORITHMS takes {', '.join(sorted(KEY_TYPES))} alone."))
    if "openid" not in settings.OIDC_SCOPES:
        found.append(("E004", "OIDC_SCOPES lacks openid."))
    if not 0 < settings.OIDC_TIMEOUT_SECONDS <= 30:
        found.append(("E004", "OIDC_TIMEOUT_SECONDS is not between 0 and 30."))
    return found


def _is_readable(path: str) -> bool:
    try:
        return bool(read_text(path))
    except (OSError, UnicodeDecodeError):
        return False
