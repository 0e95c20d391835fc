"""Events and their parts as Django apps."""

from django.apps import AppConfig
from django.core.checks import register

from events.checks import check_compiled, check_mica, check_settings, refuse_errors


class EventsConfig(AppConfig):
    default = True
    name = "events"
    verbose_name = "Events"

    def ready(self) -> None:
        refuse_errors()
        register(check_settings)
        register(check_mica, "security", deploy=True)
        register(check_compiled, "performance", deploy=True)


class InboxConfig(AppConfig):
    name = "events.inbox"
    verbose_name = "Review inbox"


class OtlpConfig(AppConfig):
    name = "events.otlp"
    verbose_name = "OpenTelemetry"
