"""OTLP as a Django app."""

from django.apps import AppConfig


class OtlpConfig(AppConfig):
    name = "events.otlp"
    label = "otlp"
    verbose_name = "OpenTelemetry"
