"""Incidents as a Django app."""

from django.apps import AppConfig
from django.core.checks import register

from compliance.incidents.checks import check_regimes


class IncidentsConfig(AppConfig):
    name = "compliance.incidents"
    label = "incidents"
    verbose_name = "Incidents"

    def ready(self) -> None:
        register(check_regimes)
