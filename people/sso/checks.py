"""System checks of the settings of single sign-on."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from compliance.settings.declaring import read_text
from people.sso.configuration import is_on, is_safe_address
from people.sso.tokens import KEY_TYPES


def check_sign_on(**kwargs: Any) -> list[CheckMessage]:
    """Check that single sign-on is configured as a whole, or not at all."""
    parts = {
        "OIDC_ISSUER": settings.OIDC_ISSUER,
        "OIDC_CLIENT_ID": settings.OIDC_CLIENT_ID,
        "OIDC_CLIENT_SECRET or OIDC_CLIENT_SECRET_FILE": (
            settings.OIDC_CLIENT_SECRET or settings.OIDC_CLIENT_SECRET_FILE
        ),
    }
    missing = [name for name, is_given in parts.items() if not is_given]
    is_begun = len(missing) < len(parts) or settings.OIDC_ONLY or settings.OIDC_CREATE_PEOPLE
    issuer, algorithms = settings.OIDC_ISSUER, set(settings.OIDC_ALGORITHMS)
    is_address = is_safe_address(issuer) and not urlsplit(issuer).query and not urlsplit(issuer).fragment
    # The number of each check, whether the settings fail it, and what to say then.
    rules = [
        (
            "E005",
            missing and is_begun,
            f"Single sign-on is half configured: {', '.join(missing)} is missing.",
        ),
        (
            "E005",
            settings.OIDC_CLIENT_SECRET and settings.OIDC_CLIENT_SECRET_FILE,
            "Both OIDC_CLIENT_SECRET and OIDC_CLIENT_SECRET_FILE are set.",
        ),
        *(
            ("E005", not _is_readable(getattr(settings, name)), f"{name} cannot be read.")
            for name in ("OIDC_CLIENT_SECRET_FILE", "OIDC_CA_FILE")
        ),
        (
            "E003",
            issuer and not is_address,
            "OIDC_ISSUER is no https:// address (http:// is for this machine alone).",
        ),
        ("E003", is_address and len(issuer) > 255, "OIDC_ISSUER is longer than 255 characters."),
        (
            "E005",
            bool(settings.OIDC_ALLOWED_CLAIM) != bool(settings.OIDC_ALLOWED_VALUES),
            "Only one of OIDC_ALLOWED_CLAIM and OIDC_ALLOWED_VALUES is set.",
        ),
        (
            "E004",
            not algorithms or not algorithms <= set(KEY_TYPES),
            f"OIDC_ALGORITHMS takes {', '.join(sorted(KEY_TYPES))} alone.",
        ),
        ("E004", "openid" not in settings.OIDC_SCOPES, "OIDC_SCOPES lacks openid."),
        (
            "E004",
            not 0 < settings.OIDC_TIMEOUT_SECONDS <= 30,
            "OIDC_TIMEOUT_SECONDS is not between 0 and 30.",
        ),
    ]
    hint = "See docs/settings.md."
    return [checks.Error(text, hint=hint, id=f"people.{name}") for name, is_wrong, text in rules if is_wrong]


def check_who_enters(**kwargs: Any) -> list[CheckMessage]:
    """Check that not everyone who has an account of the provider becomes a person here."""
    if not is_on() or not settings.OIDC_CREATE_PEOPLE or settings.OIDC_ALLOWED_CLAIM:
        return []
    text = "Every account of the identity provider makes a person here (OIDC_CREATE_PEOPLE)."
    return [checks.Warning(text, hint="Name a claim in OIDC_ALLOWED_CLAIM.", id="people.W003")]


def _is_readable(path: str) -> bool:
    """Whether the file has a text; no file is named by an empty path."""
    try:
        return not path or bool(read_text(path))
    except (OSError, UnicodeDecodeError):
        return False
