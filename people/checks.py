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


def check_signing_in(**kwargs: Any) -> list[CheckMessage]:
    """Check that SECOND_FACTOR has one of its values, and settings for security keys ones for browsers."""
    found: list[CheckMessage] = []
    if settings.SECOND_FACTOR not in list(Requirement):
        text = f"SECOND_FACTOR is {settings.SECOND_FACTOR!r}, not one of {', '.join(Requirement)}."
        found.append(checks.Error(text, hint="Until then everyone needs a second factor.", id="people.E001"))
    problem = relying_party.problem()
    if problem and (settings.WEBAUTHN_ORIGIN or settings.WEBAUTHN_RP_ID):
        text = f"Security keys do not work: {problem} (WEBAUTHN_ORIGIN, WEBAUTHN_RP_ID)."
        found.append(checks.Error(text, hint="Leave both empty to take BASE_URL's.", id="people.E002"))
    return found


def check_deployed(**kwargs: Any) -> list[CheckMessage]:
    """Check that operators sign in with a second factor, and that people can use security keys here."""
    found: list[CheckMessage] = []
    if settings.SECOND_FACTOR == Requirement.NOBODY:
        text = "Operators sign in with a password alone (SECOND_FACTOR)."
        found.append(checks.Warning(text, hint="Set it to operators or everyone.", id="people.W001"))
    problem = relying_party.problem()
    if problem and not (settings.WEBAUTHN_ORIGIN or settings.WEBAUTHN_RP_ID):
        text = f"People cannot use security keys: {problem} (BASE_URL)."
        found.append(checks.Warning(text, hint="Give BASE_URL a host name and HTTPS.", id="people.W002"))
    return found
