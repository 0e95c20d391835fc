"""System checks of the settings of agents' keys."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from compliance.keys.base import KeyStorage


def check_agent_keys(**kwargs: Any) -> list[CheckMessage]:
    """Report an unknown value of AGENT_KEYS; at run time it would count as `resident`."""
    if settings.AGENT_KEYS in list(KeyStorage):
        return []
    text = f"AGENT_KEYS is {settings.AGENT_KEYS!r}."
    return [checks.Error(text, f"Choose among {', '.join(KeyStorage)}.", id="certificates.E001")]
