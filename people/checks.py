"""System checks of the settings of signing in."""

from enum import StrEnum
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from people import relying_party


class Requirement(StrEnum):
    """The values of SECOND_FACTOR: who must have a second factor."""

    OPERATORS = "operators"
    EVERYONE = "everyone"
    NOBODY = "nobody"


def check_second_factor(**kwargs: Any) -> list[CheckMessage]:
    """Check that SECOND_FACTOR has one of its values."""
    if settings.SECOND_FACTOR in list(Requirement):
        return []
    text = f"SECOND_FACTOR is {settings.SECOND_FACTOR!r}, not one of {', '.join(Requirement)}."
    return [checks.Error(text, hint="Until then everyone needs a second factor.", id="people.E001")]


def check_required(**kwargs: Any) -> list[CheckMessage]:
    """Check that operators sign in with a second factor."""
    if settings.SECOND_FACTOR != Requirement.NOBODY:
        return []
    text = "Operators sign in with a password alone (SECOND_FACTOR)."
    return [checks.Warning(text, hint="Set it to operators or everyone.", id="people.W001")]


def check_relying_party(**kwargs: Any) -> list[CheckMessage]:
    """Check that settings given for security keys are ones that browsers accept."""
    problem = relying_party.problem()
    if problem is None or not (settings.WEBAUTHN_ORIGIN or settings.WEBAUTHN_RP_ID):
        return []
    text = f"Security keys do not work: {problem} (WEBAUTHN_ORIGIN, WEBAUTHN_RP_ID)."
    return [checks.Error(text, hint="Leave both empty to take BASE_URL's.", id="people.E002")]


def check_keys_possible(**kwargs: Any) -> list[CheckMessage]:
    """Check that the console's address lets people use security keys."""
    problem = relying_party.problem()
    if problem is None or settings.WEBAUTHN_ORIGIN or settings.WEBAUTHN_RP_ID:
        return []
    text = f"People cannot use security keys: {problem} (BASE_URL)."
    return [checks.Warning(text, hint="Give BASE_URL a host name and HTTPS.", id="people.W002")]
