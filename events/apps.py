"""Events as a Django app."""

from django.apps import AppConfig
from django.core.checks import register

from events.checks import check_compiled, check_settings


class EventsConfig(AppConfig):
    name = "events"
    verbose_name = "Events"

    def ready(self) -> None:
        register(check_settings)
        register(check_compiled, "performance", deploy=True)
