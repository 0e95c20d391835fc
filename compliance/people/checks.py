"""System checks of the settings of signing in."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

VALUES = ("operators", "everyone", "nobody")


def check_second_factor(**kwargs: Any) -> list[CheckMessage]:
    """Check that SECOND_FACTOR has one of its values."""
    if settings.SECOND_FACTOR in VALUES:
        return []
    text = f"SECOND_FACTOR is {settings.SECOND_FACTOR!r}, not one of {', '.join(VALUES)}."
    return [checks.Error(text, hint="Until then everyone needs a second factor.", id="people.E001")]


def check_required(**kwargs: Any) -> list[CheckMessage]:
    """Check that operators sign in with a second factor."""
    if settings.SECOND_FACTOR != "nobody":
        return []
    text = "Operators sign in with a password alone (SECOND_FACTOR)."
    return [checks.Warning(text, hint="Set it to operators or everyone.", id="people.W001")]
