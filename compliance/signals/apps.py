"""The signals as a Django app."""

from django.apps import AppConfig


class SignalsConfig(AppConfig):
    name = "compliance.signals"
    label = "signals"
    verbose_name = "Signals"
