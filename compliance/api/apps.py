"""The API foundation as a Django app; it owns the table of idempotency keys."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "compliance.api"
    label = "api"
    verbose_name = "API"
