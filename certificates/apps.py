"""Certificates as a Django app."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from compliance.keys.base import KeyStorage


class CertificatesConfig(AppConfig):
    name = "certificates"
    verbose_name = "Certificates"


@checks.register
def check_agent_keys(**kwargs: Any) -> list[checks.CheckMessage]:
    """Report an unknown value of AGENT_KEYS; at run time it would count as `resident`."""
    if settings.AGENT_KEYS in list(KeyStorage):
        return []
    text = f"AGENT_KEYS is {settings.AGENT_KEYS!r}."
    return [checks.Error(text, f"Choose among {', '.join(KeyStorage)}.", id="certificates.E001")]
