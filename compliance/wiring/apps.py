"""The wiring as a Django app: it has commands and no tables."""

from django.apps import AppConfig
from django.core.checks import register

from compliance.wiring.checks import check_owners, check_roles


class WiringConfig(AppConfig):
    name = "compliance.wiring"
    label = "wiring"

    def ready(self) -> None:
        register(check_owners)
        register(check_roles, "security", deploy=True)
