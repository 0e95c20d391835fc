"""Certificates as a Django app."""

from django.apps import AppConfig
from django.core.checks import register

from certificates.issuing.checks import check_agent_keys


class CertificatesConfig(AppConfig):
    name = "certificates"
    verbose_name = "Certificates"

    def ready(self) -> None:
        register(check_agent_keys)
