"""Events as a Django app."""

from django.apps import AppConfig
from django.core.checks import register

from events.checks import check_compiled, check_mica, check_settings, refuse_errors


class EventsConfig(AppConfig):
    name = "events"
    verbose_name = "Events"

    def ready(self) -> None:
        refuse_errors()
        register(check_settings)
        register(check_mica, "security", deploy=True)
        register(check_compiled, "performance", deploy=True)
