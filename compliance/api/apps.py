"""The API foundation as a Django app; it owns the table of idempotency keys."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "compliance.api"
    label = "api"
    verbose_name = "API"

    def ready(self) -> None:
        from compliance.api import schema  # noqa: F401  (registers the schema extensions)
